package dispatch

import (
	"container/list"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// budget is a rate limit: tokens that calls take. The limiter's lock guards
// it; no method waits.
type budget interface {
	available(now time.Time) int
	take(now time.Time)
	giveBack(now time.Time)
	// roomIn is how long it takes until n calls may begin within rateAhead, as
	// far as is known.
	roomIn(now time.Time, n int) time.Duration
	// soon is how many calls may begin within d.
	soon(now time.Time, d time.Duration) int
	// want says that an event waits for a token, and returns how long that
	// takes; 0: the limiter is told.
	want(now time.Time) time.Duration
}

// share is a target's part of the pool, and what holds it back. The limiter's
// lock guards it.
type share struct {
	name       string
	level      // max is the adaptive limit of now
	adaptive   adaptive
	breaker    breaker
	rate       budget            // nil: no limit
	rateSet    bridge.TargetRate // what rate was made of
	alarmed    bool              // a timer waits for the next token
	rateWaited time.Duration     // of popped events, in all
	failing    failing

	claims   list.List // of *claim with waiters
	backlogs map[*claim]func()
	lookers  list.List     // of *looker: feeds that wait for room to pop
	looking  *list.Element // in the limiter's list, while there are lookers
	nextLook time.Time     // when they are served without a change; zero: not

	heldUntil time.Time  // Retry-After
	stored    *PauseInfo // paused in Queen; nil: not
	paused    bool       // by configuration
	latency   float64    // seconds, moving average of recent calls; 0: unknown
}

// flowChange is what the end of a call did to its target, for the log.
type flowChange struct {
	breaker transition
	opens   time.Duration // with opened: how long no call is made
	broken  bool          // with opened: until somebody acts, no call would help
	alert   time.Duration // it has been failing for this long
	disable bool          // it has been failing for disable_after
}

// newShare bounds a target: ceiling is the most calls at once.
func (l *limiter) newShare(ceiling int, t bridge.Target) *share {
	s := &share{name: t.Name, adaptive: newAdaptive(ceiling), backlogs: map[*claim]func(){}}
	s.reshape(ceiling, t, l.hungry)
	return s
}

// newBudget is nil for a target without a rate limit.
func newBudget(t bridge.Target, hungry chan<- struct{}) budget {
	switch {
	case t.Rate.PerSecond <= 0:
		return nil
	case t.Rate.Shared:
		return newSharedBudget(t.Name, t.Rate, hungry)
	}
	return newBucket(t.Rate)
}

// reshape takes over a target's configuration; what was learned of it stays.
func (s *share) reshape(ceiling int, t bridge.Target, hungry chan<- struct{}) {
	s.paused, s.breaker.cfg, s.failing.disableAfter = t.Paused, t.Breaker, t.DisableAfter
	s.adaptive.bound(ceiling)
	s.max = s.adaptive.slots()
	if s.rateSet != t.Rate {
		s.rateSet, s.rate = t.Rate, newBudget(t, hungry)
	}
}

// blocked says why no call may begin for some time, nil if one may.
func (s *share) blocked(now time.Time) error {
	if s.stored != nil || s.paused || now.Before(s.heldUntil) || s.breaker.state(now) == breakerOpen {
		return errHeld
	}
	return nil
}

// blockedUntil is when a target that is held, or whose breaker is open, may be
// called again.
func (s *share) blockedUntil() time.Time {
	if s.breaker.cfg.Enabled && s.breaker.open && s.breaker.until.After(s.heldUntil) {
		return s.breaker.until
	}
	return s.heldUntil
}

// ready says that a call may begin now: the rate limit has a token, and no
// probe is under way.
func (s *share) ready(now time.Time) bool {
	if s.breaker.state(now) == breakerHalfOpen && s.breaker.probing {
		return false
	}
	return s.rate == nil || s.rate.available(now) > 0
}

// begin notes that a call begins.
func (s *share) begin(now time.Time) (probe bool) {
	if s.rate != nil {
		s.rate.take(now)
	}
	return s.breaker.begin(now)
}

// unused takes back what begin gave: the call was not made.
func (s *share) unused(probe bool, now time.Time) {
	if probe {
		s.breaker.abandon()
	}
	if s.rate != nil {
		s.rate.giveBack(now)
	}
}

// ended lets the target feel the end of a call.
func (s *share) ended(c callEnd, now time.Time) (change flowChange) {
	switch {
	case c.ignored:
		if c.probe {
			s.breaker.abandon()
		}
		return flowChange{}
	case c.overloaded:
		s.adaptive.overloaded(c.begun, now)
	case c.delivered && !c.probe:
		s.adaptive.succeeded()
	}
	change.breaker = s.breaker.ended(c, now, rand.Float64)
	switch change.breaker {
	case opened:
		change.opens, change.broken = s.breaker.until.Sub(now), c.broken
	case closed:
		s.adaptive.restart(now)
	}
	s.max = s.adaptive.slots()
	change.alert, change.disable = s.failing.ended(c, now)
	return change
}

func (s *share) observe(took time.Duration) {
	if s.latency == 0 {
		s.latency = took.Seconds()
		return
	}
	s.latency += (took.Seconds() - s.latency) / 16
}

// ahead is how many events a slot may have at hand: those it calls within
// quick.
func (s *share) ahead() float64 {
	if s.latency <= 0 {
		return 0
	}
	return quick.Seconds() / s.latency
}

// rateAhead is how long an event may wait for its token: popped in groups, a
// slow rate costs few pops.
const rateAhead = time.Second

// rateRoom is what the rate limit leaves of the room for n events, and when
// that changes by itself.
func (s *share) rateRoom(n int, now time.Time) (int, time.Time) {
	if s.rate == nil {
		return n, time.Time{}
	}
	n = min(n, s.rate.soon(now, rateAhead)-s.waiting)
	if n > 0 {
		return n, time.Time{}
	}
	return 0, now.Add(max(s.rate.roomIn(now, 1+s.waiting), time.Millisecond))
}

// probeRoom is how many events may be popped while the breaker is half-open.
func (s *share) probeRoom(probes int) int {
	if s.breaker.probing {
		probes--
	}
	return probes - s.waiting
}

// overdue says that a delivery's max_age ended while its target could not be
// called: it ends without another call.
func (r *route) overdue(d bridge.Delivery) bool {
	now := time.Now()
	return r.policy.Expired(d, now) && r.d.limiter.broken(r.target.share, now)
}

// broken says that a target's breaker is not closed.
func (l *limiter) broken(s *share, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.breaker.state(now) != breakerClosed
}

// enough is how much room is worth a pop, of a bound, and how long to wait for
// as much.
func (s *share) enough(bound int, now time.Time) (n int, patience time.Duration) {
	n, patience = max(1, bound/4, popAhead(bound, s.ahead())/2), trickle
	if s.rate == nil {
		return n, patience
	}
	return min(n, max(1, s.rate.soon(now, rateAhead)/4)), rateAhead / 4
}

// holdLonger lets a held event wait for its target: until the breaker lets
// calls pass again, and for longer the longer the target has been failing, so
// a target that is down all day is not tried anew for each event. Never past
// the event's max_age.
func (r *route) holdLonger(out *bridge.Outcome, it *item, now time.Time) {
	d := r.d.limiter.holdFor(r.target.share, now)
	if first := it.d.FirstFailed; !first.IsZero() {
		d = min(d, r.policy.MaxAge()-now.Sub(first))
	}
	out.Delay = max(out.Delay, min(d, r.policy.MaxAge()))
}

// holdFor is how long an event waits that its target just failed.
func (l *limiter) holdFor(s *share, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.failing.since.IsZero() {
		return s.reopens(now)
	}
	return max(s.reopens(now), spread(min(now.Sub(s.failing.since)/4, s.breaker.longest())))
}

// reopens is how long an event waits for an open breaker; 0: it is not open.
func (s *share) reopens(now time.Time) time.Duration {
	if s.breaker.state(now) != breakerOpen {
		return 0
	}
	return spread(s.breaker.until.Sub(now))
}

// spread adds up to a quarter, at most half a minute: what waits for the same
// moment does not come at once.
func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(min(d/4, 30*time.Second)))
}

