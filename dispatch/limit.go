package dispatch

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
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
	ring list.List // of *claim with waiters
	// starved says that a call waits for the pool alone.
	starved bool

	looking list.List // of *share with feeds that wait for room to pop
	short   bool      // one of them waits for room in the pool

	hungry chan struct{} // a shared budget needs tokens: for the keeper

	// changed is told, outside of mu, what the end of a call did to a target.
	changed func(*share, flowChange)
}

// level is one bound: slots used by calls, calls waiting for one, and events
// asked for that will wait. In the pool only those used count: what waits for
// a saturated target takes nothing from another.
type level struct{ max, used, waiting int }

func (l *level) full() bool { return l.used >= l.max }

// fewAhead is how many events may be popped before slots are free where these
// are fewer: with a single slot each call would wait for a pop of its own.
const fewAhead = 32

// room is how many more events may be popped; ahead is how many a slot may
// have at hand.
func (l *level) room(ahead float64) int {
	return l.max - l.used - l.waiting + popAhead(l.max, ahead)
}

func popAhead(slots int, ahead float64) int {
	return int(min(ahead*float64(slots), float64(max(slots, fewAhead))))
}

// claim is a route's part of its target's share.
type claim struct {
	own       level
	target    *share
	waiters   list.List     // of *waiter
	place     *list.Element // in the limiter's ring
	turn      *list.Element // in its target's
	unsettled int           // messages popped and not yet settled
	maxUnset  int
	batch     int // events of one call, at most
}

type waiter struct {
	ready chan error // buffered: nil granted, else why not
	probe bool       // set before granted
	since time.Time  // of a wait for the rate limit; zero: it waits for something else
}

// permit is the right to make one call, in a slot. Its holder gives it back with release.
type permit struct {
	l     *limiter
	claim *claim
	probe bool
	begun time.Time // of its call; zero: none was made
	end   callEnd   // set with begun, once the call has ended
}

func newLimiter(maxInFlight int, changed func(*share, flowChange)) *limiter {
	return &limiter{pool: level{max: maxInFlight}, changed: changed, hungry: make(chan struct{}, 1)}
}

// newClaim bounds a route. What is popped and not settled is bounded too: a
// broker that refuses settles must not make the process grow.
// Each call has up to batch of them.
func (l *limiter) newClaim(target *share, limit, batch int) *claim {
	c := &claim{target: target, batch: max(1, batch)}
	c.bound(limit)
	return c
}

func (c *claim) bound(limit int) { c.own.max, c.maxUnset = limit, 2*maxBatch+4*limit*c.batch }

// reshape changes the bounds of a target and of the routes that use it; what
// was learned of it stays.
func (l *limiter) reshape(s *share, ceiling int, t bridge.Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.reshape(ceiling, t, l.hungry)
	if s.paused {
		l.turnAway(s)
	}
	l.grant(s)
	l.signal(s)
}

// bound changes how many calls a route may make at once.
func (l *limiter) bound(c *claim, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.bound(limit)
	l.grant(c.target)
	l.signal(c.target)
}

// backlog notes that a route has n events that are ready and have not asked for
// a slot yet, and returns how many may ask at once: a target that is held turns
// all away. shed is called, and must not block, when that begins.
func (l *limiter) backlog(c *claim, n int, shed func()) (slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		c.target.backlogs[c] = shed
	} else {
		delete(c.target.backlogs, c)
	}
	if n > 0 && c.target.blocked(time.Now()) != nil {
		return math.MaxInt
	}
	return max(1, min(c.own.max, c.target.max, l.pool.max))
}

func (l *limiter) canRun(c *claim, now time.Time) bool {
	return !l.pool.full() && !c.target.full() && !c.own.full() && c.target.ready(now)
}

// acquire waits for a slot. errHeld: the target is or became held; else the
// cause of ctx. arriving is how many were expected of what waits here now.
func (l *limiter) acquire(ctx context.Context, c *claim, arriving int) (permit, error) {
	l.mu.Lock()
	c.expect(-arriving)
	if ctx.Err() != nil { // also with a free slot: nothing begins after a stop
		l.mu.Unlock()
		return permit{}, context.Cause(ctx)
	}
	now := time.Now()
	if err := c.target.blocked(now); err != nil {
		l.mu.Unlock()
		return permit{}, err
	}
	if c.waiters.Len() == 0 && l.canRun(c, now) {
		probe := l.take(c, now)
		l.mu.Unlock()
		return permit{l: l, claim: c, probe: probe}, nil
	}
	w := &waiter{ready: make(chan error, 1)}
	if c.target.rate != nil && c.target.rate.available(now) == 0 {
		w.since = now
	}
	place := l.enqueue(c, w)
	l.awaitToken(c.target, now)
	l.mu.Unlock()
	select {
	case err := <-w.ready:
		return permit{l: l, claim: c, probe: w.probe}, err
	case <-ctx.Done():
		return permit{}, l.giveUp(ctx, c, w, place)
	}
}

