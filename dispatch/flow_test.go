package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// withBreaker is a target with the breaker of config.md.
func withBreaker(c *dispatch.Config) {
	for i := range c.Targets {
		c.Targets[i].Breaker = bridge.Breaker{Enabled: true, Failures: 10, Open: 10 * time.Second, MaxOpen: 5 * time.Minute}
	}
}

// refused is a call that did not reach the function.
func refused(context.Context, call) bridge.Response {
	return bridge.Response{Err: errors.New("connection refused"), Class: bridge.FailureConnect}
}

// pushMany pushes n events over 20 partitions.
func (k *kit) pushMany(queueName string, n int) {
	k.Helper()
	for p := range min(n, 20) {
		var payloads []string
		for i := p; i < n; i += 20 {
			payloads = append(payloads, fmt.Sprintf(`{"n":%d}`, i))
		}
		k.push(queueName, fmt.Sprint("p", p), payloads...)
	}
}

// between counts the calls within a time.
func (f *function) between(from, to time.Time) (n int) {
	for _, c := range f.all() {
		if !c.at.Before(from) && c.at.Before(to) {
			n++
		}
	}
	return n
}

// user-problems: "open breaker drove rows to terminal DEAD".
func TestOpenBreakerKillsNothingAndCostsNoAttempts(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := routeOf(ordering)
			r.Retry.MaxAge = 24 * time.Hour
			k.fn.answers(refused)
			p := k.start(withBreaker, r)
			k.pushMany("q", 200)
			k.wait(2 * time.Hour)
			if n := len(k.graves("r")); n > 0 {
				t.Fatalf("%d dead letters of an outage shorter than max_age", n)
			}
			down := len(k.fn.all())
			if most := 20 + 2*60/5*2 + 10; down > most {
				t.Errorf("%d calls in 2 hours of outage, want at most %d: one probe per opening", down, most)
			}
			if s := p.Status()[0]; s.State != dispatch.StateBroken {
				t.Errorf("status = %+v", s)
			}
			if p.metric(t, "target_breaker_state", "target=fn") == 0 || p.metric(t, "target_breaker_opened_total", "target=fn") < 10 {
				t.Error("the metrics do not show the open breaker")
			}
			k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
			k.wait(15 * time.Minute)
			for _, c := range k.fn.all() {
				if c.Attempt != 1 {
					t.Fatalf("%s: attempt %d, no call counted", c.body, c.Attempt)
				}
			}
			if n := len(k.fn.all()) - down; n != 200 {
				t.Errorf("%d calls after the outage, want each event once", n)
			}
			k.settledAll(r)
			p.stop()
		})
	})
}

