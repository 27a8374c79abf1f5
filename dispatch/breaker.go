package dispatch

import (
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// The second way to open a breaker: half of at least ratioCalls calls within
// ratioWindow failed (dispatch.md §5).
const (
	ratioWindow = 30 * time.Second
	ratioCalls  = 20
)

// breakerState is 0, 1 or 2, as the metric shows it.
type breakerState int8

const (
	breakerClosed   breakerState = iota
	breakerHalfOpen              // the next call is the probe
	breakerOpen                  // no calls
)

func (s breakerState) String() string {
	return [...]string{"closed", "half-open", "open"}[s]
}

// breaker keeps calls from a target that cannot take any. Only failures that
// are the target's count: an event that fails for its own sake says nothing of
// the target. It is pure: time and chance are arguments.
type breaker struct {
	cfg     bridge.Breaker
	open    bool
	until   time.Time // of an open one
	since   time.Time // of the last opening or closing
	probing bool      // the one call of a half-open one is under way
	row     int       // failures of the target one after the other
	recent  ratio
	// openings since the target last did well: each doubles the open time.
	openings int
}

// callEnd is what the end of a call says of its target.
type callEnd struct {
	begun time.Time
	probe bool
	// ignored: it says nothing, we cut it off ourselves.
	ignored bool
	// replied: the target answered, whatever it said.
	replied bool
	// fault: the failure is the target's, not the event's (outcome hold, or a
	// scope that says so).
	fault bool
	// broken: no call gets through until somebody acts. It is a fault.
	broken bool
	// overloaded: 429, 503, or a timeout.
	overloaded bool
	// final: the event does not come again, whatever it met.
	final     bool
	delivered bool
}

// state is the state at now: an open breaker is half-open once its time is up.
func (b *breaker) state(now time.Time) breakerState {
	switch {
	case !b.cfg.Enabled || !b.open:
		return breakerClosed
	case now.Before(b.until):
		return breakerOpen
	}
	return breakerHalfOpen
}

// longest is the longest time it is open, also of one that is disabled.
func (b *breaker) longest() time.Duration { return max(b.cfg.MaxOpen, time.Minute) }

// begin notes that a call begins; probe says that it decides on a half-open
// breaker.
func (b *breaker) begin(now time.Time) (probe bool) {
	probe = b.state(now) == breakerHalfOpen && !b.probing
	b.probing = b.probing || probe
	return probe
}

// abandon gives up a probe that was not made.
func (b *breaker) abandon() { b.probing = false }

// transition is what the end of a call did to a breaker.
type transition int8

const (
	unchanged transition = iota
	opened
	closed
)

// ended takes the end of a call. Of a half-open breaker only the probe decides:
// any answer shows that the target is reachable. What was begun before the
// last change says nothing new.
func (b *breaker) ended(c callEnd, now time.Time, random func() float64) transition {
	switch {
	case !b.cfg.Enabled:
		return unchanged
	case c.probe:
		return b.probed(c, now, random)
	case b.open || c.begun.Before(b.since):
		return unchanged
	}
	b.recent.add(now, c.fault)
	switch {
	case c.fault:
		b.row++
	case c.replied:
		b.row, b.openings = 0, 0
	}
	if b.row < b.cfg.Failures && !b.recent.bad(now) && !c.broken {
		return unchanged
	}
	b.trip(now, random)
	return opened
}

// probed decides on a half-open breaker. A target that answers and still fails
// (401) closes it, but the next opening lasts twice as long; one that is broken
// stays open.
func (b *breaker) probed(c callEnd, now time.Time, random func() float64) transition {
	b.probing = false
	if !c.replied || c.broken {
		b.trip(now, random)
		return opened
	}
	b.open, b.since, b.row, b.recent = false, now, 0, ratio{}
	if !c.fault {
		b.openings = 0
	}
	return closed
}

// trip opens the breaker: for open, doubled with each opening up to max_open,
// give or take a fifth, so the probes of many replicas do not come together.
func (b *breaker) trip(now time.Time, random func() float64) {
	d := b.cfg.Open
	for range b.openings {
		if d >= b.cfg.MaxOpen {
			break
		}
		d *= 2
	}
	d = min(d, b.cfg.MaxOpen)
	b.openings++
	b.open, b.probing, b.since = true, false, now
	b.until = now.Add(time.Duration(float64(d) * (0.8 + 0.4*random())))
	b.row, b.recent = 0, ratio{}
}

// ratio counts the calls of the last ratioWindow in slices of a tenth of it.
type ratio struct {
	slices [10]struct{ calls, faults int }
	newest int64 // number of the newest slice since the epoch
}

func (r *ratio) add(now time.Time, fault bool) {
	r.advance(now)
	s := &r.slices[r.newest%int64(len(r.slices))]
	s.calls++
	if fault {
		s.faults++
	}
}

// advance drops what is too old.
func (r *ratio) advance(now time.Time) {
	n := int64(len(r.slices))
	at := now.UnixNano() / (ratioWindow.Nanoseconds() / n)
	if at <= r.newest {
		return // a clock set back drops nothing
	}
	for i := max(r.newest+1, at-n+1); i <= at; i++ {
		r.slices[i%n] = struct{ calls, faults int }{}
	}
	r.newest = at
}

// bad says that at least half of enough calls failed.
func (r *ratio) bad(now time.Time) bool {
	r.advance(now)
	calls, faults := 0, 0
	for _, s := range r.slices {
		calls += s.calls
		faults += s.faults
	}
	return calls >= ratioCalls && 2*faults >= calls
}