// judge says what the end of a call means for its target. ours: the call was
// cut off by us, which says nothing of the target.
func (r *route) judge(resp *bridge.Response, ours bool) callEnd {
	kind, class := r.policy.Judge(*resp, time.Now())
	scope := resp.Scope()
	return callEnd{
		ignored:    ours && resp.Err != nil,
		replied:    resp.Err == nil || class == bridge.FailureFunctionError || class == bridge.FailureThrottled,
		fault:      kind == bridge.Hold || kind == bridge.Retry && scope == bridge.ScopeTarget,
		broken:     kind == bridge.Hold && scope == bridge.ScopeBroken,
		overloaded: class == bridge.FailureThrottled || class == bridge.FailureTimeout || resp.Status == 503,
		final:      kind == bridge.Dead,
		delivered:  kind == bridge.Delivered,
	}
}

// flowChanged tells an operator what became of a target.
func (d *Dispatcher) flowChanged(s *share, c flowChange) {
	ctx, target := context.Background(), slog.String(keyTarget, s.name)
	switch c.breaker {
	case opened:
		d.m.opened.WithLabelValues(s.name).Inc()
		level, text := slog.LevelWarn, "breaker open: the target fails, no calls for a while"
		if c.broken {
			level, text = slog.LevelError, "breaker open: the target refuses every call until somebody acts"
		}
		d.log.LogAttrs(ctx, level, text, target, slog.Duration("for", c.opens.Round(time.Millisecond)))
	case closed:
		d.log.LogAttrs(ctx, slog.LevelInfo, "breaker closed: the target answers again", target)
	}
	if c.alert > 0 {
		level := slog.LevelWarn
		if c.alert >= alertSpan {
			level = slog.LevelError
		}
		d.m.alerts.WithLabelValues(s.name, c.alert.String()).Inc()
		d.log.LogAttrs(ctx, level, "target has been failing without one success", target, slog.Duration("for", c.alert))
	}
	if c.disable {
		d.pauseItself(pauseKey{kindTarget, s.name}, "it failed for disable_after without one success")
	}
}