// A failure of Lambda itself counts the attempt, and toward the breaker; what
// nobody gets through to until somebody acts opens it at once.
func TestFailureOfTheTargetItselfOpensItsBreaker(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		resp    bridge.Response
		calls   int
		attempt int // of the calls after the outage
		log     string
	}{
		{"transient", bridge.Response{Status: 502, Judged: &bridge.Judgement{Scope: bridge.ScopeTarget}}, 10, 2, "level=WARN msg=\"breaker open"},
		{"lost connection", bridge.Response{Err: errors.New("reset"), Class: bridge.FailureConnect, Sent: true, Judged: &bridge.Judgement{Scope: bridge.ScopeTarget}}, 10, 2, "level=WARN msg=\"breaker open"},
		{"broken", bridge.Response{Status: 502, Judged: &bridge.Judgement{Kind: bridge.Hold, Scope: bridge.ScopeBroken}}, 1, 1, "level=ERROR msg=\"breaker open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.answers(func(context.Context, call) bridge.Response { return tt.resp })
				p := k.start(func(c *dispatch.Config) { withBreaker(c); c.Targets[0].Concurrency = 1 }, r)
				k.pushMany("q", 20)
				k.wait(time.Second)
				if n := len(k.fn.all()); n != tt.calls || p.Status()[0].State != dispatch.StateBroken {
					t.Errorf("%d calls, status %s; want %d and an open breaker", n, p.Status()[0].State, tt.calls)
				}
				if !k.logs.has(tt.log) {
					t.Errorf("the log lacks %q", tt.log)
				}
				called := k.fn.all()
				k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
				k.wait(10 * time.Minute)
				for _, c := range called {
					if again := k.fn.of(c.body); len(again) != 2 || again[1].Attempt != tt.attempt {
						t.Errorf("%s: %d calls, the last is attempt %d, want %d", c.body, len(again), again[len(again)-1].Attempt, tt.attempt)
					}
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestMaxAgeEndsEventsOfABrokenTarget(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := routeOf(ordering)
			r.Retry.MaxAge = time.Hour
			k.fn.answers(refused)
			p := k.start(withBreaker, r)
			k.pushMany("q", 20)
			k.wait(3 * time.Hour)
			dead := map[string]bool{}
			for _, g := range k.graves("r") {
				dead[g.Origin.TransactionID] = true
				if g.reason.Class != bridge.FailureExpired || g.reason.Attempts > 1 || g.reason.Error == "" {
					t.Errorf("reason = %+v", g.reason)
				}
			}
			if len(dead) < 10 {
				t.Errorf("%d dead letters, want those that opened the breaker at least", len(dead))
			}
			overdue := time.Now().Add(-r.Retry.MaxAge - 10*time.Minute)
			for _, c := range k.fn.all() {
				if c.n == 1 && c.at.Before(overdue) && !dead["t:"+c.body] {
					t.Errorf("%s failed first at %s and is not dead", c.body, c.at)
				}
			}
			p.stop()
		})
	})
}

// user-problems: "synchronised probes".
func TestReplicasDoNotProbeTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(refused)
		for range 3 {
			k.start(withBreaker, r)
		}
		k.pushMany("q", 300)
		k.wait(time.Hour)
		var probes []time.Time
		for _, c := range k.fn.all() {
			if c.at.After(time.Now().Add(-40 * time.Minute)) {
				probes = append(probes, c.at)
			}
		}
		if len(probes) < 10 {
			t.Fatalf("%d probes in 40 minutes", len(probes))
		}
		together := 0
		for i := 1; i < len(probes); i++ {
			if probes[i].Sub(probes[i-1]) < 100*time.Millisecond {
				together++
			}
		}
		if 3*together > len(probes) {
			t.Errorf("%d of %d probes came together", together, len(probes))
		}
	})
}

func TestBreakerProbesWithOneRealEventThenStartsSlowly(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(refused)
		p := k.start(withBreaker, r)
		k.pushMany("q", 100)
		k.wait(5 * time.Second)
		before := len(k.fn.all())
		k.fn.most = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, time.Second, bridge.Response{Status: 200})
		})
		var seen []int // calls in the first seconds after the probe
		k.wait(5 * time.Second)
		for len(k.fn.all()) == before {
			k.wait(100 * time.Millisecond)
		}
		first := k.fn.all()[before].at
		k.wait(5 * time.Second)
		for s := range 4 {
			seen = append(seen, k.fn.between(first.Add(time.Duration(s)*time.Second), first.Add(time.Duration(s+1)*time.Second)))
		}
		if seen[0] != 1 || seen[1] > 2 || seen[2] > 4 || !slices.IsSorted(seen) {
			t.Errorf("calls per second after the outage = %v, want one probe, then a slow start", seen)
		}
		k.wait(5 * time.Minute)
		k.settledAll(r)
		p.stop()
	})
}

