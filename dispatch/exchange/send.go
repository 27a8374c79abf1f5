package exchange

import (
	"context"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// quickRetry bounds the time lost to the one retry in place.
const quickRetry = time.Second

// Send makes a call by once, within timeout; 0 leaves the deadline to ctx.
// Where once says that certainly nothing reached the function and another try
// may help (a stale idle connection, a refused one), it is called once more
// within a second (dispatch.md §4.5). Send sets Response.Elapsed.
func Send(ctx context.Context, timeout time.Duration, once func(context.Context) (resp bridge.Response, again bool)) bridge.Response {
	if deadline, ok := ctx.Deadline(); timeout > 0 && (!ok || time.Until(deadline) > timeout) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	begun := time.Now()
	resp, again := once(ctx)
	if again && time.Since(begun) < quickRetry/2 && pause(ctx, quickRetry/4) {
		resp, _ = once(ctx)
	}
	resp.Elapsed = max(time.Since(begun), 1)
	return resp
}

// pause waits for d, and says whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
