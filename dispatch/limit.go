package dispatch

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Reasons why a call is not begun. None of them is a failure of the event.
var (
	errStopping = errors.New("the dispatcher stops")
	errHeld     = errors.New("the target is held")
)

// quick is the time within which a call slot should have its next event at
// hand: events are popped ahead as far as recent calls were that fast.
const quick = 100 * time.Millisecond

// limiter grants the slots of calls: one pool for all routes, a share of it
// per target, a claim on that per route. Routes that wait are served in turn.
type limiter struct {
	mu   sync.Mutex
	pool level
	ring list.List     // of *claim with waiters
	wake chan struct{} // closed when room may have grown; nil while nobody watches
}

// level is one bound: slots used by calls, calls waiting for one, and events
// asked for that will wait. In the pool only those used count: what waits for
// a saturated target takes nothing from another.
type level struct{ max, used, waiting int }

func (l *level) full() bool { return l.used >= l.max }

// room is how many more events may be popped; ahead is the part of max that
// may be popped before slots are free.
func (l *level) room(ahead float64) int {
	return l.max - l.used - l.waiting + int(ahead*float64(l.max))
}

// share is a target's part of the pool, and what holds it back.
type share struct {
	level
	heldUntil time.Time
	disabled  bool    // the function answered 410: until restart
	paused    bool    // by configuration
	latency   float64 // seconds, moving average of recent calls; 0: unknown
}

// ahead is the part of a bound that may be popped ahead of free slots.
func (s *share) ahead() float64 {
	if s.latency <= 0 {
		return 0
	}
	return min(1, quick.Seconds()/s.latency)
}

// claim is a route's part of its target's share.
type claim struct {
	own       level
	target    *share
	waiters   list.List // of *waiter
	place     *list.Element
	unsettled int // messages popped and not yet settled
	maxUnset  int
}

type waiter struct {
	ready chan error // buffered: nil granted, else why not
}

func newLimiter(maxInFlight int) *limiter {
	return &limiter{pool: level{max: maxInFlight}}
}

func (l *limiter) newShare(limit int, paused bool) *share {
	return &share{level: level{max: limit}, paused: paused}
}

// newClaim bounds a route. What is popped and not settled is bounded too: a
// broker that refuses settles must not make the process grow.
func (l *limiter) newClaim(target *share, limit int) *claim {
	return &claim{own: level{max: limit}, target: target, maxUnset: 2*maxBatch + 4*limit}
}

// reshape changes the bounds of a target and of the routes that use it; what
// was learned of it stays.
func (l *limiter) reshape(s *share, limit int, paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.max, s.paused = limit, paused
	if paused {
		l.turnAway(s)
	}
	l.grant()
	l.signal()
}

// bound changes how many calls a route may make at once.
func (l *limiter) bound(c *claim, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.own.max, c.maxUnset = limit, 2*maxBatch+4*limit
	l.grant()
	l.signal()
}

// blocked says why no call may begin now, nil if one may.
func (s *share) blocked(now time.Time) error {
	if s.disabled || s.paused || now.Before(s.heldUntil) {
		return errHeld
	}
	return nil
}

func (l *limiter) canRun(c *claim) bool {
	return !l.pool.full() && !c.target.full() && !c.own.full()
}

// acquire waits for a slot. errHeld: the target is or became held; else the
// cause of ctx. The holder of a slot gives it back with release.
func (l *limiter) acquire(ctx context.Context, c *claim) error {
	l.mu.Lock()
	if ctx.Err() != nil { // also with a free slot: nothing begins after a stop
		l.mu.Unlock()
		return context.Cause(ctx)
	}
	if err := c.target.blocked(time.Now()); err != nil {
		l.mu.Unlock()
		return err
	}
	if c.waiters.Len() == 0 && l.canRun(c) {
		l.take(c)
		l.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan error, 1)}
	place := l.enqueue(c, w)
	l.mu.Unlock()
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
		return l.giveUp(ctx, c, w, place)
	}
}

func (l *limiter) enqueue(c *claim, w *waiter) *list.Element {
	place := c.waiters.PushBack(w)
	if c.place == nil {
		c.place = l.ring.PushBack(c)
	}
	c.expect(1)
	return place
}

// dequeue takes a waiter out, wherever it stands.
func (l *limiter) dequeue(c *claim, place *list.Element) {
	c.waiters.Remove(place)
	if c.waiters.Len() == 0 {
		l.ring.Remove(c.place)
		c.place = nil
	}
	c.expect(-1)
}

