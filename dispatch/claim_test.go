package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// largeEvent is an event whose payload is a little over size bytes, with a body
// that no re-encoding survives.
func largeEvent(id string, size int) (payload []byte, body string) {
	body = id + "{\"b\":1,\"a\":1e400}\x00\xff" + strings.Repeat("\"\\u0000é\n", size/8)
	if size > 1<<20 {
		body = id + strings.Repeat("x", size)
	}
	e := bridge.Event{ID: id, Source: "s", Received: time.Now(), ContentType: "text/plain", Body: []byte(body)}
	return e.AppendPayload(nil), body
}

func (k *kit) pushLarge(partition, id string, size int) (payload []byte, body string) {
	k.Helper()
	payload, body = largeEvent(id, size)
	v, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: partition, TransactionID: id, Payload: payload}})
	if err != nil || v[0].Status != queen.PushQueued {
		k.Fatalf("push: %+v, %v", v, err)
	}
	return payload, body
}

func (k *kit) configure(queues ...bridge.ManagedQueue) {
	k.Helper()
	for _, q := range queues {
		err := k.client.Configure(k.Context(), queen.QueueOptions{Queue: q.Name, Namespace: q.Namespace, Task: q.Task, Lease: q.Lease,
			RetryLimit: q.RetryLimit, DedupWindow: q.DedupWindow, Retention: q.Retention, CompletedRetention: q.CompletedRetention})
		if err != nil {
			k.Fatal(err)
		}
	}
}

// cramped makes everything large at a thirty-second of its size.
func cramped(c *dispatch.Config) { c.Cramp(32) }

func managed(r bridge.Route) []bridge.ManagedQueue {
	return bridge.Config{Routes: []bridge.Route{r}}.ManagedQueues()
}

