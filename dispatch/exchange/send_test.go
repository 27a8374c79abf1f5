package exchange_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

func TestSendTriesOnceMoreWhereNothingWasSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		again bool          // what each try says
		takes time.Duration // each try
		left  time.Duration // of the caller's context
		calls int
	}{
		{"answered", false, 0, time.Minute, 1},
		{"a stale connection", true, 0, time.Minute, 2},
		{"slow to fail", true, 600 * time.Millisecond, time.Minute, 1},
		{"no time left", true, 0, 100 * time.Millisecond, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.left)
				defer cancel()
				calls := 0
				resp := exchange.Send(ctx, 0, func(context.Context) (bridge.Response, bool) {
					calls++
					time.Sleep(tt.takes)
					return bridge.Response{Status: calls}, tt.again
				})
				if calls != tt.calls || resp.Status != calls || resp.Elapsed <= 0 {
					t.Errorf("%d calls, Send = %+v; want %d, the last one's response, and its time", calls, resp, tt.calls)
				}
			})
		})
	}
}

func TestSendHasTheSoonerDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ timeout, left, want time.Duration }{
			{0, time.Minute, time.Minute},
			{time.Second, time.Minute, time.Second},
			{time.Minute, time.Second, time.Second},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.left)
			exchange.Send(ctx, tt.timeout, func(ctx context.Context) (bridge.Response, bool) {
				if deadline, _ := ctx.Deadline(); time.Until(deadline) != tt.want {
					t.Errorf("timeout %s in a context of %s: the call has %s, want %s", tt.timeout, tt.left, time.Until(deadline), tt.want)
				}
				return bridge.Response{Status: 200}, false
			})
			cancel()
		}
	})
}