func (c *claim) expect(n int) {
	c.target.waiting += n
	c.own.waiting += n
}

// expect reserves room for n events that are being popped; negative n gives it
// back.
func (l *limiter) expect(c *claim, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.expect(n)
	if n < 0 {
		l.signal()
	}
}

// giveUp ends a wait whose context ended. The slot may have been granted in
// the same moment: it is passed on.
func (l *limiter) giveUp(ctx context.Context, c *claim, w *waiter, place *list.Element) error {
	l.mu.Lock()
	select {
	case err := <-w.ready:
		if err == nil {
			l.free(c)
		}
	default:
		l.dequeue(c, place)
		l.signal()
	}
	l.mu.Unlock()
	return context.Cause(ctx)
}

func (l *limiter) take(c *claim) {
	l.pool.used++
	c.target.used++
	c.own.used++
}

// release gives a slot back; took is the duration of its call.
func (l *limiter) release(c *claim, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.target.observe(took)
	l.free(c)
}

func (s *share) observe(took time.Duration) {
	if s.latency == 0 {
		s.latency = took.Seconds()
		return
	}
	s.latency += (took.Seconds() - s.latency) / 16
}

func (l *limiter) free(c *claim) {
	l.pool.used--
	c.target.used--
	c.own.used--
	l.grant()
	l.signal()
}

// grant serves the waiting routes in turn while slots last.
func (l *limiter) grant() {
	for tries := l.ring.Len(); tries > 0 && !l.pool.full(); {
		front := l.ring.Front()
		if front == nil {
			return
		}
		c := front.Value.(*claim)
		if !l.canRun(c) {
			l.ring.MoveToBack(front)
			tries--
			continue
		}
		place := c.waiters.Front()
		w := place.Value.(*waiter)
		l.ring.MoveToBack(front)
		l.dequeue(c, place)
		l.take(c)
		w.ready <- nil
		tries = l.ring.Len()
	}
}

// hold lets no call to a target begin before until, and turns away those that
// wait for a slot.
func (l *limiter) hold(s *share, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(s.heldUntil) {
		s.heldUntil = until
	}
	l.turnAway(s)
}

// disable lets no call to a target begin until the process restarts.
func (l *limiter) disable(s *share) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed = !s.disabled
	s.disabled = true
	l.turnAway(s)
	return changed
}

func (l *limiter) turnAway(s *share) {
	for e := l.ring.Front(); e != nil; {
		c := e.Value.(*claim)
		e = e.Next()
		if c.target != s {
			continue
		}
		for place := c.waiters.Front(); place != nil; place = c.waiters.Front() {
			l.dequeue(c, place)
			place.Value.(*waiter).ready <- errHeld
		}
	}
	l.signal()
}

// held is how long a target is still held; 0: not. A disabled or paused one
// has no end in sight: long.
func (l *limiter) held(s *share, now time.Time, long time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.disabled || s.paused {
		return long
	}
	return max(0, s.heldUntil.Sub(now))
}

// popped counts messages between their pop and their settle.
func (l *limiter) popped(c *claim, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.unsettled += n
	if n < 0 {
		l.signal()
	}
}

// room is how many events a route may pop now, and until when its target is
// held (zero: not held); mu is held.
func (l *limiter) room(c *claim, now time.Time) (n int, heldUntil time.Time) {
	if c.target.blocked(now) != nil {
		return 0, c.target.heldUntil
	}
	ahead := c.target.ahead()
	n = min(l.pool.room(ahead), c.target.room(ahead), c.own.room(ahead), c.maxUnset-c.unsettled)
	return max(0, n), time.Time{}
}

// awaitRoom waits until a route may pop. It waits a moment for more than a
// trickle: slots come back one by one, and a pop costs the same for one event
// as for many.
func (l *limiter) awaitRoom(ctx context.Context, c *claim) (int, error) {
	var patience time.Time // zero: no room seen yet
	for {
		n, wait, wake := l.look(c, &patience)
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
func (l *limiter) look(c *claim, patience *time.Time) (n int, wait time.Duration, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	n, until := l.room(c, now)
	if n > 0 && patience.IsZero() {
		*patience = now.Add(trickle)
	}
	switch {
	case n >= max(1, c.own.max/4), n > 0 && !now.Before(*patience):
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

func (l *limiter) signal() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// sleepOr waits for d, for wake, or for the end of ctx, which is the error.
func sleepOr(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error { return sleepOr(ctx, d, nil) }
