package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

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
