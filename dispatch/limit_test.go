package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
)

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
