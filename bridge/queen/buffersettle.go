package queen

import (
	"log/slog"
	"math"
	"slices"
	"time"
)

// settle books what a push did and tells the callers whose bundles are
// decided. Its own caller begins the next push.
func (b *Buffer) settle(x *batch, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.inFlight = slices.DeleteFunc(b.inFlight, func(other *batch) bool { return other == x })
	b.judgeAll(now, x, err == nil)
	b.backOff(now, err)
	// A bundle that is decided belongs to its caller again: from here on only
	// the lanes of the batch may be looked at.
	for _, g := range slices.Backward(x.bundles) {
		b.finish(now, g)
	}
	for _, l := range x.lanes {
		b.forget(l)
	}
	b.recycle(x)
	b.promote()
	b.checkFlushes()
	b.starting = true
}

// judgeAll writes the verdicts into the entries and frees the lanes. Where the
// call itself succeeded, a lane that Queen could not serve backs off alone.
func (b *Buffer) judgeAll(now time.Time, x *batch, called bool) {
	for i, e := range x.entries {
		if v := x.verdicts[i]; !v.again {
			e.status = v.status
			e.bundle.open--
		} else if called {
			e.lane.failed = true
		}
	}
	for _, l := range x.lanes {
		b.hold(l, false)
		b.backOffLane(now, l)
	}
}

// backOffLane keeps a lane quiet for a while where its last push failed.
func (b *Buffer) backOffLane(now time.Time, l *lane) {
	switch {
	case !l.failed:
		l.retry = nil
		return
	case l.retry == nil:
		l.retry = b.limits.newRetry()
	}
	l.failed = false
	l.notBefore = now.Add(l.retry.NextBackOff())
}

// Log records. An operator greps for them: they do not change.
const (
	msgPushFailed  = "push failed"
	msgPushesAgain = "pushes succeed again"
	msgRefused     = "item refused by queen"
	msgPanic       = "panic while pushing"
)

// backOff keeps the whole buffer quiet for a while after a push that failed as
// a whole, and says so once per outage.
func (b *Buffer) backOff(now time.Time, err error) {
	if err == nil {
		if b.failures > 0 {
			b.logger.LogAttrs(b.life, slog.LevelInfo, msgPushesAgain,
				slog.String("queue", b.queue), slog.Int("failures", b.failures))
		}
		b.failures, b.notBefore = 0, time.Time{}
		b.retry.Reset()
		return
	}
	b.failures++
	b.observe.Failed(err)
	wait := max(b.retry.NextBackOff(), min(RetryAfter(err), maxAsked))
	b.notBefore = now.Add(wait)
	level := slog.LevelDebug
	if b.failures == 1 && b.life.Err() == nil {
		level = slog.LevelWarn
	}
	b.logger.LogAttrs(b.life, level, msgPushFailed, slog.String("queue", b.queue),
		slog.Int("failures", b.failures), slog.Duration("retry_in", wait), slog.Any("error", err))
}

// finish decides a bundle whose entries all have a verdict, and puts the
// others back in front, where they were.
func (b *Buffer) finish(now time.Time, g *Bundle) {
	switch {
	case g.state == orphaned: // told already
		b.release(g)
		g.state = outside
	case g.open == 0 || g.lost():
		b.release(g)
		b.observe.Decided(now.Sub(g.enqueued))
		b.decide(g, g.sum())
	case g.expired(now):
		b.release(g)
		b.decide(g, BundleExpired)
	default:
		g.state = waiting
		b.waiting.pushFront(g)
		b.count(g, +1)
	}
}

func (g *Bundle) expired(now time.Time) bool { return !g.deadline.IsZero() && !now.Before(g.deadline) }

// arm makes wake run at t, unless it runs earlier anyway. The zero time is
// never.
func (b *Buffer) arm(now, t time.Time) {
	if t.IsZero() || !b.armed.IsZero() && !t.Before(b.armed) {
		return
	}
	b.armed = t
	if b.timer == nil {
		b.timer = time.AfterFunc(t.Sub(now), b.wake)
	} else {
		b.timer.Reset(t.Sub(now))
	}
}

// wake tells the callers whose time is up and starts what may start.
func (b *Buffer) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.armed = time.Time{}
	if b.closed {
		return
	}
	b.expire(now)
	b.promote()
	b.pump(now)
	b.checkFlushes()
	b.arm(now, b.nextDeadline())
}

// expire gives up the bundles whose deadline has passed. What is in flight may
// still be stored.
func (b *Buffer) expire(now time.Time) {
	for g := range b.held() {
		if !g.expired(now) {
			continue
		}
		switch g.state {
		case blocked:
			b.blocked.remove(g)
			b.decide(g, BundleExpired)
		case waiting:
			b.drop(g)
			b.decide(g, BundleExpired)
		case flying:
			b.decide(g, BundleExpired)
			g.state = orphaned
		}
	}
}

func (b *Buffer) nextDeadline() time.Time {
	var t time.Time
	for g := range b.held() {
		if g.state != orphaned && !g.deadline.IsZero() && (t.IsZero() || g.deadline.Before(t)) {
			t = g.deadline
		}
	}
	return t
}

// held yields every bundle of the buffer; the one yielded may be taken out.
func (b *Buffer) held() func(yield func(*Bundle) bool) {
	return func(yield func(*Bundle) bool) {
		for _, l := range []*bundleList{&b.blocked, &b.waiting} {
			for g := l.first; g != nil; {
				next := g.next
				if !yield(g) {
					return
				}
				g = next
			}
		}
		for _, x := range b.inFlight {
			for _, g := range x.bundles {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// checkFlushes ends the flushes that have nothing left to wait for.
func (b *Buffer) checkFlushes() {
	if len(b.flushes) == 0 {
		return
	}
	oldest := uint64(math.MaxUint64)
	for g := range b.held() {
		if g.state != orphaned {
			oldest = min(oldest, g.number)
		}
	}
	for _, f := range slices.Clone(b.flushes) {
		if oldest > f.upTo {
			close(f.done)
			b.dropFlush(f)
		}
	}
}

func (b *Buffer) dropFlush(f *flush) {
	b.flushes = slices.DeleteFunc(b.flushes, func(other *flush) bool { return other == f })
}

// abandon decides everything that is left and returns how many items were not
// stored. It runs when no push is under way any more.
func (b *Buffer) abandon() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	left := 0
	for g := range b.held() {
		left += g.open
		if g.state != orphaned {
			b.decide(g, BundleStopped)
		}
	}
	b.blocked, b.waiting, b.pending = bundleList{}, bundleList{}, amount{}
	b.observe.Pending(0)
	b.checkFlushes()
	return left
}
