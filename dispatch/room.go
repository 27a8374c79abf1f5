package dispatch

import (
	"container/list"
	"context"
	"time"
)

// popped counts messages between their pop and their settle.
func (l *limiter) popped(c *claim, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.unsettled += n
	if n < 0 {
		l.signal(c.target)
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

// looker is a feed that waits for room.
type looker struct {
	claim    *claim
	ask      ask
	patience time.Time // when a trickle is enough; zero: no room seen yet
	got      chan int  // what it may pop: reserved
}

// awaitRoom waits until a route may pop n events. It waits a moment for more
// than a trickle: slots come back one by one, and a pop costs the same for one
// event as for many. Those that wait are served in turn, and their room is
// reserved as if they had asked for that: else all of them would take the same.
func (l *limiter) awaitRoom(ctx context.Context, c *claim, a ask) (n int, reserved bool, err error) {
	k := &looker{claim: c, ask: a, got: make(chan int, 1)}
	l.mu.Lock()
	if c.target.lookers.Len() == 0 { // nobody is overtaken
		if n, _ = l.offer(k, time.Now()); n > 0 {
			if a.reserve {
				c.expect(n)
			}
			l.mu.Unlock()
			return n, a.reserve, nil
		}
	}
	place := l.line(k)
	l.signal(c.target)
	l.mu.Unlock()
	select {
	case n := <-k.got:
		return n, true, nil
	case <-ctx.Done():
		l.leave(k, place)
		return 0, false, context.Cause(ctx)
	}
}

// line puts a feed at the end of the line of its target.
func (l *limiter) line(k *looker) *list.Element {
	t := k.claim.target
	if t.lookers.Len() == 0 {
		t.looking = l.looking.PushBack(t)
	}
	return t.lookers.PushBack(k)
}

func (l *limiter) unline(t *share, place *list.Element) {
	if t.lookers.Remove(place); t.lookers.Len() == 0 {
		l.looking.Remove(t.looking)
	}
}

// leave ends a wait for room; what was granted in the same moment is given
// back.
func (l *limiter) leave(k *looker, place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case n := <-k.got:
		k.claim.expect(-n)
	default:
		l.unline(k.claim.target, place)
	}
	l.signal(k.claim.target)
}

// offer is what a feed may pop now, if that is enough for it, and when that
// changes by itself; zero: not by time. mu is held.
func (l *limiter) offer(k *looker, now time.Time) (n int, next time.Time) {
	c := k.claim
	n, until := l.room(c, now, k.ask.probes)
	enough, patient := c.target.enough(min(c.own.max, c.target.max), now)
	enough = min(enough, k.ask.most)
	if n > 0 && k.patience.IsZero() {
		k.patience = now.Add(patient)
	}
	switch {
	case n >= enough, n > 0 && !now.Before(k.patience):
		if c.target.lookers.Len() > 1 {
			n = min(n, enough) // others wait as well
		}
		return min(n, k.ask.most), time.Time{}
	case n > 0:
		return 0, k.patience
	case until.After(now):
		return 0, until
	}
	return 0, time.Time{}
}

// signal says that room for events of a target may have grown; mu is held.
func (l *limiter) signal(t *share) {
	now := time.Now()
	if !l.short {
		l.serveLookers(t, now)
		return
	}
	// The pool was short of room: others wait for it.
	l.short = false
	for range l.looking.Len() {
		place := l.looking.Front()
		if place == nil || l.short {
			return
		}
		l.looking.MoveToBack(place)
		l.serveLookers(place.Value.(*share), now)
	}
}

// serveLookers grants what room a target has to the feeds that wait, in turn;
// mu is held.
func (l *limiter) serveLookers(t *share, now time.Time) {
	var next time.Time
	for place := t.lookers.Front(); place != nil; {
		k, after := place.Value.(*looker), place.Next()
		n, at := l.offer(k, now)
		if n > 0 {
			l.unline(t, place)
			k.claim.expect(n)
			k.got <- n
		} else if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
		if n == 0 && l.refused(k.claim, now) {
			break
		}
		place = after
	}
	if !next.IsZero() {
		l.lookAt(t, now, next)
	}
}

// refused says that a feed without an offer lacks what those behind it lack as
// well. Only a route's own bounds, and what may be popped for a probe, differ.
func (l *limiter) refused(c *claim, now time.Time) bool {
	ahead := c.target.ahead()
	l.short = l.short || l.pool.room(ahead) <= 0
	return c.own.room(ahead) > 0 && c.unsettled < c.maxUnset && c.target.breaker.state(now) != breakerHalfOpen
}

// lookAt serves the feeds that wait for a target's room at a time; mu is held.
func (l *limiter) lookAt(t *share, now, at time.Time) {
	if !t.nextLook.IsZero() && !at.Before(t.nextLook) {
		return
	}
	t.nextLook = at
	time.AfterFunc(at.Sub(now), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.nextLook.Equal(at) {
			t.nextLook = time.Time{}
			l.serveLookers(t, time.Now())
		}
	})
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
