package dispatch

import (
	"context"
	"time"
)

// popped counts messages between their pop and their settle.
func (l *limiter) popped(c *claim, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.unsettled += n
	if n < 0 {
		l.signal()
	}
}

// ask is what a feed wants room for.
type ask struct {
	most    int  // events, or partitions
	reserve bool // what it gets
	probes  int  // the most while the target's breaker is half-open
}

// room is how many events a route may pop now; mu is held. until is when that
// changes by itself; zero: not by time.
func (l *limiter) room(c *claim, now time.Time, probes int) (n int, until time.Time) {
	t, spare := c.target, c.maxUnset-c.unsettled
	if t.blocked(now) != nil {
		return 0, t.blockedUntil()
	}
	if t.breaker.state(now) == breakerHalfOpen {
		return max(0, min(spare, t.probeRoom(probes))), time.Time{}
	}
	ahead := t.ahead()
	n = min(l.pool.room(ahead), t.room(ahead), c.own.room(ahead), spare)
	n, until = t.rateRoom(n, now)
	return max(0, n), until
}

// awaitRoom waits until a route may pop. It waits a moment for more than a
// trickle: slots come back one by one, and a pop costs the same for one event
// as for many.
func (l *limiter) awaitRoom(ctx context.Context, c *claim, a ask) (int, error) {
	var patience time.Time // zero: no room seen yet
	for {
		n, wait, wake := l.look(c, a, &patience)
		if wake == nil {
			return n, nil
		}
		if err := sleepOr(ctx, wait, wake); err != nil {
			return 0, err
		}
	}
}

// look is one look at the room: enough (wake is nil), or how long to wait for
// a change.
func (l *limiter) look(c *claim, a ask, patience *time.Time) (n int, wait time.Duration, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	n, until := l.room(c, now, a.probes)
	enough, patient := c.target.enough(min(c.own.max, c.target.max), now)
	if n > 0 && patience.IsZero() {
		*patience = now.Add(patient)
	}
	switch {
	case n >= enough, n > 0 && !now.Before(*patience):
		n = min(n, a.most)
		if a.reserve {
			c.expect(n)
		}
		return n, 0, nil
	case n > 0:
		wait = patience.Sub(now)
	case until.After(now):
		wait = until.Sub(now)
	default:
		wait = time.Hour
	}
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return n, wait, l.wake
}

// trickle is how long a poller waits for more free slots once there is one.
const trickle = 2 * time.Millisecond

// sleepOr waits for d, for wake, or for the end of ctx, which is the error.
func sleepOr(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	select {
	case <-time.After(d):
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error { return sleepOr(ctx, d, nil) }
