package devbroker_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// parked is a long poll under way.
type parked struct {
	a      *api
	done   chan popped
	status int
	cancel context.CancelFunc
}

func (a *api) park(path, group, query string) *parked {
	ctx, cancel := context.WithCancel(a.t.Context())
	p := &parked{a: a, done: make(chan popped, 1), cancel: cancel}
	r := a.request("GET", "/api/v1/pop"+path+sep(path)+"wait=true&subscriptionMode=all&consumerGroup="+group+"&"+query, nil).WithContext(ctx)
	go func() {
		w := httptest.NewRecorder()
		a.broker.ServeHTTP(w, r)
		var got popped
		if w.Code == 200 {
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				a.t.Error(err)
			}
		}
		p.status = w.Code
		p.done <- got
	}()
	return p
}

// bubble runs a test where time is fake, and stands still while anything runs.
func bubble(t *testing.T, run func(t *testing.T, a *api)) {
	t.Helper()
	bubbleWith(t, devbroker.Config{}, run)
}

func bubbleWith(t *testing.T, cfg devbroker.Config, run func(t *testing.T, a *api)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, err := devbroker.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		run(t, &api{t: t, broker: b})
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A parked pop of any kind is answered the moment there is something, without
// any time passing.
func TestParkedPopWakes(t *testing.T) {
	t.Parallel()
	wakes := []struct {
		name string
		want string
		late time.Duration
		do   func(a *api)
	}{
		{"push", "new", 0, func(a *api) { a.push("ns.q", "p", "new") }},
		{"push into a partition that was not there", "new", 0, func(a *api) { a.push("ns.q", "other", "new") }},
		{"transaction push", "new", 0, func(a *api) {
			a.transact(obj{"operations": []obj{{"type": "push", "items": []obj{{"queue": "ns.q", "partition": "p", "transactionId": "new", "payload": 1}}}}})
		}},
		{"nack", "m1 m2", 0, func(a *api) { a.ack(a.popLeased, "g", "m1 failed") }},
		{"retry", "m1 m2", 0, func(a *api) { a.ack(a.popLeased, "g", "m1 retry") }},
		{"ack with more pending", "m3", 0, func(a *api) { a.ack(a.popLeased, "g", "m2 completed") }},
		{"lease expiry", "m1 m2", 10 * time.Second, func(*api) {}},
		{"seek", "m1 m2 m3", 0, func(a *api) {
			a.do("POST", "/api/v1/consumer-groups/g/queues/ns.q/seek", obj{"timestamp": "2000-01-01T00:00:00Z"})
		}},
		{"timer fire", "txn-k", 3 * time.Second, func(a *api) { schedule(a, "ns.q", "k", 3000, `1`) }},
	}
	for _, tt := range wakes {
		for _, scope := range []string{"/queue/ns.q", "/queue/ns.q/partition/p", "?namespace=ns", "?namespace=ns&task=q"} {
			if strings.Contains(scope, "/partition/") && (strings.Contains(tt.name, "not there") || tt.name == "timer fire") {
				continue
			}
			t.Run(tt.name+" "+scope, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, a *api) {
					a.push("ns.q", "p", "m1", "m2")
					a.popLeased = a.pop("/queue/ns.q", "g", "batch=2&leaseSeconds=10")
					if tt.name == "ack with more pending" {
						a.push("ns.q", "p", "m3")
					}
					if tt.name == "seek" {
						a.push("ns.q", "p", "m3")
					}
					if strings.HasPrefix(tt.name, "push") || tt.name == "transaction push" {
						a.ack(a.popLeased, "g", "m2 completed")
					}
					p := a.park(scope, "g", "timeout=60000&batch="+batchFor(tt.want))
					synctest.Wait()
					start := time.Now()
					tt.do(a)
					got := <-p.done
					if got.txns() != tt.want {
						t.Errorf("popped %q, want %q", got.txns(), tt.want)
					}
					if late := time.Since(start); late != tt.late {
						t.Errorf("after %v, want %v", late, tt.late)
					}
				})
			})
		}
	}
}

func batchFor(want string) string {
	return string(rune('0' + len(strings.Fields(want))))
}

func TestLongPollTimesOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		start := time.Now()
		p := a.park("/queue/q", "g", "timeout=1000")
		<-p.done
		if p.status != 204 || time.Since(start) != time.Second {
			t.Errorf("status %d after %v, want 204 after 1s", p.status, time.Since(start))
		}
	})
}

// An abandoned long poll takes nothing, and hands its wake on.
func TestAbandonedLongPoll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		first := a.park("/queue/q", "g", "timeout=60000")
		synctest.Wait()
		second := a.park("/queue/q", "g", "timeout=60000")
		synctest.Wait()
		first.cancel()
		<-first.done
		a.push("q", "p", "m1")
		if got := <-second.done; got.txns() != "m1" {
			t.Errorf("the pop that is still there got %q", got.txns())
		}
	})
}

