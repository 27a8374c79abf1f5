package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// inOrder fails unless, in a partition, no event was called before all before
// it had their last call. Events are {"p":<partition>,"n":<number>}.
func inOrder(t *testing.T, calls []call) {
	t.Helper()
	last := map[int]int{}
	for _, c := range calls {
		var p, n int
		if _, err := fmt.Sscanf(c.body, `{"p":%d,"n":%d}`, &p, &n); err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		if n < last[p] {
			t.Errorf("partition %d: event %d was called after %d", p, n, last[p])
		}
		last[p] = n
	}
}

func (k *kit) pushOrdered(partitions, events int) {
	for p := range partitions {
		bodies := make([]string, events)
		for n := range bodies {
			bodies[n] = fmt.Sprintf(`{"p":%d,"n":%d}`, p, n)
		}
		k.push("q", fmt.Sprint("p", p), bodies...)
	}
}

func TestOrderedEventsOfAPartitionAreCalledOneAfterTheOther(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 10*time.Millisecond, bridge.Response{Status: 200})
		})
		p := k.start(nil, r)
		k.pushOrdered(4, 120)
		k.wait(5 * time.Second)
		calls := k.fn.all()
		if len(calls) != 480 || k.fn.most != 4 {
			t.Errorf("%d calls, %d at once; want 480, one per partition at once", len(calls), k.fn.most)
		}
		inOrder(t, calls)
		k.settledAll(r)
		p.stop()
	})
}

func TestFailingEventHoldsItsPartitionOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.body == `{"p":0,"n":1}` && c.n <= 3 {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.pushOrdered(3, 4)
		k.wait(time.Second / 2)
		if n := len(k.fn.all()); n != 10 {
			t.Errorf("%d calls at first, want 8 of the other partitions and 2 of the failing one", n)
		}
		k.wait(2 * time.Minute)
		calls := k.fn.of(`{"p":0,"n":1}`)
		if len(calls) != 4 {
			t.Fatalf("%d calls of the failing event, want 4", len(calls))
		}
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 40 * time.Second} {
			gap := calls[i+1].at.Sub(calls[i].at)
			if gap < want || gap > want+500*time.Millisecond {
				t.Errorf("call %d came after %v, want %v", i+2, gap, want)
			}
			if calls[i+1].Attempt != i+2 {
				t.Errorf("call %d is attempt %d", i+2, calls[i+1].Attempt)
			}
		}
		if n := len(k.fn.all()); n != 15 {
			t.Errorf("%d calls in all, want 15: nothing delivered is called again", n)
		}
		inOrder(t, k.fn.all())
		k.settledAll(r)
		p.stop()
	})
}

// A delay beyond the lease is served by a longer lease, which nobody needs to
// remember: another process takes over, with the count.
func TestOrderedBackoffSurvivesTheProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		r.Retry.Backoff = []time.Duration{40 * time.Second}
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.body == `{"p":0,"n":0}` && c.n <= 2 {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		first := k.start(nil, r)
		k.push("q", "p", `{"p":0,"n":0}`, `{"p":0,"n":1}`)
		k.wait(time.Second)
		first.stop()
		second := k.start(nil, r)
		k.wait(38 * time.Second)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls before the delay is over, want 1", n)
		}
		k.wait(2 * time.Minute)
		calls := k.fn.of(`{"p":0,"n":0}`)
		if len(calls) != 3 || calls[1].Attempt != 2 || calls[2].Attempt != 3 {
			t.Errorf("calls = %+v", calls)
		}
		inOrder(t, k.fn.all())
		k.settledAll(r)
		second.stop()
	})
}

func TestOrderedAttemptsRunOutOverProcesses(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		r.Retry.MaxAttempts = 4
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: map[string]int{`{"p":0,"n":0}`: 500, `{"p":0,"n":1}`: 422}[c.body] + map[string]int{`{"p":0,"n":2}`: 200}[c.body]}
		})
		k.push("q", "p", `{"p":0,"n":0}`, `{"p":0,"n":1}`, `{"p":0,"n":2}`)
		for range 40 {
			p := k.start(nil, r)
			k.wait(4 * time.Second)
			p.stop()
			k.wait(4 * time.Second)
		}
		p := k.start(nil, r)
		k.wait(5 * time.Minute)
		calls := k.fn.all()
		if len(calls) != 6 {
			t.Errorf("%d calls, want 4 of the first and one each of the others", len(calls))
		}
		inOrder(t, calls)
		graves := k.graves("r")
		classes := []bridge.FailureClass{}
		for _, g := range graves {
			classes = append(classes, g.reason.Class)
			if g.reason.Class == bridge.FailureExhausted && g.reason.Attempts != 4 {
				t.Errorf("reason = %+v", g.reason)
			}
		}
		slices.Sort(classes)
		if !slices.Equal(classes, []bridge.FailureClass{bridge.FailureExhausted, bridge.FailureHTTP4xx}) {
			t.Errorf("dead letters = %v", classes)
		}
		k.settledAll(r)
		p.stop()
	})
}