func TestLargeEventIsRetriedAndEndsAsADeadLetterWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 513 << 10, 900 << 10, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.configure(managed(r)...)
				k.fn.statuses(500, 500, 429, 500, 500, 500, 500)
				p := k.start(nil, r)
				payload, body := k.pushLarge("p", "id", size)
				k.wait(time.Hour)
				if n := len(k.fn.of(body)); n != 6 || len(k.fn.all()) != 6 {
					t.Errorf("%d calls with the exact body of %d, want 6", n, len(k.fn.all()))
				}
				graves := k.graves("r")
				if len(graves) != 1 || !bytes.Equal(graves[0].Payload, payload) || graves[0].reason.Class != bridge.FailureExhausted || graves[0].reason.Attempts != 5 {
					t.Fatalf("%d dead letters", len(graves))
				}
				want := 0.0
				if size > 1000 {
					want = 1
				}
				if n := p.metric(t, "claims_total"); n != want {
					t.Errorf("%v payloads stored, want %v: one that was read back is there", n, want)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// Before anything refers to a payload it is in Queen: `buffered`, lost answers
// and deaths change nothing.
func TestClaimIsStoredBeforeItsSettle(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]devbroker.Fault{
		"answer lost": {LoseAnswer: true}, "request lost": {Status: 503},
		"buffered": {Status: 201, Body: `[{"index":0,"message_id":"01a22b82-abb1-7002-b11b-9cba783c5750","queueName":"queenbridge-large.r","status":"buffered"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.statuses(500)
				_, body := k.pushLarge("p", "id", 1<<20)
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if r.URL.Path == "/api/v1/push" {
						return fault
					}
					return devbroker.Fault{}
				})
				p := k.start(nil, r)
				k.wait(3 * time.Minute)
				if n := k.timers("r"); n != 0 || len(k.fn.of(body)) != 1 {
					t.Errorf("%d timers and %d calls while the payload is not stored", n, len(k.fn.of(body)))
				}
				k.faults.set(nil)
				k.wait(time.Minute)
				if n := len(k.fn.of(body)); n != 2 {
					t.Errorf("%d calls, want 2", n)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestQueenAwayWhileALargePayloadIsReadBack(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		p := k.start(nil, r)
		_, body := k.pushLarge("p", "id", 1<<20)
		k.wait(time.Second)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasPrefix(r.URL.Path, "/api/v1/messages/") || strings.HasPrefix(r.URL.Path, "/api/v1/resources/") {
				return devbroker.Fault{Status: 500, Body: `{"error":"pool"}`}
			}
			return devbroker.Fault{}
		})
		k.wait(5 * time.Minute)
		k.faults.set(nil)
		k.wait(time.Minute)
		if calls := k.fn.of(body); len(calls) != 2 || calls[1].Attempt != 2 {
			t.Errorf("%d calls, want the second attempt once Queen answers", len(calls))
		}
		k.settledAll(r)
		p.stop()
	})
}

// The large queue ends by age: a payload gone all the same is told, never
// waited for.
func TestPayloadThatIsGoneIsADeadLetter(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*kit){
		"deleted": func(k *kit) { k.raw("DELETE", "/api/v1/resources/queues/queenbridge-large.r", "") },
		"replaced": func(k *kit) {
			lineage := k.lineage("r")
			k.raw("DELETE", "/api/v1/resources/queues/queenbridge-large.r", "")
			_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "queenbridge-large.r", Partition: bridge.LargeLane(lineage), TransactionID: lineage, Payload: []byte(`"x"`)}})
			if err != nil {
				k.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.statuses(500)
				p := k.start(nil, r)
				_, body := k.pushLarge("p", "id", 1<<20)
				k.wait(time.Second)
				spoil(k)
				k.wait(time.Minute)
				graves := k.graves("r")
				if len(graves) != 1 || graves[0].reason.Class != bridge.FailureUndecodable || graves[0].Claim == nil || graves[0].Origin.TransactionID != "id" {
					t.Errorf("dead letters = %+v", graves)
				}
				if n := len(k.fn.of(body)); n != 1 {
					t.Errorf("%d calls, want 1", n)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// lineage is that of the one pending retry of a route.
func (k *kit) lineage(route string) string {
	k.Helper()
	rows, _, err := k.client.ListTimers(k.Context(), bridge.RetryQueue(route), "", 10)
	if err != nil || len(rows) != 1 {
		k.Fatalf("%d timers, %v", len(rows), err)
	}
	lineage, _, _ := strings.Cut(rows[0].Key, "/")
	return lineage
}

// A partition emptied by retention comes back under another id.
func TestLargePartitionUnderANewID(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: map[bool]int{true: 500, false: 200}[c.n == 1]}
		})
		p := k.start(nil, r)
		k.pushLarge("p", "first", 1<<20)
		k.wait(time.Minute)
		k.raw("DELETE", "/api/v1/resources/queues/queenbridge-large.r", "")
		for i := range 20 { // nearly every lane, the known one among them
			k.pushLarge("p", fmt.Sprint("later", i), 600<<10)
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 42 || len(k.graves("r")) != 0 {
			t.Errorf("%d calls and %d dead letters, want 42 and none", n, len(k.graves("r")))
		}
		k.settledAll(r)
		p.stop()
	})
}

// A batch whose riders exceed what a transaction takes is one settle all the
// same: no half of it can be repeated.
func TestManyLargeRetriesAreOneSettle(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		var settles int
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/transaction" {
				if settles++; settles == 1 {
					return devbroker.Fault{LoseAnswer: true}
				}
			}
			return devbroker.Fault{}
		})
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: map[bool]int{true: 500, false: 200}[c.n == 1]}
		})
		const events = 40
		for i := range events {
			payload := `{"n":` + fmt.Sprint(i) + `,"x":"` + strings.Repeat("x", 15<<10) + `"}`
			_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "p", TransactionID: fmt.Sprint(i), Payload: []byte(payload)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			k.pushLarge("p", fmt.Sprint("big", i), 160<<10)
		}
		p := k.start(cramped, r)
		k.wait(2 * time.Minute)
		if n := len(k.fn.all()); n != 2*(events+4) {
			t.Errorf("%d calls, want %d", n, 2*(events+4))
		}
		k.settledAll(r)
		p.stop()
	})
}

// What is too large to be stored a second time ends as a dead letter that says
// where it is; it does not come again for ever.
func TestEventTooLargeToBeStoredAgain(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{testRoute("r", "q"), orderedRoute("r", "q")} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				status := map[bridge.Ordering]int{bridge.OrderingNone: 500, bridge.OrderingPartition: 400}[r.Ordering]
				k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: status} })
				p := k.start(cramped, r)
				k.pushLarge("p", "id", 1300<<10)
				k.push("q", "p", `{"next":1}`)
				k.wait(time.Hour)
				var told bool
				for _, g := range k.graves("r") {
					if g.Origin.TransactionID != "id" {
						continue
					}
					told = g.reason.Class == bridge.FailureTooLarge && g.Claim != nil && strings.Contains(g.reason.Error, "it stays in queue q") &&
						strings.Contains(g.reason.Error, g.Origin.PartitionID)
					if !told {
						t.Errorf("reason = %+v", g.reason)
					}
				}
				if !told {
					t.Error("no dead letter says where the event is")
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestLargeDeadLetterOfAnOrderedRoute(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 400} })
		p := k.start(cramped, r)
		small, _ := k.pushLarge("p", "small", 100<<10)
		k.pushLarge("p", "big", 1100<<10)
		k.wait(time.Minute)
		graves := k.graves("r")
		if len(graves) != 2 {
			t.Fatalf("%d dead letters, want 2", len(graves))
		}
		for _, g := range graves {
			if whole := g.Claim == nil; whole != (g.Origin.TransactionID == "small") || whole && !bytes.Equal(g.Payload, small) {
				t.Errorf("dead letter of %s: whole %v", g.Origin.TransactionID, whole)
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

// 1.x forgets ids of pending messages: their claims are stored all the same.
func TestLargeOldEvent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *devbroker.Config) { c.ForgetAfter = 15 * time.Minute }, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		_, body := k.pushLarge("p", "id", 1<<20)
		k.wait(time.Hour)
		p := k.start(nil, r)
		k.wait(5 * time.Minute)
		if n := len(k.fn.of(body)); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// However many large retries are due at once, few are held in memory.
func TestLargeRetriesAreReadBackAFewAtATime(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		var reads []time.Time
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if !strings.HasPrefix(r.URL.Path, "/api/v1/messages/") {
				return devbroker.Fault{}
			}
			reads = append(reads, time.Now())
			return devbroker.Fault{Delay: 10 * time.Second}
		})
		const events = 12
		for i := range events {
			d := bridge.NewDelivery("r", bridge.Origin{Queue: "q", Partition: "p", MessageID: fmt.Sprint(i), TransactionID: fmt.Sprint(i)}, []byte("x"))
			d.Claim = &bridge.Claim{Size: 38 << 20, SHA256: "of something else"}
			_, err := k.client.Push(k.Context(), []queen.Item{
				{Queue: bridge.LargeQueue("r"), Partition: bridge.LargeLane(d.Lineage), TransactionID: d.Lineage, Payload: []byte(`"x"`)},
				{Queue: bridge.RetryQueue("r"), Partition: bridge.RetryLane(d.Lineage), TransactionID: fmt.Sprint(i), Payload: d.AppendEnvelope(nil)},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		p := k.start(nil, r)
		k.wait(5 * time.Minute)
		if n := len(k.graves("r")); n != events || len(reads) != events {
			t.Errorf("%d of %d found wanting after %d reads", n, events, len(reads))
		}
		for i := range reads {
			if i >= 3 && reads[i].Sub(reads[i-3]) < 10*time.Second {
				t.Errorf("4 reads of 38 MiB within 10 s: %v", reads[i-3:i+1])
			}
		}
		k.settledAll(r)
		p.stop()
	})
}
