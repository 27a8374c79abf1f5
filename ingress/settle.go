package ingress

import (
	"log/slog"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// settle books what a push did and answers the requests that are decided. Its
// caller begins the next push.
func (q *batchQueue) settle(b *batch, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.inFlight = slices.DeleteFunc(q.inFlight, func(x *batch) bool { return x == b })
	q.judgeAll(now, b, err == nil)
	q.backOff(now, err)
	// A group that is decided belongs to its request again: from here on only
	// the lanes of the batch may be looked at.
	for _, g := range slices.Backward(b.groups) {
		q.finish(now, g)
	}
	for _, l := range b.lanes {
		q.forget(l)
	}
	q.recycle(b)
	q.promote()
	q.starting = true
}

// judgeAll writes the verdicts into the entries and frees the lanes. Where the
// call itself succeeded, a lane that Queen could not serve backs off alone.
func (q *batchQueue) judgeAll(now time.Time, b *batch, called bool) {
	for i, e := range b.entries {
		if v := b.verdicts[i]; !v.again {
			e.status = v.status
			e.group.open--
		} else if called {
			e.lane.failed = true
		}
	}
	for _, l := range b.lanes {
		q.hold(l, false)
		l.backOff(now)
	}
}

// backOff keeps a lane quiet for a while where its last push failed.
func (l *lane) backOff(now time.Time) {
	switch {
	case !l.failed:
		l.retry = nil
		return
	case l.retry == nil:
		l.retry = newRetry()
	}
	l.failed = false
	l.notBefore = now.Add(l.retry.NextBackOff())
}

// backOff keeps the whole queue quiet for a while after a push that failed as
// a whole, and says so once per outage.
func (q *batchQueue) backOff(now time.Time, err error) {
	if err == nil {
		if q.failures > 0 {
			q.logger.LogAttrs(q.life, slog.LevelInfo, msgPushesAgain,
				slog.String(keyQueue, q.name), slog.Int(keyFailures, q.failures))
		}
		q.failures, q.notBefore = 0, time.Time{}
		q.retry.Reset()
		return
	}
	q.failures++
	q.observe.failures.Inc()
	wait := max(q.retry.NextBackOff(), retryAfter(err))
	q.notBefore = now.Add(wait)
	level := slog.LevelDebug
	if q.failures == 1 && q.life.Err() == nil {
		level = slog.LevelWarn
	}
	q.logger.LogAttrs(q.life, level, msgPushFailed, slog.String(keyQueue, q.name),
		slog.Int(keyFailures, q.failures), slog.Duration(keyRetryIn, wait), slog.Any(keyError, err))
}

// finish decides a group whose entries all have a verdict, and puts the others
// back in front, where they were.
func (q *batchQueue) finish(now time.Time, g *group) {
	switch {
	case g.state == orphaned: // answered already
		q.release(g)
		g.state = outside
	case g.open == 0 || g.lost():
		q.release(g)
		q.observe.wait.Observe(now.Sub(g.enqueued).Seconds())
		q.decide(g, g.sum(q.limits.acceptBuffered))
	case !now.Before(g.deadline):
		q.release(g)
		q.decide(g, expired)
	default:
		g.state = waiting
		q.waiting.pushFront(g)
		q.count(g, +1)
	}
}

// lost says that an entry of the group can never be stored, so there is
// nothing to wait for.
func (g *group) lost() bool {
	return slices.ContainsFunc(g.entries, func(e entry) bool { return e.status == statusRefused })
}

// sum is what the verdicts on all entries of a group come to.
func (g *group) sum(acceptBuffered bool) result {
	r := stored
	for i := range g.entries {
		switch g.entries[i].status {
		case queen.PushQueued, queen.PushDuplicate:
		case queen.PushBuffered:
			// Queen's local spool is not synced to disk, and for some names
			// it is lost for good (measured 1.3.0).
			if !acceptBuffered {
				return unsure
			}
			r = spooled
		default:
			return refused
		}
	}
	return r
}

// arm makes wake run at t, unless it runs earlier anyway.
func (q *batchQueue) arm(now, t time.Time) {
	if !q.armed.IsZero() && !t.Before(q.armed) {
		return
	}
	q.armed = t
	if q.timer == nil {
		q.timer = time.AfterFunc(t.Sub(now), q.wake)
	} else {
		q.timer.Reset(t.Sub(now))
	}
}

// wake answers the requests whose time is up and starts what may start.
func (q *batchQueue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.armed = time.Time{}
	if q.closed {
		return
	}
	q.expire(now)
	q.promote()
	q.pump(now)
	if t := q.nextDeadline(); !t.IsZero() {
		q.arm(now, t)
	}
}

// expire gives up the groups whose deadline has passed. What is in flight may
// still be stored; the sender's resend is then a duplicate.
func (q *batchQueue) expire(now time.Time) {
	for g := range q.held() {
		if now.Before(g.deadline) {
			continue
		}
		switch g.state {
		case blocked:
			q.blocked.remove(g)
			q.decide(g, expired)
		case waiting:
			q.drop(g)
			q.decide(g, expired)
		case flying:
			q.decide(g, expired)
			g.state = orphaned
		}
	}
}

func (q *batchQueue) nextDeadline() time.Time {
	var t time.Time
	for g := range q.held() {
		if g.state != orphaned && (t.IsZero() || g.deadline.Before(t)) {
			t = g.deadline
		}
	}
	return t
}

// held yields every group of the queue; the one yielded may be taken out.
func (q *batchQueue) held() func(yield func(*group) bool) {
	return func(yield func(*group) bool) {
		for _, l := range []*groupList{&q.blocked, &q.waiting} {
			for g := l.first; g != nil; {
				next := g.next
				if !yield(g) {
					return
				}
				g = next
			}
		}
		for _, b := range q.inFlight {
			for _, g := range b.groups {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// abandon decides everything that is left and returns how many items were not
// stored. It runs once, when no push is under way any more.
func (q *batchQueue) abandon() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	left := 0
	for g := range q.held() {
		left += g.open
		if g.state != orphaned {
			q.decide(g, stopped)
		}
	}
	return left
}
