package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// takeAndDie leases the head of a partition as a process does that dies of it.
func (k *kit) takeAndDie(queueName, partition, group string, times int) {
	k.Helper()
	for range times {
		p, err := k.client.Pop(k.Context(), queen.PopRequest{
			Queue: queueName, Partition: partition, Group: group, Batch: 10, Partitions: 1, Lease: time.Second, SubscriptionMode: "all",
		})
		if err != nil || len(p.Messages) == 0 {
			k.Fatalf("pop: %v, %d messages", err, len(p.Messages))
		}
		k.wait(2 * time.Second)
	}
}

func TestEventThatEndsEveryProcessBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := routeOf(ordering)
			k.push("q", "p", `{"kills":1}`, `{"behind":1}`)
			k.push("q", "suspect", `{"suspect":1}`, `{"behind":2}`)
			k.push("q", "fine", `{"fine":1}`)
			k.takeAndDie("q", "p", "r", 21)
			k.takeAndDie("q", "suspect", "r", 15)
			p := k.start(nil, r)
			k.wait(5 * time.Minute)
			if n := len(k.fn.of(`{"kills":1}`)); n != 0 {
				t.Errorf("%d calls of the event that ends processes", n)
			}
			g := k.graves("r")
			if len(g) != 1 || g[0].reason.Class != bridge.FailureCrashLoop || g[0].reason.Attempts != 0 {
				t.Errorf("dead letters = %+v", g)
			}
			for _, body := range []string{`{"behind":1}`, `{"behind":2}`, `{"suspect":1}`, `{"fine":1}`} {
				if n := len(k.fn.of(body)); n != 1 {
					t.Errorf("%s: %d calls, want 1", body, n)
				}
			}
			k.settledAll(r)
			p.stop()
		})
	})
}

// A process that lives on proves that the event does not end it: it may have
// been given back because its target was held.
func TestEventThatWasOnlyHeldIsNoCrashLoop(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.wait(11 * time.Minute)
		if err := p.PauseRoute(k.Context(), "r", pauseBy("x")); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
		}
		k.takeAndDie("q", "p", "r", 30)
		if err := p.ResumeRoute(k.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 3 || len(k.graves("r")) != 0 {
			t.Errorf("%d calls, %d dead letters; want 3 and none", n, len(k.graves("r")))
		}
		p.stop()
	})
}