// user-problems: "throttle = free nack", "429 has its own, longer schedule".
func TestThrottleCostsNothingAndWaitsLonger(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.n <= 20 { // more often than the route has attempts
				return bridge.Response{Status: 429, Header: http.Header{}}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Hour)
		calls := k.fn.of(`{"a":1}`)
		if len(calls) != 21 || len(k.graves("r")) != 0 {
			t.Fatalf("%d calls, %d dead letters; want 21 and none", len(calls), len(k.graves("r")))
		}
		for i, c := range calls {
			if c.Attempt != 1 {
				t.Errorf("call %d: attempt %d", i, c.Attempt)
			}
			if i > 0 && c.at.Sub(calls[i-1].at) < 30*time.Second {
				t.Errorf("call %d came %s after the one before, want 30s at least", i, c.at.Sub(calls[i-1].at))
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestOverloadLowersTheLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		capacity := 10 // of the function: what is above gets 503
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			k.fn.mu.Lock()
			over := k.fn.open > capacity
			k.fn.mu.Unlock()
			if over {
				return after(ctx, 20*time.Millisecond, bridge.Response{Status: 503, Header: http.Header{}})
			}
			return after(ctx, 100*time.Millisecond, bridge.Response{Status: 200})
		})
		p := k.start(nil, r)
		k.pushMany("q", 3000)
		k.wait(20 * time.Second)
		if got := p.metric(t, "target_limit", "target=fn"); got < 5 || got > 16 {
			t.Errorf("limit = %v of a function that takes 10 at once", got)
		}
		calls := len(k.fn.all())
		k.wait(10 * time.Second)
		if rate := float64(len(k.fn.all())-calls) / 10; rate < 60 {
			t.Errorf("%v calls a second, want most of the 100 that the function can do", rate)
		}
		p.stop()
	})
}

func TestRateLimitHoldsWithoutHoldingSlots(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r, other := testRoute("r", "q"), testRoute("other", "q2")
			r.Ordering, other.Target = ordering, "fast"
			p := k.start(func(c *dispatch.Config) {
				c.Targets[0].Rate = bridge.TargetRate{PerSecond: 5, Burst: 10}
			}, r, other)
			k.pushMany("q", 200)
			begin := time.Now()
			k.wait(20*time.Second + 100*time.Millisecond)
			limited := len(k.fn.all())
			if limited < 105 || limited > 111 {
				t.Errorf("%d calls in 20s, want 10 + 5 a second", limited)
			}
			for s := range 15 { // no second has more than rate and burst
				from := begin.Add(time.Duration(s+3) * time.Second)
				if n := k.fn.between(from, from.Add(time.Second)); n > 6 {
					t.Errorf("%d calls in second %d", n, s+3)
				}
			}
			if s := p.Status()[0]; s.State != dispatch.StateLimited {
				t.Errorf("status = %+v, want limited", s)
			}
			if got := p.Targets(); len(got) != 2 || got[0].Target != "fast" || got[1].State != dispatch.StateLimited || got[1].InFlight != 0 {
				t.Errorf("targets = %+v", got)
			}
			if p.metric(t, "target_rate_wait_seconds_total", "target=fn") <= 0 {
				t.Error("no wait for the rate limit is counted")
			}
			k.push("q2", "p", `{"x":1}`)
			k.wait(100 * time.Millisecond)
			if len(k.fn.of(`{"x":1}`)) != 1 {
				t.Error("the rate limit of one target holds up another")
			}
			k.wait(30 * time.Second)
			k.settledAll(r)
			p.stop()
		})
	})
}

func TestRateLimitedRoutePopsOnlyWhatItMayCallSoon(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(func(c *dispatch.Config) { c.Targets[0].Rate = bridge.TargetRate{PerSecond: 0.1, Burst: 1} }, r)
		k.pushMany("q", 50)
		k.wait(65 * time.Second)
		if calls, popped := len(k.fn.all()), p.metric(t, "popped_total"); calls != 7 || popped > 8 {
			t.Errorf("%d calls, %v popped in 65s; want 7 calls and hardly more pops", calls, popped)
		}
		p.stop()
	})
}