// A pinned pop of a queue that does not exist yet, and a discovery of one, see
// what makes it, also with subscriptionMode new.
func TestParkedBeforeQueueExists(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"/queue/late.x/partition/p", "?namespace=late", "?task=x"} {
		for _, mode := range []string{"all", "new"} {
			t.Run(scope+" "+mode, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, a *api) {
					p := a.park(scope, "g", "timeout=60000&subscriptionMode="+mode)
					synctest.Wait()
					start := time.Now()
					a.push("late.x", "p", "m1")
					if got := <-p.done; got.txns() != "m1" || time.Since(start) != 0 {
						t.Errorf("got %q after %v", got.txns(), time.Since(start))
					}
				})
			})
		}
	}
}

// One message wakes one pop of a group; the others stay parked.
func TestOneMessageOnePop(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		pops := make([]*parked, 8)
		for i := range pops {
			pops[i] = a.park("/queue/q", "g", "timeout=5000")
		}
		synctest.Wait()
		a.push("q", "p", "m1")
		synctest.Wait()
		got := 0
		for _, p := range pops {
			if r := <-p.done; r.txns() == "m1" {
				got++
			}
		}
		if got != 1 {
			t.Errorf("%d pops got the message, want 1", got)
		}
	})
}

// Timers that are due together on one partition arrive in due order.
func TestTimersFireInDueOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		for _, k := range []struct {
			key string
			ms  int
		}{{"c", 300}, {"a", 100}, {"b", 200}, {"now", -5}} {
			schedule(a, "q", k.key, k.ms, `{"k":1}`)
		}
		time.Sleep(299 * time.Millisecond)
		synctest.Wait()
		if got := a.pop("/queue/q", "g", "").txns(); got != "txn-now txn-a txn-b" {
			t.Errorf("at 299 ms: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := a.pop("/queue/q", "g2", "").txns(); got != "txn-now txn-a txn-b txn-c" {
			t.Errorf("at 300 ms: %q", got)
		}
	})
}

func TestLeaseExpiryDoesNotCharge(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.configure("q", obj{"retryLimit": 0})
		a.push("q", "p", "m1")
		for attempt := 1; attempt <= 4; attempt++ {
			p := a.pop("/queue/q", "g", "leaseSeconds=5")
			if p.txns() != "m1" || p.Messages[0].DeliveryAttempt != attempt {
				t.Fatalf("delivery %d: %+v", attempt, p.Messages)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if got := a.ack(p, "g", "m1 completed"); got[0] != "invalid or expired lease" {
				t.Errorf("ack after expiry = %v", got)
			}
		}
	})
}

// An extend never shortens a lease, and one that is over stays over.
func TestExtend(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "m1")
		p := a.pop("/queue/q", "g", "leaseSeconds=10")
		extend := func(body any) obj {
			return a.do("POST", "/api/v1/lease/"+p.LeaseID+"/extend", body).json(t).(obj)
		}
		start := time.Now()
		for _, tt := range []struct {
			body any
			want time.Duration
		}{
			{obj{"seconds": 30}, 30 * time.Second},
			{obj{"seconds": 1}, 30 * time.Second},
			{obj{"seconds": -5}, 30 * time.Second},
			{nil, 60 * time.Second},
			{"not json", 60 * time.Second},
			{obj{"seconds": 100}, 100 * time.Second},
		} {
			got := extend(tt.body)
			at, err := time.Parse(time.RFC3339Nano, got["expiresAt"].(string))
			if err != nil || at.Sub(start).Round(time.Millisecond) != tt.want || got["renewed"] != num(1) {
				t.Errorf("extend(%v) = %v, want %v from the start", tt.body, got, tt.want)
			}
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if got := extend(obj{"seconds": 60}); got["success"] != false || got["renewed"] != num(0) || got["expiresAt"] != nil {
			t.Errorf("extend after expiry = %v", got)
		}
	})
}

// delayedProcessing holds a message back, and a parked pop gets it on time.
func TestDelayedProcessing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.configure("q", obj{"delayedProcessing": 2})
		a.push("q", "p", "m1")
		if got := a.pop("/queue/q", "g", "").txns(); got != "" {
			t.Errorf("at once: %q", got)
		}
		start := time.Now()
		p := a.park("/queue/q", "g", "timeout=10000")
		if got := <-p.done; got.txns() != "m1" || time.Since(start) != 2*time.Second {
			t.Errorf("got %q after %v, want m1 after 2s", got.txns(), time.Since(start))
		}
	})
}

func TestDedupWindow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.configure("q", obj{"dedupWindowSeconds": 2})
		want := func(verdict string) {
			t.Helper()
			if got := a.push("q", "p", "m1"); got[0] != verdict {
				t.Errorf("push = %v, want %s", got, verdict)
			}
		}
		want("queued")
		time.Sleep(1999 * time.Millisecond)
		want("duplicate")
		time.Sleep(time.Millisecond)
		want("queued")
		want("duplicate")
		if got := a.push("q", "other", "m1"); got[0] != "queued" {
			t.Errorf("in another partition = %v", got)
		}
	})
}
