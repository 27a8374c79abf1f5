package dispatch_test

import (
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

func TestEachGroupGetsEveryEventAndOnlyItsOwnRetries(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := testRoute("a", "q"), testRoute("b", "q")
		b.Target = "other"
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.target == "fn" && c.n == 1 {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, a, b)
		for i := range 10 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(20 * time.Second)
		perTarget := map[string]int{}
		for _, c := range k.fn.all() {
			perTarget[c.target]++
		}
		if perTarget["fn"] != 20 || perTarget["other"] != 10 {
			t.Errorf("calls = %v, want fn 20 (each event failed once) and other 10", perTarget)
		}
		k.settledAll(a)
		k.settledAll(b)
		p.stop()
	})
}

func TestFailingEventBlocksNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.body == `{"bad":1}` {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"bad":1}`)
		pushed := time.Now()
		for i := range 50 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
			k.wait(time.Second)
		}
		for _, c := range k.fn.all() {
			var n int
			if _, err := fmt.Sscanf(c.body, `{"n":%d}`, &n); err == nil && c.at.Sub(pushed) > time.Duration(n)*time.Second+100*time.Millisecond {
				t.Errorf("event %d of the same partition was called %v after it was pushed", n, c.at.Sub(pushed)-time.Duration(n)*time.Second)
			}
		}
		p.stop()
	})
}

func TestLostAnswerOfASettleIsAskedAgainAndCallsNobody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path string
		status     int
		fault      devbroker.Fault
	}{
		{"plain ack, answer lost", "/api/v1/ack/batch", 200, devbroker.Fault{LoseAnswer: true}},
		{"plain ack, answer cut", "/api/v1/ack/batch", 200, devbroker.Fault{CutAnswer: 5}},
		{"plain ack, request lost", "/api/v1/ack/batch", 200, devbroker.Fault{Status: 503}},
		{"transaction, answer lost", "/api/v1/transaction", 500, devbroker.Fault{LoseAnswer: true}},
		{"transaction, answer cut", "/api/v1/transaction", 500, devbroker.Fault{CutAnswer: 20}},
		{"transaction, request lost", "/api/v1/transaction", 500, devbroker.Fault{Status: 500, Body: `{"error":"pool"}`}},
		{"transaction, rate limited", "/api/v1/transaction", 500, devbroker.Fault{Status: 429, Body: `{"success":false,"reason":"rate_limited","error":"rate_limited","results":[]}`}},
		{"transaction, database error", "/api/v1/transaction", 500, devbroker.Fault{Status: 200, Body: `{"success":false,"reason":"db_error","error":"db error","results":[]}`}},
		{"dead letter, answer lost", "/api/v1/transaction", 400, devbroker.Fault{LoseAnswer: true}},
		{"dead letter, answer lost thrice", "/api/v1/transaction", 400, devbroker.Fault{LoseAnswer: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.statuses(tt.status)
				n := 1
				if strings.HasSuffix(tt.name, "thrice") {
					n = 3
				}
				k.faults.times(tt.path, n, tt.fault)
				p := k.start(nil, r)
				k.push("q", "p", `{"a":1}`)
				k.wait(4 * time.Second)
				if n := len(k.fn.all()); n != 1 {
					t.Errorf("%d calls before the retry is due, want 1", n)
				}
				k.wait(2 * time.Minute)
				want := map[int]int{200: 1, 400: 1, 500: 2}[tt.status]
				if n := len(k.fn.all()); n != want {
					t.Errorf("%d calls, want %d", n, want)
				}
				if n := len(k.graves("r")); n != map[int]int{400: 1}[tt.status] {
					t.Errorf("%d dead letters", n)
				}
				if n := p.metric(t, "dead_letters_total"); n != float64(len(k.graves("r"))) {
					t.Errorf("dead_letters_total = %v, %d filed", n, len(k.graves("r")))
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// The broker lets the lease end early: another pop gets the event while the
// first call runs. What the first holder knows must not be settled.
func TestLostLeaseSettlesNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500, 400} {
		inBubble(t, nil, func(k *kit) {
			r := testRoute("r", "q")
			r.DetachAfter = 0
			k.faults.once("/api/v1/pop/queue/q", devbroker.Fault{Lease: 5 * time.Second})
			k.fn.answers(func(ctx context.Context, c call) bridge.Response {
				if c.n == 1 {
					return after(ctx, 25*time.Second, bridge.Response{Status: status})
				}
				return bridge.Response{Status: 200}
			})
			p := k.start(nil, r)
			k.push("q", "p", `{"a":1}`)
			k.wait(3 * time.Minute)
			if n := len(k.fn.all()); n != 2 {
				t.Errorf("status %d: %d calls, want 2: the lost one and its successor's", status, n)
			}
			if n := len(k.graves("r")); n != 0 {
				t.Errorf("status %d: %d dead letters of a lost lease", status, n)
			}
			if p.metric(t, "leases_lost_total") != 1 {
				t.Errorf("leases_lost_total = %v, want 1", p.metric(t, "leases_lost_total"))
			}
			k.settledAll(r)
			p.stop()
		})
	}
}

func TestSlowCallKeepsItsLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 9*time.Minute, bridge.Response{Status: 200})
		})
		p := k.start(func(c *dispatch.Config) { c.Targets[0].HTTP.Timeout = 10 * time.Minute }, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(12 * time.Minute)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestStopLetsCallsFinishAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 10*time.Second, bridge.Response{Status: 200})
		})
		narrow := func(c *dispatch.Config) { c.Targets[0].Concurrency = 2 }
		p := k.start(narrow, r)
		k.push("q", "p", `{"n":1}`, `{"n":2}`, `{"n":3}`)
		k.push("q", "other", `{"n":4}`, `{"n":5}`)
		k.wait(3 * time.Second)
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("the stop took %v, the calls had 7s to go", took)
		}
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls by the first process, want 2", n)
		}
		p = k.start(narrow, r)
		k.wait(40 * time.Second)
		seen := map[string]int{}
		for _, c := range k.fn.all() {
			seen[c.body]++
			if c.Attempt != 1 {
				t.Errorf("%s: attempt %d, but it never failed", c.body, c.Attempt)
			}
		}
		for n := 1; n <= 5; n++ {
			if seen[fmt.Sprintf(`{"n":%d}`, n)] != 1 {
				t.Errorf("calls = %v, want each event once", seen)
				break
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestStopCancelsWhatOutlastsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, time.Hour, bridge.Response{Status: 200})
		})
		p := k.start(func(c *dispatch.Config) { c.Targets[0].HTTP.Timeout = time.Hour; c.StopTimeout = 12 * time.Second }, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("the stop took %v, want the grace of 10s", took)
		}
		if n, m := k.depth("q", "r"), k.timers("r"); n != 0 || m != 1 {
			t.Errorf("%d messages and %d timers left, want the event's retry", n, m)
		}
	})
}

func TestSlowCallDoesNotHoldItsPartition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		end       bridge.Response
		took      time.Duration
		wantCalls int
	}{
		{"ends well", bridge.Response{Status: 200}, 20 * time.Second, 1},
		{"ends badly", bridge.Response{Status: 500}, 20 * time.Second, 2},
		{"is refused", bridge.Response{Status: 400}, 20 * time.Second, 2},
		{"times out", bridge.Response{Status: 200}, 40 * time.Second, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					if c.body == `{"slow":1}` && c.n == 1 {
						return after(ctx, tt.took, tt.end)
					}
					return bridge.Response{Status: 200}
				})
				p := k.start(nil, r)
				pushed := time.Now()
				k.push("q", "p", `{"slow":1}`, `{"with":1}`)
				k.wait(100 * time.Millisecond)
				k.push("q", "p", `{"next":1}`)
				k.wait(3 * time.Second)
				if calls := k.fn.of(`{"next":1}`); len(calls) != 1 || calls[0].at.Sub(pushed) > 3*time.Second {
					t.Errorf("the event behind a slow one was not called within 3s: %v", calls)
				}
				if k.timers("r") != 1 {
					t.Errorf("%d timers while the slow call runs, want its retry", k.timers("r"))
				}
				k.wait(2 * time.Minute)
				slow := k.fn.of(`{"slow":1}`)
				if len(slow) != tt.wantCalls {
					t.Fatalf("%d calls of the slow event, want %d", len(slow), tt.wantCalls)
				}
				if tt.wantCalls == 2 {
					// Due at the call's deadline of 30s and the backoff of 5s.
					if at := slow[1].at.Sub(slow[0].at); at < 35*time.Second || at > 36*time.Second || slow[1].Attempt != 2 {
						t.Errorf("second call after %v as attempt %d", at, slow[1].Attempt)
					}
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestSlowCallOfTheLastAttemptEndsAsExhausted(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.MaxAttempts = 1
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 20*time.Second, bridge.Response{Status: 500})
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(2 * time.Minute)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		graves := k.graves("r")
		if len(graves) != 1 || graves[0].reason.Class != bridge.FailureExhausted || graves[0].reason.Attempts != 1 {
			t.Errorf("dead letters = %+v", graves)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestAttemptsRunOut(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.MaxAttempts = 3
		k.fn.statuses(500, 500, 503, 500)
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(10 * time.Minute)
		if n := len(k.fn.all()); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		graves := k.graves("r")
		if len(graves) != 1 || graves[0].reason.Class != bridge.FailureExhausted || graves[0].reason.Attempts != 3 || graves[0].reason.Status != 503 {
			t.Errorf("dead letters = %+v", graves)
		}
		if g := graves[0]; g.reason.Last.Sub(g.reason.First).Round(time.Second) != 35*time.Second {
			t.Errorf("first %v, last %v; want 35s between them", g.reason.First, g.reason.Last)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestTargetThatAsksForTimeIsHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if len(k.fn.all()) <= 1 {
				return bridge.Response{Status: 429, Header: http.Header{"Retry-After": {"60"}}}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		for i := range 10 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(50 * time.Second)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls while the target is held, want 1", n)
		}
		if s := p.Status()[0]; s.State != dispatch.StateHeld {
			t.Errorf("status = %+v", s)
		}
		if problems := p.Problems(); len(problems) > 0 {
			t.Errorf("a held target is a problem: %v", problems)
		}
		k.wait(time.Minute)
		for _, c := range k.fn.all() {
			if c.Attempt != 1 {
				t.Errorf("%s: attempt %d; a held call does not count", c.body, c.Attempt)
			}
		}
		if n := len(k.fn.all()); n != 12 {
			t.Errorf("%d calls in the end, want 12", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestGoneTargetIsPaused(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(410)
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		k.push("q", "p", `{"b":1}`)
		k.wait(time.Hour)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		if s := p.Status()[0]; s.State != dispatch.StateDisabled {
			t.Errorf("status = %+v", s)
		}
		if len(k.graves("r")) != 1 || k.depth("q", "r") != 1 {
			t.Errorf("%d dead letters, %d messages; want the 410 dead and the other waiting", len(k.graves("r")), k.depth("q", "r"))
		}
		p.stop()
	})
}

func TestPanickingSenderIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.n == 1 {
				panic("boom")
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(10 * time.Second)
		if calls := k.fn.all(); len(calls) != 2 || calls[1].Attempt != 2 {
			t.Errorf("calls = %+v", calls)
		}
		k.settledAll(r)
		p.stop()
	})
}

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
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		t.Run(string(ordering), func(t *testing.T) {
			t.Parallel()
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
}

func TestRetryTooLargeForATimerIsADeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		p := k.start(nil, r)
		payload := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
		_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "p", TransactionID: "large", Payload: []byte(payload)}})
		if err != nil {
			t.Fatal(err)
		}
		k.wait(time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || graves[0].reason.Class != bridge.FailureTooLarge || string(graves[0].Payload) != payload {
			t.Fatalf("%d dead letters", len(graves))
		}
		if !strings.Contains(graves[0].reason.Error, "1 MiB") || !strings.Contains(graves[0].reason.Error, "answered 500") {
			t.Errorf("reason = %+v", graves[0].reason)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestHangingTargetDelaysNoOtherRoute(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := testRoute("a", "qa"), testRoute("b", "qb")
		a.Target, b.Target = "hanging", "fine"
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			if c.target == "hanging" {
				return after(ctx, time.Hour, bridge.Response{Status: 200})
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(func(c *dispatch.Config) {
			c.Settings.MaxInFlight = 40
			for i := range c.Targets {
				c.Targets[i].Concurrency = 40
			}
		}, a, b)
		for i := range 200 {
			k.push("qa", fmt.Sprint("p", i%10), fmt.Sprintf(`{"a":%d}`, i))
		}
		k.wait(10 * time.Second)
		for i := range 50 {
			pushed := time.Now()
			body := fmt.Sprintf(`{"b":%d}`, i)
			k.push("qb", "p", body)
			k.wait(time.Second)
			if calls := k.fn.of(body); len(calls) != 1 || calls[0].at.Sub(pushed) > 100*time.Millisecond {
				t.Fatalf("%s: %v, want one call within 100ms", body, calls)
			}
		}
		p.stop()
	})
}

func TestCallsStayBelowTheCeilings(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Concurrency = 7
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 50*time.Millisecond, bridge.Response{Status: 200})
		})
		p := k.start(nil, r)
		for i := range 300 {
			k.push("q", fmt.Sprint("p", i%30), fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(10 * time.Second)
		if k.fn.most != 7 || len(k.fn.all()) != 300 {
			t.Errorf("at most %d calls at once, %d in all; want 7 and 300", k.fn.most, len(k.fn.all()))
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestPausedRouteTakesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Paused = true
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Hour)
		if n := len(k.fn.all()); n != 0 || p.Status()[0].State != dispatch.StatePaused {
			t.Errorf("%d calls, status %+v", n, p.Status()[0])
		}
		p.stop()
	})
}

func TestSubscribeNewSkipsWhatWasThere(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Subscribe = "new"
		k.push("q", "p", `{"old":1}`)
		k.wait(time.Second)
		p := k.start(nil, r)
		k.wait(time.Second)
		k.push("q", "p", `{"new":1}`)
		k.wait(time.Second)
		if n := len(k.fn.all()); n != 1 || len(k.fn.of(`{"new":1}`)) != 1 {
			t.Errorf("calls = %+v", k.fn.all())
		}
		p.stop()
	})
}
