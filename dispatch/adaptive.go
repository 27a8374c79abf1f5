package dispatch

import "time"

// startLimit is the limit of a target of which nothing is known yet
// (dispatch.md §5, Concurrency).
const startLimit = 4

// adaptive is how many calls of a target may run at once: additive increase,
// multiplicative decrease below the configured ceiling. As in TCP, it doubles
// per window of successes while nothing speaks against it (RFC 5681, slow
// start), so a healthy target is at its ceiling after a few round trips; after
// the first trouble it grows by one per window.
type adaptive struct {
	ceiling   int
	limit     float64
	threshold float64   // it doubles below and adds one above
	cut       time.Time // a call begun before this cuts no more: once per window
}

func newAdaptive(ceiling int) adaptive {
	return adaptive{ceiling: ceiling, limit: float64(min(startLimit, ceiling)), threshold: float64(ceiling)}
}

// bound changes the ceiling. Where it grows, the way up is as at the start.
func (a *adaptive) bound(ceiling int) {
	if a.threshold == float64(a.ceiling) {
		a.threshold = float64(ceiling)
	}
	a.ceiling = ceiling
	a.limit = min(a.limit, float64(ceiling))
}

// slots is the limit of now: at least 1.
func (a *adaptive) slots() int { return int(a.limit) }

// succeeded grows the limit. It grows with every success, also below the
// limit: a seldom called target must not be left with so few slots that some
// slow events block its others.
func (a *adaptive) succeeded() {
	if a.limit < a.threshold {
		a.limit++
	} else {
		a.limit += 1 / a.limit
	}
	a.limit = min(a.limit, float64(a.ceiling))
}

// overloaded halves the limit, once for all calls that were under way
// together.
func (a *adaptive) overloaded(begun, now time.Time) {
	if !a.cut.IsZero() && !begun.After(a.cut) {
		return
	}
	a.cut = now
	a.limit = max(1, a.limit/2)
	a.threshold = a.limit
}

// restart begins with one call after an outage, so what waited for its end
// does not come all at once; half of what went well before is reached fast.
func (a *adaptive) restart(now time.Time) {
	a.threshold = max(a.limit/2, min(startLimit, float64(a.ceiling)))
	a.limit, a.cut = 1, now
}
