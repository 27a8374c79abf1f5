package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func TestBrokerAwayForAWhile(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: []int{500, 200}[min(c.n-1, 1)]}
		})
		p := k.start(nil, r)
		for i := range 20 {
			k.push("q", fmt.Sprint("p", i%4), fmt.Sprintf(`{"n":%d}`, i))
		}
		k.faults.set(func(*http.Request) devbroker.Fault { return devbroker.Fault{Status: 503} })
		k.wait(30 * time.Second)
		if problems := p.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "unreachable since") {
			t.Errorf("problems = %v", problems)
		}
		k.faults.set(nil)
		k.wait(2 * time.Minute)
		if problems := p.Problems(); len(problems) != 0 {
			t.Errorf("problems afterwards = %v", problems)
		}
		if n := len(k.fn.all()); n != 40 {
			t.Errorf("%d calls, want 40: each event failed once, none was called for a lost settle", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// An outage longer than the lease: what was called and not settled is called
// again, and nothing is lost.
func TestBrokerAwayBeyondTheLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasPrefix(r.URL.Path, "/api/v1/pop") {
				return devbroker.Fault{}
			}
			return devbroker.Fault{Status: 503}
		})
		go func() {
			time.Sleep(5 * time.Minute)
			k.faults.set(nil)
		}()
		_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "p", TransactionID: "t", Payload: []byte(`{"a":1}`)}})
		if err == nil {
			t.Fatal("the push was answered")
		}
		k.wait(6 * time.Minute)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Minute)
		if n := len(k.fn.all()); n < 1 {
			t.Errorf("%d calls", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestRefusedCredentialsStopTheRouteFromPopping(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: []int{500, 200}[min(c.n-1, 1)]}
		})
		p := k.start(nil, r)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/transaction" {
				return devbroker.Fault{Status: 403, Body: `{"error":"timers are switched off","reason":"timers_disabled","success":false,"results":[]}`}
			}
			return devbroker.Fault{}
		})
		k.push("q", "p", `{"n":0}`)
		k.wait(time.Second)
		for i := range 20 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"later":%d}`, i))
			k.wait(time.Millisecond)
		}
		k.wait(10 * time.Minute)
		// The long poll that was parked may still take one.
		if n := len(k.fn.all()); n > 2 {
			t.Errorf("%d calls while settles are refused, want no further pops", n)
		}
		if n := len(k.fn.of(`{"n":0}`)); n != 1 {
			t.Errorf("%d calls of the event whose settle is refused, want 1", n)
		}
		if s := p.Status()[0]; s.State != dispatch.StateBlocked || s.Since.IsZero() {
			t.Errorf("status = %+v", s)
		}
		k.faults.set(nil)
		k.wait(2 * time.Minute)
		if s := p.Status()[0]; s.State != dispatch.StatePopping {
			t.Errorf("status = %+v", s)
		}
		if n := len(k.fn.all()); n != 42 {
			t.Errorf("%d calls, want 42", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// Queen 1.3.0 allows 100 transactions with riders a second.
func TestManyFailuresFitTheRateLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *devbroker.Config) { c.RiderRate = 10 }, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, time.Millisecond, bridge.Response{Status: []int{500, 200}[min(c.n-1, 1)]})
		})
		p := k.start(nil, r)
		const events = 2000
		for i := range events / 50 {
			bodies := make([]string, 50)
			for j := range bodies {
				bodies[j] = fmt.Sprintf(`{"n":%d}`, i*50+j)
			}
			k.push("q", fmt.Sprint("p", i), bodies...)
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 2*events {
			t.Errorf("%d calls, want %d", n, 2*events)
		}
		k.settledAll(r)
		p.stop()
	})
}

// 1.x forgets ids of pending messages, and then refuses every transaction.
func TestOldEventsAreSettledInTwoSteps(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500, 400} {
		inBubble(t, func(c *devbroker.Config) { c.ForgetAfter = 15 * time.Minute }, func(k *kit) {
			r := testRoute("r", "q")
			k.fn.answers(func(_ context.Context, c call) bridge.Response {
				if c.body != `{"n":1}` || c.n > 1 {
					return bridge.Response{Status: 200}
				}
				return bridge.Response{Status: status}
			})
			k.push("q", "p", `{"n":0}`, `{"n":1}`, `{"n":2}`)
			k.wait(time.Hour)
			p := k.start(nil, r)
			k.wait(5 * time.Minute)
			want := map[int]int{200: 3, 400: 3, 500: 4}[status]
			if n := len(k.fn.all()); n != want {
				t.Errorf("status %d: %d calls, want %d", status, n, want)
			}
			if n := len(k.graves("r")); n != map[int]int{400: 1}[status] {
				t.Errorf("status %d: %d dead letters", status, n)
			}
			k.settledAll(r)
			p.stop()
		})
	}
}

// Between the two steps nothing fences: what went out is remembered, and what
// comes again is only acked.
func TestOldEventWhoseAckIsRefusedIsNotCalledAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *devbroker.Config) { c.ForgetAfter = 15 * time.Minute }, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		k.push("q", "p", `{"n":0}`)
		k.wait(time.Hour)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/ack/batch" {
				return devbroker.Fault{Status: 200, Body: `[{"index":0,"success":false,"error":"unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the message redelivers","leaseReleased":false,"dlq":false,"noop":false}]`}
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		k.wait(10 * time.Minute)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls while acks are refused, want 2: the first and its retry", n)
		}
		k.faults.set(nil)
		k.wait(5 * time.Minute)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestOrderedOldEvents(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *devbroker.Config) { c.ForgetAfter = 15 * time.Minute }, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			switch {
			case c.body == `{"p":0,"n":2}` && c.n <= 3:
				return bridge.Response{Status: 500}
			case c.body == `{"p":0,"n":3}`:
				return bridge.Response{Status: 400}
			}
			return bridge.Response{Status: 200}
		})
		k.pushOrdered(2, 6)
		k.wait(time.Hour)
		p := k.start(nil, r)
		k.wait(20 * time.Minute)
		inOrder(t, k.fn.all())
		if n := len(k.graves("r")); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		for _, c := range []struct {
			body string
			n    int
		}{{`{"p":0,"n":2}`, 4}, {`{"p":0,"n":3}`, 1}, {`{"p":0,"n":5}`, 1}, {`{"p":1,"n":5}`, 1}} {
			if n := len(k.fn.of(c.body)); n != c.n && c.body != `{"p":0,"n":2}` || n < c.n {
				t.Errorf("%d calls of %s, want %d", n, c.body, c.n)
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

// Without dedup an id can stand twice in a batch: a transaction would ack only
// the first.
func TestIDTwiceInABatch(t *testing.T) {
	t.Parallel()
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		for _, status := range []int{200, 500, 400} {
			inBubble(t, nil, func(k *kit) {
				k.raw("POST", "/api/v1/configure", `{"queue":"q","options":{"dedupWindowSeconds":0}}`)
				r := testRoute("r", "q")
				r.Ordering = ordering
				k.fn.answers(func(_ context.Context, c call) bridge.Response {
					if c.n == 1 {
						return bridge.Response{Status: status}
					}
					return bridge.Response{Status: 200}
				})
				items := make([]queen.Item, 5)
				for i, id := range []string{"x", "y", "x", "z", "x"} {
					items[i] = queen.Item{Queue: "q", Partition: "p", TransactionID: id, Payload: fmt.Appendf(nil, `{"n":%d}`, i)}
				}
				for _, it := range items {
					if _, err := k.client.Push(k.Context(), []queen.Item{it}); err != nil {
						t.Fatal(err)
					}
				}
				p := k.start(nil, r)
				k.wait(5 * time.Minute)
				want := map[int]int{200: 5, 400: 5, 500: 10}[status]
				if n := len(k.fn.all()); n != want {
					t.Errorf("%s, status %d: %d calls, want %d", ordering, status, n, want)
				}
				if n := len(k.graves("r")); n != map[int]int{400: 5}[status] {
					t.Errorf("%s, status %d: %d dead letters", ordering, status, n)
				}
				k.settledAll(r)
				p.stop()
			})
		}
	}
}

// A bundle that is refused is taken apart; only the message at fault suffers.
func TestMessageAtFaultIsFoundInARefusedSettle(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path != "/api/v1/transaction" {
				return devbroker.Fault{}
			}
			if body := readBody(r); strings.Contains(body, `t:{\"n\":13}`) && strings.Contains(body, `"timerKey"`) {
				return devbroker.Fault{Status: 413, Body: `too large`}
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		for i := range 5 {
			bodies := make([]string, 4)
			for j := range bodies {
				bodies[j] = fmt.Sprintf(`{"n":%d}`, 10*i+j)
			}
			k.push("q", fmt.Sprint("p", i), bodies...)
		}
		k.wait(5 * time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || string(graves[0].Payload) != `{"n":13}` || graves[0].reason.Class != bridge.FailureTooLarge {
			t.Errorf("dead letters = %+v", graves)
		}
		if n := len(k.fn.all()); n != 39 {
			t.Errorf("%d calls, want 39: twice each but the one at fault", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestLateBrokerIsKeptAwake(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.health = queen.Health{Healthy: true, Engine: "segments-rust", Version: "1.3.0"}
		r := testRoute("r", "q")
		k.fn.statuses(500)
		var discovery int
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/pop" {
				discovery++
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Minute)
		n, err := k.client.CountTimers(k.Context(), bridge.AwakeQueue, 10)
		if err != nil || n != 1 {
			t.Errorf("%d far timers, %v; want 1", n, err)
		}
		if discovery == 0 || len(k.fn.all()) != 2 {
			t.Errorf("%d discovery pops, %d calls; want retries by discovery", discovery, len(k.fn.all()))
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestTimersDroppedInSilenceAreScheduledAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		k.faults.once("/api/v1/transaction", devbroker.Fault{Status: 200, Body: `{"transactionId":"x","success":true,"results":[{"index":0,"type":"ack","success":true,"transactionId":"t:{\"a\":1}","error":null,"dlq":false}]}`})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(10 * time.Second)
		if n := len(k.fn.all()); n != 2 || !k.logs.has("dropped the timers") {
			t.Errorf("%d calls, want the retry although the answer showed no timer", n)
		}
		p.stop()
	})
}

// refusing is a Queen whose ack calls are refused for good when they hold one
// id.
type refusing struct {
	dispatch.Queen
	id string
}

func (q refusing) AckBatch(ctx context.Context, acks []queen.Ack) ([]queen.AckVerdict, error) {
	for _, a := range acks {
		if a.TransactionID == q.id {
			return nil, errors.New("an ack nobody can send")
		}
	}
	return q.Queen.AckBatch(ctx, acks)
}

func TestImpossibleAckTakesNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		for i := range 20 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"n":%d}`, i))
		}
		p := k.start(func(c *dispatch.Config) { c.Queen = refusing{c.Queen, `t:{"n":7}`} }, r)
		k.wait(30 * time.Second)
		if n := k.depth("q", "r"); n != 1 {
			t.Errorf("%d messages left, want the one that cannot be acked", n)
		}
		k.wait(2 * time.Minute)
		if n := len(k.fn.of(`{"n":8}`)); n != 1 {
			t.Errorf("%d calls of its neighbour, want 1", n)
		}
		p.stop()
	})
}

// During an outage settles wait for each other, and go out together after it.
func TestOutageIsNotFollowedByAFlood(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, time.Duration(c.at.UnixNano()%97)*time.Millisecond, bridge.Response{Status: []int{500, 200}[min(c.n-1, 1)]})
		})
		var back atomic.Bool
		var sent atomic.Int64
		k.faults.set(func(r *http.Request) devbroker.Fault {
			switch {
			case r.URL.Path != "/api/v1/transaction":
			case !back.Load():
				return devbroker.Fault{Status: 500}
			default:
				sent.Add(1)
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		for i := range 100 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"n":%d}`, i))
			k.wait(100 * time.Millisecond)
		}
		back.Store(true)
		k.wait(4 * time.Second)
		if n := sent.Load(); n == 0 || n > 15 {
			t.Errorf("%d transactions after an outage with 100 settles, want few", n)
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 200 {
			t.Errorf("%d calls, want 200", n)
		}
		k.settledAll(r)
		p.stop()
	})
}
