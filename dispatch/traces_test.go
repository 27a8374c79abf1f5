package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func traced(c *dispatch.Config) { c.Settings.Traces = true }

// noted is one trace, as it is read back.
type noted struct {
	Data struct {
		Route, Target, Delivery, Outcome, Class string
		Status, Attempt                         int
		Next                                    time.Time
	}
	Event string `json:"event_type"`
	Group string `json:"consumer_group"`
	Txn   string `json:"transaction_id"`
	Queue string `json:"queue_name"`
}

func tracesIn(t *testing.T, body []byte) (all []noted, words []string) {
	t.Helper()
	var page struct{ Traces []noted }
	if err := json.Unmarshal(body, &page); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, n := range page.Traces {
		words = append(words, fmt.Sprintf("%s %s %d of attempt %d", n.Event, n.Data.Class, n.Data.Status, n.Data.Attempt))
	}
	return page.Traces, words
}

func TestWhatWasNotDeliveredIsTraced(t *testing.T) {
	t.Parallel()
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		inBubble(t, nil, func(k *kit) {
			r := routeOf(ordering)
			k.fn.answers(func(_ context.Context, c call) bridge.Response {
				switch {
				case c.body == `"well"`:
					return bridge.Response{Status: 200}
				case c.n == 1:
					return bridge.Response{Status: 500, Body: []byte("the-answer")}
				}
				return bridge.Response{Status: 422}
			})
			p := k.start(traced, r)
			k.push("q", "p", `"well"`, `"ill"`)
			k.wait(2 * time.Minute)
			calls := k.fn.of(`"ill"`)
			if len(calls) != 2 {
				t.Fatalf("%s: %d calls", ordering, len(calls))
			}
			body := k.raw("GET", "/api/v1/traces/by-name/"+calls[0].DeliveryID, "")
			all, words := tracesIn(t, body)
			if d := cmp.Diff([]string{"retry http_5xx 500 of attempt 1", "dead http_4xx 422 of attempt 2", "dead_letter http_4xx 422 of attempt 2"}, words); d != "" {
				t.Fatalf("%s: traces (-want +got):\n%s", ordering, d)
			}
			n := all[0]
			if n.Txn != "t:ill" || n.Queue != "q" || n.Group != "r" || n.Data.Delivery != calls[0].DeliveryID || n.Data.Route != "r" || n.Data.Target != "fn" ||
				n.Data.Next.Before(calls[0].at) || n.Data.Next.After(calls[1].at) || !all[2].Data.Next.IsZero() {
				t.Errorf("%s: trace = %+v", ordering, n)
			}
			if strings.Contains(string(body), "the-answer") || strings.Contains(string(body), "http://") {
				t.Errorf("%s: traces hold too much: %s", ordering, body)
			}
			if _, words := tracesIn(t, k.raw("GET", "/api/v1/traces/by-name/"+k.fn.of(`"well"`)[0].DeliveryID, "")); len(words) > 0 {
				t.Errorf("%s: traces of what was delivered: %q", ordering, words)
			}
			if n := p.metric(t, "traces_dropped_total"); n != 0 {
				t.Errorf("%s: %v traces dropped", ordering, n)
			}
		})
	}
}

func TestNothingIsTracedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.fn.statuses(422)
		k.start(nil, testRoute("r", "q"))
		k.push("q", "p", "1")
		k.wait(time.Minute)
		if _, words := tracesIn(t, k.raw("GET", "/api/v1/traces/by-name/"+k.fn.all()[0].DeliveryID, "")); len(words) > 0 {
			t.Errorf("traces: %q", words)
		}
	})
}

// Traces that Queen does not take cost no delivery anything, and are counted.
func TestTracesHoldNothingUp(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		asked := 0
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/traces" {
				asked++
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		r := testRoute("r", "q")
		k.fn.statuses(422)
		p := k.start(traced, r)
		const events = 1500
		for i := range events {
			k.push("q", fmt.Sprint("p", i%50), fmt.Sprint(i))
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != events {
			t.Errorf("%d calls within a minute, want %d", n, events)
		}
		if asked == 0 || asked > 60 {
			t.Errorf("%d traces tried within a minute of refusals", asked)
		}
		p.stop()
		k.settledAll(r)
		if n := p.metric(t, "traces_dropped_total"); n != 2*events { // the attempt, and the dead letter
			t.Errorf("%v traces dropped, want %d", n, 2*events)
		}
	})
}

func TestTracesAreFewASecond(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		perSecond := map[int64]int{}
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/traces" {
				perSecond[time.Now().Unix()]++
			}
			return devbroker.Fault{}
		})
		k.fn.statuses(422)
		k.start(traced, testRoute("r", "q"))
		for i := range 200 {
			k.push("q", fmt.Sprint("p", i%20), fmt.Sprint(i))
		}
		k.wait(time.Minute)
		total := 0
		for at, n := range perSecond {
			if total += n; n > 21 {
				t.Errorf("%d traces in second %d", n, at)
			}
		}
		if total != 400 {
			t.Errorf("%d traces, want 400", total)
		}
	})
}

func TestRealTraces(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	r.Retry.Backoff = []time.Duration{time.Second}
	k.fn.answers(func(_ context.Context, c call) bridge.Response {
		return bridge.Response{Status: map[bool]int{true: 500, false: 422}[c.n == 1]}
	})
	k.startWith(k.client, traced, r)
	k.push(r.Queue, "p", `{"ill":1}`)
	var words []string
	k.until("three traces", 60*time.Second, func() bool {
		calls := k.fn.all()
		if len(calls) == 0 {
			return false
		}
		_, words = tracesIn(t, k.get("/api/v1/traces/by-name/"+url.PathEscape(calls[0].DeliveryID)))
		return len(words) == 3
	})
	if !strings.Contains(strings.Join(words, ", "), "retry http_5xx 500 of attempt 1") {
		t.Errorf("traces: %q", words)
	}
}
