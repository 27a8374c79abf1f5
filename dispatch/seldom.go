package dispatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A route pops three queues, and two of them, its retries and its dead
// letters, are empty most of the time. A long poll in each is cheap for a few
// routes. A thousand of them kept PostgreSQL behind a Queen 1.3.0 busy (300
// discovery polls cost a fifth of a core, 300 of a queue 6 % of one, measured)
// until pops failed. So with many routes these queues are polled long only
// while something is expected: what this process put there itself, it knows.
// What others put there, such as a process that died, is found by a look now
// and then.
const (
	// parkedRoutes is up to how many routes every queue is polled long.
	parkedRoutes = 50
	// looksPerSecond is how often all routes together look into queues where
	// nothing is expected, of each kind.
	looksPerSecond = 50
	// minRest and maxRest bound the time between two looks of a route.
	minRest, maxRest = 5 * time.Second, time.Minute
	// expectFor is how late what is expected may come: an idle Queen before
	// 1.5.2 fires its timers up to 28 s late, should the bridge's cure fail.
	expectFor = 35 * time.Second
)

// seldom is a queue that is empty most of the time.
type seldom struct {
	mu          sync.Mutex
	from, until time.Time // something is expected between them
	news        chan struct{}
}

func newSeldom() *seldom { return &seldom{news: make(chan struct{}, 1)} }

// expect says that something comes at a time, or soon after it.
func (s *seldom) expect(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until.Before(time.Now()) || at.Before(s.from) {
		s.from = at
	}
	if until := at.Add(expectFor); until.After(s.until) {
		s.until = until
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// inherit takes over what the queue's former poller expected.
func (s *seldom) inherit(old *seldom) {
	old.mu.Lock()
	defer old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.until = old.from, old.until
}

// expects says whether something is expected now, else how long it is until
// then, at most rest.
func (s *seldom) expects(rest time.Duration) (now bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch until := time.Until(s.from); {
	case until > 0:
		return false, min(until, rest)
	case time.Now().Before(s.until):
		return true, 0
	}
	return false, rest
}

// await waits until something is expected, or for rest, and returns how long
// the next pop waits in Queen.
func (s *seldom) await(ctx context.Context, rest time.Duration) time.Duration {
	for end := time.Now().Add(rest); ctx.Err() == nil; {
		now, wait := s.expects(time.Until(end))
		switch {
		case now:
			return popWait
		case wait <= 0:
			return 0
		}
		_ = sleepOr(ctx, wait, s.news)
	}
	return 0
}

// rest is the time between two looks; 0: every queue is polled long.
func (d *Dispatcher) rest() time.Duration {
	n := d.routes.Load()
	if n <= int64(d.parked) {
		return 0
	}
	return min(max(minRest, time.Duration(n)*time.Second/looksPerSecond), maxRest)
}

// firstRest spreads the first looks of a process; a route that begins later
// looks at once.
func (d *Dispatcher) firstRest() time.Duration {
	rest := d.rest()
	if time.Since(d.since) > rest {
		return 0
	}
	return time.Duration(rand.Int64N(int64(rest) + 1))
}

// Expect lets a route look for retries at once, which somebody beside the
// dispatcher put there: an operator who redrove dead letters. Other names are
// ignored.
func (d *Dispatcher) Expect(route string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.slots[route]; s != nil && s.wanted != nil {
		s.wanted.retries.seldom.expect(time.Now())
	}
}
