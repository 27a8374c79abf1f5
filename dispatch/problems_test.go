package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
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

// The tests of this file are rows of user-problems.md, "Delivering to
// functions", that no other test has.

// "retry:3 yet one event retried 184 times in 55 minutes, never reached the
// DLQ": the count was in memory.
func TestAttemptsAreCountedOverProcesses(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{testRoute("r", "q"), orderedRoute("r", "q")} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r.Retry.MaxAttempts = 3
				k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 500} })
				k.push("q", "p", `{"n":1}`)
				for range 20 { // a new process every minute
					p := k.start(nil, r)
					k.wait(time.Minute)
					p.stop()
				}
				p := k.start(nil, r)
				k.wait(time.Hour)
				graves := k.graves("r")
				if n := len(k.fn.all()); n != 3 || len(graves) != 1 || graves[0].reason.Attempts != 3 || graves[0].reason.Class != bridge.FailureExhausted {
					t.Errorf("%d calls and dead letters %+v, want 3 and one that says so", n, graves)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// "two topics, same subscription name: shared retry topic, cross-talk".
func TestRoutesWithOneGroupNameShareNoRetries(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := testRoute("a", "orders"), testRoute("b", "invoices")
		a.Group, b.Group, a.Target, b.Target = "billing", "billing", "fa", "fb"
		k.fn.statuses(500)
		p := k.start(nil, a, b)
		k.push("orders", "p", `{"order":1}`)
		k.push("invoices", "p", `{"invoice":1}`)
		k.wait(10 * time.Minute)
		for _, c := range k.fn.all() {
			if (c.target == "fa") != strings.Contains(c.body, "order") {
				t.Errorf("%s was called with %s", c.target, c.body)
			}
		}
		if n := len(k.fn.all()); n != 4 {
			t.Errorf("%d calls, want each event twice", n)
		}
		k.settledAll(a)
		k.settledAll(b)
		p.stop()
	})
}

// "404 drops without DLQ, DROP goes to DLQ", "after max retries nothing in the
// error topic", "bad message resent forever", "endless retry fills storage",
// "dead letters without or with opaque reasons": every way in which a delivery
// ends is a dead letter with a structured reason, and every delivery ends.
func TestEveryTerminalPathIsADeadLetterWithItsReason(t *testing.T) {
	t.Parallel()
	status := func(code int) bridge.Response {
		return bridge.Response{Status: code, Header: http.Header{}, Body: fmt.Appendf(nil, "because of %d", code)}
	}
	unsent := func(class bridge.FailureClass) bridge.Response {
		return bridge.Response{Err: errors.New("no"), Class: class}
	}
	for _, tt := range []struct {
		name     string
		resp     bridge.Response
		class    bridge.FailureClass
		attempts int // held calls do not count, but the one that ended it does
	}{
		{"404 until it is too old", status(404), bridge.FailureExpired, 1},
		{"302 until it is too old", status(302), bridge.FailureExpired, 1},
		{"429 until it is too old", status(429), bridge.FailureExpired, 1},
		{"refused connections until it is too old", unsent(bridge.FailureConnect), bridge.FailureExpired, 1},
		{"tls until it is too old", unsent(bridge.FailureTLS), bridge.FailureExpired, 1},
		{"500 until no attempt is left", status(500), bridge.FailureExhausted, 5},
		{"409 until no attempt is left", status(409), bridge.FailureExhausted, 5},
		{"timeouts until no attempt is left", bridge.Response{Err: errors.New("slow"), Class: bridge.FailureTimeout, Sent: true}, bridge.FailureExhausted, 5},
		{"400", status(400), bridge.FailureHTTP4xx, 1},
		{"422", status(422), bridge.FailureHTTP4xx, 1},
		{"501", status(501), bridge.FailureHTTP5xx, 1},
		{"too large for the target", unsent(bridge.FailureTooLarge), bridge.FailureTooLarge, 1},
		{"dropped by the function", bridge.Response{Status: 200, Header: http.Header{"Queen-Outcome": {"dead"}}}, bridge.FailureDroppedByReply, 1},
	} {
		for _, r := range []bridge.Route{testRoute("r", "q"), orderedRoute("r", "q")} {
			t.Run(tt.name+"/"+string(r.Ordering), func(t *testing.T) {
				t.Parallel()
				inBubble(t, nil, func(k *kit) {
					r.Retry.MaxAge = time.Hour
					k.fn.answers(func(context.Context, call) bridge.Response { return tt.resp })
					p := k.start(nil, r)
					k.push("q", "p", `{"n":1}`)
					k.wait(6 * time.Hour)
					graves := k.graves("r")
					if len(graves) != 1 {
						t.Fatalf("%d dead letters after %d calls", len(graves), len(k.fn.all()))
					}
					var reason map[string]any
					if err := json.Unmarshal([]byte(graves[0].row.Error), &reason); err != nil || len(reason) != 8 {
						t.Errorf("reason %s: %v", graves[0].row.Error, err)
					}
					got := graves[0].reason
					if got.Class != tt.class || got.Attempts != tt.attempts || got.Status != tt.resp.Status || got.Error == "" || got.First.IsZero() || got.Last.Before(got.First) || got.Route != "r" {
						t.Errorf("reason = %+v, want %s after %d attempts", got, tt.class, tt.attempts)
					}
					if string(graves[0].Payload) != `{"n":1}` || graves[0].Origin.Queue != "q" {
						t.Errorf("dead letter = %+v", graves[0].Delivery)
					}
					k.settledAll(r)
					p.stop()
				})
			})
		}
	}
}