// Two processes; the first one's lease ends early, so the second calls too. No
// call may begin behind the successor's, and the counts are not doubled.
func TestOrderedLostLeaseIsNotCalledFurther(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.faults.once("/api/v1/pop/queue/q", devbroker.Fault{Lease: 3 * time.Second})
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			if c.body == `{"p":0,"n":1}` && c.n == 1 {
				return after(ctx, 20*time.Second, bridge.Response{Status: 500})
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.pushOrdered(1, 4)
		k.wait(2 * time.Minute)
		inOrder(t, k.fn.all()[2:])
		if n := len(k.fn.of(`{"p":0,"n":1}`)); n != 2 {
			t.Errorf("%d calls of the event whose lease was lost, want 2", n)
		}
		if n := len(k.fn.of(`{"p":0,"n":3}`)); n != 1 {
			t.Errorf("%d calls of the last event, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestOrderedSettleWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		path   string
		status int
		calls  int
	}{
		{"count", "/api/v1/transaction", 500, 2},
		{"dead letter", "/api/v1/transaction", 400, 1},
		{"ack", "/api/v1/ack/batch", 200, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := orderedRoute("r", "q")
				k.fn.answers(func(_ context.Context, c call) bridge.Response {
					if c.body == `{"p":0,"n":1}` && c.n == 1 {
						return bridge.Response{Status: tt.status}
					}
					return bridge.Response{Status: 200}
				})
				k.faults.times(tt.path, 2, devbroker.Fault{LoseAnswer: true})
				p := k.start(nil, r)
				k.pushOrdered(1, 3)
				k.wait(time.Minute)
				calls := k.fn.of(`{"p":0,"n":1}`)
				if len(calls) != tt.calls || calls[len(calls)-1].Attempt != tt.calls {
					t.Errorf("calls = %+v", calls)
				}
				if n := len(k.fn.all()); n != 2+tt.calls {
					t.Errorf("%d calls in all", n)
				}
				inOrder(t, k.fn.all())
				if n := len(k.graves("r")); n != map[int]int{400: 1}[tt.status] {
					t.Errorf("%d dead letters", n)
				}
				if last := k.fn.of(`{"p":0,"n":2}`)[0].at.Sub(calls[0].at); last > 4*time.Second {
					t.Errorf("the event behind was called %v later: a known commit was taken for a lost lease", last)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestOrderedStopGivesTheRestBack(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 2*time.Second, bridge.Response{Status: 200})
		})
		p := k.start(nil, r)
		k.pushOrdered(1, 6)
		k.wait(3 * time.Second)
		p.stop()
		stopped := time.Now()
		p = k.start(nil, r)
		k.wait(30 * time.Second)
		calls := k.fn.all()
		if len(calls) != 6 {
			t.Errorf("%d calls, want each event once", len(calls))
		}
		inOrder(t, calls)
		if gap := calls[2].at.Sub(stopped); gap > time.Second {
			t.Errorf("the rest came %v after the stop, want at once", gap)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestOrderedHoldCountsNoAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.n == 1 && c.body == `{"p":0,"n":1}` {
				return bridge.Response{Status: 503, Header: http.Header{"Retry-After": {"45"}}}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.pushOrdered(1, 3)
		k.wait(2 * time.Minute)
		calls := k.fn.of(`{"p":0,"n":1}`)
		if len(calls) != 2 || calls[1].Attempt != 1 {
			t.Fatalf("calls = %+v", calls)
		}
		if gap := calls[1].at.Sub(calls[0].at); gap < 45*time.Second || gap > 47*time.Second {
			t.Errorf("called again after %v, want 45s", gap)
		}
		if len(k.fn.all()) != 4 {
			t.Errorf("%d calls in all, want 4", len(k.fn.all()))
		}
		inOrder(t, k.fn.all())
		k.settledAll(r)
		p.stop()
	})
}

func TestOrderedSlowCallKeepsItsLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 29*time.Second, bridge.Response{Status: 200})
		})
		a, b := k.start(nil, r), k.start(nil, r)
		k.pushOrdered(1, 5)
		k.wait(3 * time.Minute)
		if n := len(k.fn.all()); n != 5 {
			t.Errorf("%d calls by two processes, want 5", n)
		}
		inOrder(t, k.fn.all())
		k.settledAll(r)
		a.stop()
		b.stop()
	})
}