func (l *limiter) enqueue(c *claim, w *waiter) *list.Element {
	place := c.waiters.PushBack(w)
	if c.place == nil {
		c.place, c.turn = l.ring.PushBack(c), c.target.claims.PushBack(c)
	}
	l.starved = l.starved || l.pool.full()
	c.expect(1)
	return place
}

// dequeue takes a waiter out, wherever it stands.
func (l *limiter) dequeue(c *claim, place *list.Element) {
	c.waiters.Remove(place)
	if c.waiters.Len() == 0 {
		l.ring.Remove(c.place)
		c.target.claims.Remove(c.turn)
		c.place, c.turn = nil, nil
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
		l.signal(c.target)
	}
}

// giveUp ends a wait whose context ended. The slot may have been granted in
// the same moment: it is passed on.
func (l *limiter) giveUp(ctx context.Context, c *claim, w *waiter, place *list.Element) error {
	l.mu.Lock()
	select {
	case err := <-w.ready:
		if err == nil {
			c.target.unused(w.probe, time.Now())
			l.free(c)
		}
	default:
		l.dequeue(c, place)
		l.signal(c.target)
	}
	l.mu.Unlock()
	return context.Cause(ctx)
}

// take gives a slot; probe says that its call decides on a half-open breaker.
func (l *limiter) take(c *claim, now time.Time) (probe bool) {
	l.pool.used++
	c.target.used++
	c.own.used++
	return c.target.begin(now)
}

// release gives the slot back. The target feels the end of the call first: no
// other call begins in between.
func (p *permit) release() {
	l, t, now := p.l, p.claim.target, time.Now()
	l.mu.Lock()
	var change flowChange
	if p.begun.IsZero() {
		t.unused(p.probe, now)
	} else {
		t.observe(now.Sub(p.begun))
		p.end.begun, p.end.probe = p.begun, p.probe
		change = t.ended(p.end, now)
	}
	l.free(p.claim)
	if change.breaker == opened {
		l.turnAway(t)
	}
	l.mu.Unlock()
	if change != (flowChange{}) {
		l.changed(t, change)
	}
}

func (l *limiter) free(c *claim) {
	l.pool.used--
	c.target.used--
	c.own.used--
	l.grant(c.target)
	l.signal(c.target)
}

// grant serves the routes that wait for a target, in turn, while slots last;
// all routes where the pool had none left for some.
func (l *limiter) grant(t *share) {
	ring := &t.claims
	if l.starved {
		l.starved, ring = false, &l.ring
	}
	if ring.Len() == 0 {
		return
	}
	now := time.Now()
	for tries := ring.Len(); tries > 0; {
		if l.pool.full() {
			l.starved = true
			return
		}
		front := ring.Front()
		if front == nil {
			return
		}
		c := front.Value.(*claim)
		if ring == &t.claims && t.full() {
			return // nor may anybody behind
		}
		ring.MoveToBack(front)
		if !l.canRun(c, now) {
			l.awaitToken(c.target, now)
			tries--
			continue
		}
		l.serve(c, now)
		tries = ring.Len()
	}
}

// serve gives a slot to the first waiter of a route.
func (l *limiter) serve(c *claim, now time.Time) {
	place := c.waiters.Front()
	w := place.Value.(*waiter)
	l.dequeue(c, place)
	if !w.since.IsZero() {
		c.target.rateWaited += now.Sub(w.since)
	}
	w.probe = l.take(c, now)
	w.ready <- nil
}

// awaitToken serves those who wait for a target's rate limit as soon as it
// lets a call pass; mu is held. Nobody sleeps for it.
func (l *limiter) awaitToken(t *share, now time.Time) {
	if t.rate == nil || t.alarmed || t.rate.available(now) > 0 {
		return
	}
	wait := t.rate.want(now)
	if wait == 0 {
		return
	}
	t.alarmed = true
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.alarmed = false
		l.grant(t)
		l.signal(t)
	})
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

// endHold lets a target be called now; an open breaker becomes half-open.
func (l *limiter) endHold(s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s.heldUntil = time.Time{}
	if s.breaker.state(now) == breakerOpen {
		s.breaker.until = now
	}
	l.grant(s)
	l.signal(s)
}

// pause lets no call to a target begin; nil: calls may again, and the time it
// has been failing for counts anew.
func (l *limiter) pause(s *share, info *PauseInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.stored != nil && info == nil {
		s.failing.since, s.failing.alerted = time.Time{}, 0
	}
	if s.stored = info; info != nil {
		l.turnAway(s)
		return
	}
	l.grant(s)
	l.signal(s)
}

func (l *limiter) turnAway(s *share) {
	for e := s.claims.Front(); e != nil; {
		c := e.Value.(*claim)
		e = e.Next()
		for place := c.waiters.Front(); place != nil; place = c.waiters.Front() {
			l.dequeue(c, place)
			place.Value.(*waiter).ready <- errHeld
		}
	}
	for _, shed := range s.backlogs {
		shed()
	}
	l.signal(s)
}

// held is how long a target is still held; 0: not. A paused one
// has no end in sight: long.
func (l *limiter) held(s *share, now time.Time, long time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.stored != nil || s.paused {
		return long
	}
	return max(0, s.heldUntil.Sub(now), s.reopens(now))
}
