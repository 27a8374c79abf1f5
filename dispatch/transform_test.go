package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestFunctionGetsTheTransformedEvent(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := testRoute("r", "q")
			r.Ordering = ordering
			r.Transform = bridge.Transform{Body: `{"id": event.body.n}`, Headers: map[string]string{"X-Which": `"n" + string(event.body.n)`}}
			k.push("q", "p", `{"n":7,"secret":1}`)
			k.fn.statuses(500)
			p := k.start(nil, r)
			k.wait(time.Minute)
			calls := k.fn.all()
			if len(calls) != 2 {
				t.Fatalf("%d calls, want a retry", len(calls))
			}
			for _, c := range calls {
				want := []bridge.Header{{Name: "content-type", Value: "application/json"}, {Name: "x-which", Value: "n7"}}
				if diff := cmp.Diff(want, c.Headers); diff != "" || c.body != `{"id":7}` || c.ContentType != "application/json" {
					t.Errorf("call %+v, body %s", c.Request, c.body)
				}
			}
			k.settledAll(r)
			p.stop()
		})
	})
}

func TestTransformComesBeforeTheFormatAndAfterTheFilter(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := testRoute("r", "q")
			r.Ordering, r.Batch.Size = ordering, 5
			r.Filter, r.Transform.Body = `event.body.n > 0`, `{"m": 10 / int(event.body.n)}`
			k.push("q", "p", `{"n":0}`, `{"n":5}`, `{"n":10}`)
			p := k.start(nil, r)
			k.wait(time.Minute)
			if calls := k.fn.all(); len(calls) != 1 || calls[0].body != `[{"m":2},{"m":1}]` {
				t.Errorf("calls %+v", calls)
			}
			k.settledAll(r)
			p.stop()
		})
	})
}

// An event of which the transform makes nothing is a dead letter, never called
// and never dropped; the others of its batch are called.
func TestEventThatCannotBeTransformedIsADeadLetter(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
				inBubble(t, nil, func(k *kit) {
					r := testRoute("r", "q")
					r.Ordering, r.Batch.Size = ordering, size
					r.Transform.Body = `{"m": event.body.n}`
					k.push("q", "p", `{"n":1}`, `{"x":2}`, `{"n":3}`)
					p := k.start(nil, r)
					k.wait(time.Minute)
					graves := k.graves("r")
					if len(graves) != 1 || string(graves[0].Payload) != `{"x":2}` || graves[0].reason.Class != bridge.FailureTransform || graves[0].reason.Attempts != 0 {
						t.Errorf("dead letters %+v", graves)
					}
					called := 0
					for _, c := range k.fn.all() {
						if called++; size > 1 {
							called += len(c.events(t)) - 1
						}
					}
					if called != 2 {
						t.Errorf("%d events called, want 2", called)
					}
					k.settledAll(r)
					p.stop()
				})
			})
		})
	}
}