// A process whose renewals are not answered must not begin a call that could
// run beside its successor's.
func TestOrderedCallNeedsMoreThanTwoRenewalsOfLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, 4*time.Second, bridge.Response{Status: 200})
		})
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasSuffix(r.URL.Path, "/extend") {
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		k.pushOrdered(1, 8)
		begun := time.Now()
		a := k.start(nil, r)
		k.wait(40 * time.Second)
		for _, c := range k.fn.all() {
			if into := c.at.Sub(begun); into > 5*time.Second && into < 15*time.Second {
				t.Errorf("a call began %v into its lease of 15s: 10s must be left", into)
			}
		}
		k.faults.set(nil)
		k.wait(2 * time.Minute)
		k.settledAll(r)
		a.stop()
	})
}

// A refused commit means that the lease is lost, known or not: no call more.
func TestOrderedRefusedCommitEndsTheBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, 1100*time.Millisecond, bridge.Response{Status: 200})
		})
		k.pushOrdered(1, 8)
		k.faults.once("/api/v1/pop/queue/q", devbroker.Fault{Lease: 3 * time.Second})
		p := k.start(nil, r)
		k.wait(time.Minute)
		for n := range 8 {
			// The calls of 0 and 1 were acked under the lease, that of 2 too late.
			body := fmt.Sprintf(`{"p":0,"n":%d}`, n)
			if got, want := len(k.fn.of(body)), 1+map[int]int{2: 1}[n]; got != want {
				t.Errorf("%d calls of %s, want %d", got, body, want)
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

// A stale holder that fails too must not count: the value in Queen is its
// successor's.
func TestOrderedCountOfAStaleHolderIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		r.Retry.Backoff = []time.Duration{12 * time.Second}
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			switch len(k.fn.all()) {
			case 1:
				return after(ctx, 10*time.Second, bridge.Response{Status: 500})
			case 2:
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		k.push("q", "p", `{"p":0,"n":0}`)
		begun, pops := time.Now(), 0
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasSuffix(r.URL.Path, "/extend") && time.Since(begun) < 12*time.Second {
				return devbroker.Fault{Status: 503} // the first holder does not learn that its lease is lost
			}
			if r.URL.Path == "/api/v1/pop/queue/q" {
				if pops++; pops == 1 {
					return devbroker.Fault{Lease: 3 * time.Second}
				}
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		k.wait(2 * time.Minute)
		calls := k.fn.all()
		attempts := []int{}
		for _, c := range calls {
			attempts = append(attempts, c.Attempt)
		}
		if !slices.Equal(attempts, []int{1, 1, 2}) {
			t.Errorf("attempts = %v, want 1, 1 (beside a lost lease), 2", attempts)
		}
		if gap := calls[2].at.Sub(calls[1].at); gap < 12*time.Second {
			t.Errorf("the successor's event was called again after %v, its backoff is 12s", gap)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestOrderedStopWhileHeldKeepsWhatIsDone(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r, s := orderedRoute("r", "q"), testRoute("s", "other")
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			if c.body == `{"hold":1}` && c.n == 1 {
				return after(ctx, 50*time.Millisecond, bridge.Response{Status: 429, Header: http.Header{"Retry-After": {"8"}}})
			}
			return after(ctx, 100*time.Millisecond, bridge.Response{Status: 200})
		})
		k.push("other", "p", `{"hold":1}`)
		k.pushOrdered(1, 3)
		p := k.start(nil, r, s)
		k.wait(2 * time.Second)
		p.stop()
		p = k.start(nil, r, s)
		k.wait(2 * time.Minute)
		if n := len(k.fn.of(`{"p":0,"n":0}`)); n != 1 {
			t.Errorf("%d calls of what was delivered before the stop, want 1", n)
		}
		if n := len(k.fn.all()); n != 5 {
			t.Errorf("%d calls, want 5", n)
		}
		k.settledAll(r)
		k.settledAll(s)
		p.stop()
	})
}

func TestOrderedIDTwiceBeforeAFailure(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.raw("POST", "/api/v1/configure", `{"queue":"q","options":{"dedupWindowSeconds":0}}`)
		r := orderedRoute("r", "q")
		r.Retry.Backoff = []time.Duration{100 * time.Millisecond}
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.body == `{"p":0,"n":3}` && c.n == 1 {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		for i, id := range []string{"x", "y", "x", "z", "x"} {
			item := queen.Item{Queue: "q", Partition: "p", TransactionID: id, Payload: fmt.Appendf(nil, `{"p":0,"n":%d}`, i)}
			if _, err := k.client.Push(k.Context(), []queen.Item{item}); err != nil {
				t.Fatal(err)
			}
		}
		p := k.start(nil, r)
		k.wait(2 * time.Minute)
		if n := len(k.fn.all()); n != 6 {
			t.Errorf("%d calls, want 6", n)
		}
		inOrder(t, k.fn.all())
		k.settledAll(r)
		p.stop()
	})
}
