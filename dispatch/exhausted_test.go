package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func pausing(r bridge.Route) bridge.Route {
	r.OnExhausted, r.Retry.MaxAttempts = bridge.OnExhaustedPause, 2
	return r
}

// failing answers 500 to one event until it is healed.
func failing(body string, healed *bool) func(context.Context, call) bridge.Response {
	return func(_ context.Context, c call) bridge.Response {
		if c.body == body && !*healed {
			return bridge.Response{Status: 500}
		}
		return bridge.Response{Status: 200}
	}
}

func TestExhaustedEventPausesItsRouteWhereAskedFor(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{pausing(testRoute("r", "q")), pausing(orderedRoute("r", "q"))} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(r.Ordering, "/lost answer ", lost), func(t *testing.T) {
				t.Parallel()
				inBubble(t, nil, func(k *kit) {
					var healed bool
					bad := `{"n":1}`
					k.fn.answers(failing(bad, &healed))
					p := k.start(nil, r)
					k.push("q", "p", `{"n":0}`, bad, `{"n":2}`)
					k.wait(500 * time.Millisecond)
					if lost {
						k.faults.times("/api/v1/transaction", 2, devbroker.Fault{LoseAnswer: true})
					}
					k.wait(time.Hour)
					s := p.Status()[0]
					if s.State != dispatch.StatePaused || !strings.Contains(s.Detail, "on_exhausted") || !strings.Contains(s.Detail, "t:"+bad) {
						t.Errorf("status = %+v, want the pause and its reason", s)
					}
					if calls := k.fn.of(bad); len(calls) != 2 || len(k.graves("r")) != 0 {
						t.Errorf("%d calls and %d dead letters, want 2 and none", len(calls), len(k.graves("r")))
					}
					p.stop()
					p = k.start(nil, r)
					k.push("q", "other", `{"n":9}`)
					k.wait(time.Hour)
					if n := len(k.fn.of(`{"n":9}`)) + len(k.fn.of(bad)); n != 2 {
						t.Errorf("a paused route called its function after a restart")
					}
					healed = true
					if err := p.ResumeRoute(k.Context(), "r"); err != nil {
						t.Fatal(err)
					}
					k.wait(time.Minute)
					calls := k.fn.of(bad)
					if len(calls) != 3 || calls[2].Attempt != 1 || calls[2].DeliveryID != calls[0].DeliveryID {
						t.Errorf("calls = %+v, want one more, as the first attempt of the same delivery", calls)
					}
					if n := len(k.fn.of(`{"n":2}`)); n != 1 {
						t.Errorf("%d calls of the event behind, want 1", n)
					}
					if r.Ordering == bridge.OrderingPartition && k.fn.of(`{"n":2}`)[0].at.Before(calls[2].at) {
						t.Error("an event overtook the exhausted one")
					}
					k.settledAll(r)
					p.stop()
				})
			})
		}
	}
}

// Age ends a policy as attempts do; an answer that is final for another reason
// is a dead letter all the same.
func TestWhatPausesARoute(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		resp   bridge.Response
		paused bool
	}{
		{"too old", bridge.Response{Status: 429, Header: http.Header{"Retry-After": {"600"}}}, true},
		{"refused", bridge.Response{Status: 422}, false},
		{"dropped by the function", bridge.Response{Status: 200, Header: http.Header{"Queen-Outcome": {"dead"}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := pausing(testRoute("r", "q"))
				r.Retry.MaxAge = time.Hour
				k.fn.answers(func(context.Context, call) bridge.Response { return tt.resp })
				p := k.start(nil, r)
				k.push("q", "p", `{"n":0}`)
				k.wait(90 * time.Minute)
				if paused := p.Status()[0].State == dispatch.StatePaused; paused != tt.paused || (len(k.graves("r")) == 0) != tt.paused {
					t.Errorf("paused %v with %d dead letters", paused, len(k.graves("r")))
				}
				p.stop()
			})
		})
	}
}