// Routes that wait for a busy target pop one event for one free slot: what is
// popped beyond that waits while its lease runs.
func TestWaitingRoutesPopNoMoreThanTheTargetTakes(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		const routes, events = 4, 6
		leased := make(chan float64, routes*events)
		var p *process
		started := make(chan struct{})
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			<-started
			resp := after(ctx, time.Second, bridge.Response{Status: 200})
			leased <- p.metric(t, "target_waiting", "target=fn")
			return resp
		})
		var all []bridge.Route
		for i := range routes {
			r := testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i))
			for n := range events {
				k.push(r.Queue, fmt.Sprint("p", n), fmt.Sprintf(`{"n":%d}`, n))
			}
			all = append(all, r)
		}
		p = k.start(func(c *dispatch.Config) { c.Targets[0].Concurrency = 1 }, all...)
		close(started)
		k.wait(time.Minute)
		for i := range routes * events {
			if n := <-leased; i > routes && n > 0 { // at first each popped without waiting
				t.Fatalf("call %d: %v events were popped that wait for the one slot", i+1, n)
			}
		}
		for _, r := range all {
			k.settledAll(r)
		}
		p.stop()
	})
}

func TestTargetIsDisabledAfterFailingForLong(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.MaxAge = 200 * time.Hour
		k.fn.answers(refused)
		p := k.start(func(c *dispatch.Config) {
			withBreaker(c)
			c.Targets[0].DisableAfter = 12*time.Hour + 30*time.Minute
		}, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(12*time.Hour + 10*time.Minute)
		if s := p.Status()[0]; s.State != dispatch.StateBroken {
			t.Errorf("status after 12h = %+v", s)
		}
		if n := p.metric(t, "target_failing_alerts_total", "after=12h0m0s"); n != 1 || !k.logs.has("failing without one success") {
			t.Errorf("%v alerts after 12h, want one", n)
		}
		k.wait(40 * time.Minute)
		calls := len(k.fn.all())
		if s := p.Status()[0]; s.State != dispatch.StateDisabled || p.metric(t, "target_disabled") != 1 {
			t.Errorf("status after 13h = %+v", s)
		}
		k.wait(time.Hour)
		if n := len(k.fn.all()); n != calls {
			t.Errorf("%d calls of a disabled target", n-calls)
		}
		if !k.logs.has("failed for disable_after") {
			t.Error("the log does not say why")
		}
		p.stop()
	})
}

// user-problems: "one hanging target backed up everyone", "hanging endpoint
// occupies all slots".
func TestHangingTargetTakesNoSlotsOfOthers(t *testing.T) {
	t.Parallel()
	deliveries := func(t *testing.T, hanging bool) (n int) {
		inBubble(t, nil, func(k *kit) {
			routes := []bridge.Route{testRoute("fine", "fine"), testRoute("hang", "hang")}
			routes[0].Target, routes[1].Target = "fine", "hanging"
			k.fn.answers(func(ctx context.Context, c call) bridge.Response {
				if c.target == "hanging" {
					return after(ctx, time.Hour, bridge.Response{Status: 200})
				}
				return after(ctx, 50*time.Millisecond, bridge.Response{Status: 200})
			})
			p := k.start(func(c *dispatch.Config) { c.Settings.MaxInFlight = 20 }, routes...)
			if hanging {
				k.pushMany("hang", 500)
				k.wait(time.Minute)
			}
			k.pushMany("fine", 3000)
			k.wait(10 * time.Second)
			n = len(slices.DeleteFunc(k.fn.all(), func(c call) bool { return c.target == "hanging" }))
			p.stop()
		})
		return n
	}
	alone, beside := deliveries(t, false), deliveries(t, true)
	if alone < 1000 || float64(beside) < 0.95*float64(alone) {
		t.Errorf("%d deliveries beside a hanging target, %d without; want 0.95 of them", beside, alone)
	}
}

