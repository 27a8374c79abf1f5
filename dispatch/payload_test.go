package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestAnyJSONIsDelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: map[int]int{1: 500}[c.n] + 200*min(c.n-1, 1)}
		})
		p := k.start(nil, r)
		payloads := []string{
			`null`, `"text"`, `12345678901234567890123`, `[1, 2]`, `{"b":1, "a": 1}`, `{"a":1,"a":2}`,
			`"\u0000"`, `"\ud800"`, `1e400`, `{"queenbridge":"1"}`,
		}
		k.push("q", "p", payloads...)
		k.wait(time.Minute)
		for _, payload := range payloads {
			if calls := k.fn.of(payload); len(calls) != 2 {
				t.Errorf("%s: %d calls with these very bytes, want 2 (failed once)", payload, len(calls))
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestUnreadableEventIsADeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.push("q", "p", `{"queenbridge":1,"id":7}`, `{"queenbridge":2,"id":"x"}`, `{"fine":1}`)
		k.wait(time.Second)
		graves := k.graves("r")
		if len(graves) != 2 || len(k.fn.all()) != 1 {
			t.Fatalf("%d dead letters and %d calls, want 2 and 1", len(graves), len(k.fn.all()))
		}
		for _, g := range graves {
			if g.reason.Class != bridge.FailureUndecodable || g.reason.Attempts != 0 {
				t.Errorf("reason = %+v", g.reason)
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

// A timer may hold anything; what is not JSON makes the pop's whole answer
// unreadable, and its partition would stop for ever.
func TestPayloadThatIsNotJSONIsADeadLetter(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := testRoute("r", "q")
			r.Ordering = ordering
			k.push("q", "p", `{"before":1}`)
			k.foreignTimer("q", "p", "poison", "not JSON \x00 at all")
			k.wait(time.Second)
			k.push("q", "p", `{"behind":1}`)
			k.push("q", "elsewhere", `{"else":1}`)
			p := k.start(nil, r)
			k.wait(10 * time.Minute)
			for _, body := range []string{`{"before":1}`, `{"behind":1}`, `{"else":1}`} {
				if n := len(k.fn.of(body)); n < 1 {
					t.Errorf("%s was called %d times", body, n)
				}
			}
			graves := k.graves("r")
			if len(graves) != 1 {
				t.Fatalf("%d dead letters, want 1", len(graves))
			}
			if string(graves[0].Payload) != "not JSON \x00 at all" || graves[0].reason.Class != bridge.FailureUndecodable {
				t.Errorf("dead letter = %q, %+v", graves[0].Payload, graves[0].reason)
			}
			k.settledAll(r)
			p.stop()
		})
	})
}