// "stored response body = read-SSRF and port scanner": of an answer little is
// kept, nothing of it is logged, and it is shown only where it is asked for.
func TestAnswersAreKeptInPartAndShownOnRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		secret := "instance-credentials"
		k.fn.answers(func(context.Context, call) bridge.Response {
			return bridge.Response{Status: 400, Body: []byte(secret + strings.Repeat("é", 64<<10))}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || len(graves[0].reason.Response) > 1024 || !strings.HasPrefix(graves[0].reason.Response, secret) {
			t.Fatalf("%d dead letters, %d bytes of the answer", len(graves), len(graves[0].reason.Response))
		}
		if k.logs.has(secret) {
			t.Error("the answer is in the log")
		}
		page, err := k.operator().DeadLetters(k.Context(), "r", dispatch.DeadLetterQuery{})
		if err != nil || page.Letters[0].Reason.Response != "" || page.Letters[0].Payload != nil {
			t.Errorf("a list shows %q, %v", page.Letters[0].Reason.Response, err)
		}
		p.stop()
	})
}

// "duplicate retries scheduled": whatever is repeated, one timer waits.
func TestOneRetryWaitsHoweverOftenItIsScheduled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 500} })
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(time.Second)
		page, err := k.operator().Retries(k.Context(), "r", dispatch.RetryQuery{})
		if err != nil || len(page.Retries) != 1 {
			t.Fatalf("Retries = %+v, %v", page, err)
		}
		timer, found, err := k.client.PeekTimer(k.Context(), bridge.RetryQueue("r"), page.Retries[0].Key)
		if err != nil || !found {
			t.Fatal(err)
		}
		for range 3 {
			timer.Delay = 4 * time.Second
			if _, err := k.client.Schedule(k.Context(), []queen.Timer{timer.Timer}); err != nil {
				t.Fatal(err)
			}
		}
		k.wait(20 * time.Second)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls, want the retry once", n)
		}
		p.stop()
	})
}

// "dead after the first failure though retries were set": Queen's own limit and
// the route's were both at work. The route's alone decides.
func TestRetryLimitOfTheQueueEndsNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{testRoute("r", "q"), orderedRoute("r", "q")} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				if err := k.client.Configure(k.Context(), queen.QueueOptions{Queue: "q", Lease: time.Minute, RetryLimit: 1, DedupWindow: time.Hour}); err != nil {
					k.Fatal(err)
				}
				r.Retry.MaxAttempts = 4
				k.fn.answers(func(_ context.Context, c call) bridge.Response {
					if c.body == `{"well":1}` && c.n == 3 {
						return bridge.Response{Status: 200}
					}
					return bridge.Response{Status: 500}
				})
				p := k.start(nil, r)
				k.push("q", "p", `{"ill":1}`, `{"well":1}`)
				k.wait(30 * time.Minute)
				if ill, well := len(k.fn.of(`{"ill":1}`)), len(k.fn.of(`{"well":1}`)); ill != 4 || well != 3 {
					t.Errorf("%d and %d calls, want the 4 attempts of the route, and 3 until it went well", ill, well)
				}
				rows, err := k.client.DeadLetters(k.Context(), queen.DeadLetterQuery{Queue: "q"})
				if err != nil || len(rows) > 0 {
					t.Errorf("Queen's own dead letters of the source queue: %v, %v", rows, err)
				}
				if graves := k.graves("r"); len(graves) != 1 || graves[0].reason.Attempts != 4 {
					t.Errorf("dead letters = %+v, want the one that failed 4 times", graves)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// "failures lost": events were acked when they were received. While a call runs
// its event is Queen's to give to somebody else.
func TestNothingIsAckedBeforeItsOutcome(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{testRoute("r", "q"), orderedRoute("r", "q")} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r.DetachAfter = 0
				acks := 0
				k.faults.set(func(req *http.Request) devbroker.Fault {
					if strings.HasPrefix(req.URL.Path, "/api/v1/ack") || req.URL.Path == "/api/v1/transaction" {
						acks++
					}
					return devbroker.Fault{}
				})
				k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
					return after(ctx, 20*time.Second, bridge.Response{Status: 200})
				})
				p := k.start(nil, r)
				k.push("q", "p", `{"n":1}`)
				k.wait(19 * time.Second)
				if n := k.depth("q", "r"); n != 1 || acks != 0 || len(k.fn.all()) != 1 {
					t.Errorf("%d events in the queue, %d acks, %d calls while the call runs; want 1, none, 1", n, acks, len(k.fn.all()))
				}
				k.wait(5 * time.Second)
				if acks == 0 {
					t.Error("no ack after the call")
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}
