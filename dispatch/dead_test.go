package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func TestManyDeadLettersAreEachFiledOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 422} })
		p := k.start(nil, r)
		for i := range 100 {
			k.push("q", fmt.Sprint("p", i%3), fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(10 * time.Second)
		seen := map[string]bool{}
		for _, g := range k.graves("r") {
			seen[string(g.Payload)] = true
		}
		if len(k.graves("r")) != 100 || len(seen) != 100 || len(k.fn.all()) != 100 {
			t.Errorf("%d dead letters of %d events after %d calls, want 100 of each", len(k.graves("r")), len(seen), len(k.fn.all()))
		}
		if n := p.metric(t, "dead_letters_total", "class=http_4xx"); n != 100 {
			t.Errorf("dead_letters_total = %v", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestDeadLetterIsFiledOnceThoughAnswersAreLost(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]devbroker.Fault{
		"lost": {LoseAnswer: true},
		"away": {Status: 200, Body: `[{"index":0,"success":false,"error":"pool","leaseReleased":false,"dlq":false,"noop":false}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.statuses(400)
				k.faults.times("/api/v1/ack", 5, fault)
				p := k.start(nil, r)
				k.push("q", "p", `{"a":1}`)
				k.wait(5 * time.Minute)
				if n := len(k.graves("r")); n != 1 {
					t.Errorf("%d dead letters, want 1", n)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// PostgreSQL refuses some texts for ever (measured 1.3.0): the lane must not
// stand still.
func TestDeadLetterThatIsRefusedForGoodIsMovedOn(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 400} })
		k.faults.times("/api/v1/ack", 3, devbroker.Fault{Status: 200, Body: `[{"index":0,"success":false,"error":"db error","leaseReleased":false,"dlq":false,"noop":false}]`})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Minute)
		k.push("q", "p", `{"b":1}`)
		k.wait(time.Minute)
		graves := k.graves("r")
		if len(graves) != 2 {
			t.Fatalf("%d dead letters, want 2", len(graves))
		}
		moved := graves[1]
		if id := moved.row.TransactionID; id[len(id)-1] != '\'' || string(moved.Payload) != `{"a":1}` || moved.reason.Class != bridge.FailureHTTP4xx {
			t.Errorf("moved dead letter = %s %q %+v", id, moved.Payload, moved.reason)
		}
		k.settledAll(r)
		p.stop()
	})
}

// A dlq of an id the broker forgot is refused, and spoils the plain ack too.
func TestOldDeadLetterIsMovedOnBeforeItIsTried(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *devbroker.Config) { c.ForgetAfter = bridge.DeadAckHorizon }, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(400)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/pop/queue/queenbridge-dead.r" {
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Minute)
		p.stop()
		k.wait(31 * 24 * time.Hour)
		k.faults.set(nil)
		p = k.start(nil, r)
		k.wait(5 * time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || string(graves[0].Payload) != `{"a":1}` || graves[0].reason.Class != bridge.FailureHTTP4xx {
			t.Errorf("dead letters = %+v", graves)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestForeignMessageInTheDeadQueueIsFiled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.push(bridge.DeadQueue("r"), "p", `{"who":"knows"}`)
		k.wait(time.Minute)
		rows, err := k.client.DeadLetters(k.Context(), queen.DeadLetterQuery{Queue: bridge.DeadQueue("r")})
		if err != nil || len(rows) != 1 {
			t.Errorf("%d dead letters, %v; want 1", len(rows), err)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestRedrivenDeadLetterIsCalledAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(400)
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Minute)
		g := k.graves("r")[0]
		d := g.Delivery
		d.Hop, d.Attempt, d.FirstFailed, d.Dead = d.Hop+1, 0, time.Time{}, nil
		_, err := k.client.Push(k.Context(), []queen.Item{{
			Queue: bridge.RetryQueue("r"), Partition: bridge.RetryLane(d.Lineage),
			TransactionID: bridge.RedriveTxn(g.row.TransactionID), Payload: d.AppendEnvelope(nil),
		}})
		if err != nil {
			t.Fatal(err)
		}
		k.wait(time.Minute)
		calls := k.fn.all()
		if len(calls) != 2 || calls[1].Attempt != 1 || calls[1].DeliveryID != calls[0].DeliveryID {
			t.Errorf("calls = %+v", calls)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestDeadLettersOfAPausedRouteAreFiled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Paused = true
		d := bridge.NewDelivery("r", bridge.Origin{Queue: "q", Partition: "p", MessageID: "m", TransactionID: "t"}, []byte(`{"a":1}`))
		d.Dead = &bridge.DeadReason{Route: "r", Class: bridge.FailureHTTP4xx}
		_, err := k.client.Push(k.Context(), []queen.Item{{Queue: bridge.DeadQueue("r"), Partition: "0", TransactionID: "x", Payload: d.AppendEnvelope(nil)}})
		if err != nil {
			t.Fatal(err)
		}
		p := k.start(nil, r)
		k.wait(time.Minute)
		if n := len(k.graves("r")); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		p.stop()
	})
}

// Copies of one retry (a refused ack made them) are called once per batch and
// make one timer: a key twice in a transaction is refused.
func TestCopiesOfOneRetryAreCalledOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		d := bridge.NewDelivery("r", bridge.Origin{Queue: "q", Partition: "p", MessageID: "m", TransactionID: "t"}, []byte(`{"a":1}`))
		d.Hop, d.Attempt = 1, 1
		for _, id := range []string{"x", "y", "z"} {
			_, err := k.client.Push(k.Context(), []queen.Item{{
				Queue: bridge.RetryQueue("r"), Partition: bridge.RetryLane(d.Lineage), TransactionID: id, Payload: d.AppendEnvelope(nil),
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		p := k.start(nil, r)
		k.wait(5 * time.Minute)
		calls := k.fn.all()
		if len(calls) != 2 || calls[0].Attempt != 2 || calls[1].Attempt != 3 {
			t.Errorf("calls = %+v", calls)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestNewRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := func() dispatch.Config {
		return dispatch.Config{
			Routes: []bridge.Route{testRoute("r", "q")}, Targets: []bridge.Target{testTarget("fn")}, Queen: &queen.Client{},
			NewSender: func(bridge.Target) (dispatch.Sender, error) { return sender{}, nil },
		}
	}
	for name, change := range map[string]func(*dispatch.Config){
		"no queen":  func(c *dispatch.Config) { c.Queen = nil },
		"no sender": func(c *dispatch.Config) { c.NewSender = nil },
		"sender fails": func(c *dispatch.Config) {
			c.NewSender = func(bridge.Target) (dispatch.Sender, error) { return nil, context.Canceled }
		},
		"unknown target":    func(c *dispatch.Config) { c.Routes[0].Target = "nobody" },
		"impossible policy": func(c *dispatch.Config) { c.Routes[0].Retry.MaxAttempts = 0 },
	} {
		c := good()
		change(&c)
		if _, err := dispatch.New(c); err == nil {
			t.Errorf("New with %s succeeds", name)
		}
	}
	if _, err := dispatch.New(good()); err != nil {
		t.Errorf("New: %v", err)
	}
}
