package queen

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"
)

// How a call that was answered 429 is sent again, to the same node (the
// official clients' numbers: queen-contract.md §12). It was not begun, so
// every call may be.
const (
	throttleTries = 10 // of a call that is no long poll
	throttleFirst = 500 * time.Millisecond
	throttleMax   = 30 * time.Second
	// maxAsked is the longest wait that is waited out because somebody asks
	// for it: the proxy asks for 1 to 60 s, a maintenance page for hours.
	maxAsked = time.Minute
)

// Values of call.tries.
const (
	onlyOnce   = 1
	withoutEnd = -1
)

// pause says how long to wait after the try'th answer, from 1, before the call
// is sent again; false: the answer is the caller's. A wait that outlasts the
// call's time is not begun.
func (k *call) pause(ctx context.Context, a *answer, try int) (time.Duration, bool) {
	if a.status != http.StatusTooManyRequests {
		return 0, false
	}
	now := time.Now()
	d := retryAfter(a.header, now)
	if d == 0 {
		d = min(throttleFirst<<min(try-1, 10), throttleMax)
	}
	switch {
	case k.tries == withoutEnd:
		d = min(d, maxAsked)
	case try >= k.maxTries() || d > maxAsked:
		return 0, false
	}
	d = jitter(d)
	if deadline, ok := ctx.Deadline(); ok && now.Add(d).After(deadline) {
		return 0, false
	}
	return d, k.until.IsZero() || !now.Add(d).After(k.until)
}

func (k *call) maxTries() int {
	if k.tries > 0 {
		return k.tries
	}
	return throttleTries
}

// jitter is d ± 20 %.
func jitter(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5+1) }

// sleep waits for d or the end of ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