func TestReplicasShareOneRateLimit(t *testing.T) {
	t.Parallel()
	for _, rate := range []bridge.TargetRate{{PerSecond: 20, Shared: true}, {PerSecond: 1, Burst: 5, Shared: true}, {PerSecond: 60, Shared: true}} {
		t.Run(fmt.Sprint(rate.PerSecond), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				kv := 0
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if r.URL.Path == "/api/v1/kv" && strings.Contains(readBody(r), `"incr"`) {
						kv++
					}
					return devbroker.Fault{}
				})
				limited := func(c *dispatch.Config) { c.Targets[0].Rate = rate }
				a, b := k.start(limited, testRoute("r", "q")), k.start(limited, testRoute("r", "q"))
				k.pushMany("q", int(rate.PerSecond*30))
				begin := time.Now()
				k.wait(20 * time.Second)
				got, most := len(k.fn.all()), int(rate.PerSecond*20)+2*max(rate.Burst, int(rate.PerSecond))
				if least := int(0.75 * rate.PerSecond * 20); got > most || got < least {
					t.Errorf("%d calls in 20s, want %d to %d", got, least, most)
				}
				for s := range 18 {
					from := begin.Add(time.Duration(s+1) * time.Second)
					if n := k.fn.between(from, from.Add(time.Second)); n > 2*max(rate.Burst, int(rate.PerSecond)) {
						t.Errorf("%d calls in second %d", n, s+1)
					}
				}
				if perSecond := float64(kv) / 20; perSecond > 2*4+1 {
					t.Errorf("%v KV writes a second, want four of each process at most", perSecond)
				}
				for _, p := range []*process{a, b} {
					if n := p.metric(t, "attempts_total"); n < float64(got)/10 {
						t.Errorf("one of the processes made %v of %d calls", n, got)
					}
				}
				k.wait(5 * time.Minute)
				k.settledAll(testRoute("r", "q"))
			})
		})
	}
}

func TestSharedRateLimitGoesOnWithoutKV(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]devbroker.Fault{
		"away":    {Status: 503, Body: `{"error":"kv_unavailable","reason":"kv_pool_exhausted"}`},
		"off":     {Status: 503, Body: `{"error":"kv_disabled","reason":"kv_disabled"}`},
		"refused": {Status: 403, Body: `{"error":"feature_gated","reason":"feature_gated"}`},
		"busy":    {Status: 429, Body: `{"error":"rate_limited","reason":"rate_limited"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				p := k.start(func(c *dispatch.Config) { c.Targets[0].Rate = bridge.TargetRate{PerSecond: 20, Shared: true} }, r)
				k.pushMany("q", 1000)
				k.wait(20 * time.Second)
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if r.URL.Path == "/api/v1/kv" {
						return fault
					}
					return devbroker.Fault{}
				})
				k.wait(2 * time.Second)
				before := len(k.fn.all())
				k.wait(20 * time.Second)
				if n := len(k.fn.all()) - before; n < 20*20/10 || n > 20*20+20 {
					t.Errorf("%d calls in 20s without KV, want some and at most the budget", n)
				}
				if !k.logs.has("rate limit not shared") || p.metric(t, "target_rate_alone", "target=fn") != 1 {
					t.Error("nothing says that the limit is not shared")
				}
				k.faults.set(nil)
				k.wait(time.Minute)
				if !k.logs.has("rate limit shared again") || p.metric(t, "target_rate_alone", "target=fn") != 0 {
					t.Error("the limit is not shared again")
				}
				p.stop()
			})
		})
	}
}

func TestSharedRateLimitWithoutKVFromTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/kv" && strings.Contains(readBody(r), `"incr"`) {
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		r := testRoute("r", "q")
		p := k.start(func(c *dispatch.Config) { c.Targets[0].Rate = bridge.TargetRate{PerSecond: 50, Shared: true} }, r)
		k.pushMany("q", 500)
		k.wait(22 * time.Second)
		if n := len(k.fn.all()); n < 80 || n > 110 {
			t.Errorf("%d calls, want a tenth of the budget: how many share it is not known", n)
		}
		p.stop()
	})
}
