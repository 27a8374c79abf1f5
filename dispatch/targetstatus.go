package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TargetStatus is the state of one target.
type TargetStatus struct {
	Target string
	// State is popping where nothing holds the target back, else paused,
	// disabled, held, broken or limited.
	State State
	// Since is when the state began, where that is known.
	Since time.Time
	// Detail says why, for a reader; never a secret.
	Detail string

	// InFlight is how many calls are under way; Waiting, how many events were
	// popped and wait for a call, and how many more are being popped.
	InFlight, Waiting int
	// Limit is how many calls at once the target gets now, Ceiling how many at
	// most.
	Limit, Ceiling int
	// Breaker is closed, open or half-open; "" where it is switched off.
	Breaker string
	// Until is when a held or broken target is called again; zero: it is
	// neither.
	Until time.Time
	// Rate is the limit in calls a second; 0: there is none. Tokens is how many
	// calls it lets begin now.
	Rate   float64
	Tokens int
	// FailingSince is the first of the failures since the last success; zero:
	// it does not fail.
	FailingSince time.Time
}

// Targets lists the targets by name.
func (d *Dispatcher) Targets() []TargetStatus {
	now := time.Now()
	shares := d.shares()
	list := make([]TargetStatus, len(shares))
	for i, s := range shares {
		list[i] = d.limiter.status(s, now)
	}
	return list
}

// shares are those of the configured targets, by name.
func (d *Dispatcher) shares() []*share {
	d.mu.Lock()
	defer d.mu.Unlock()
	shares := make([]*share, 0, len(d.targets))
	for _, t := range d.targets {
		shares = append(shares, t.share)
	}
	slices.SortFunc(shares, func(a, b *share) int { return strings.Compare(a.name, b.name) })
	return shares
}

func (l *limiter) status(t *share, now time.Time) TargetStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := TargetStatus{
		Target: t.name, InFlight: t.used, Waiting: t.waiting, Limit: t.max, Ceiling: t.adaptive.ceiling,
		FailingSince: t.failing.since,
	}
	s.State, s.Since, s.Detail = t.state(now)
	if t.breaker.cfg.Enabled {
		s.Breaker = t.breaker.state(now).String()
	}
	if t.rate != nil {
		s.Rate, s.Tokens = t.rateSet.PerSecond, t.rate.available(now)
	}
	if until := t.blockedUntil(); until.After(now) {
		s.Until = until
	}
	return s
}

// state is what holds a target back, in one word.
func (s *share) state(now time.Time) (state State, since time.Time, detail string) {
	switch breaker := s.breaker.state(now); {
	case s.disabled():
		return StateDisabled, s.stored.Since, "the target is paused " + s.stored.String()
	case s.stored != nil:
		return StatePaused, s.stored.Since, "the target is paused " + s.stored.String()
	case s.paused:
		return StatePaused, time.Time{}, "the configuration pauses the target"
	case now.Before(s.heldUntil):
		return StateHeld, time.Time{}, "the target asked to wait until " + s.heldUntil.UTC().Format(time.RFC3339)
	case breaker == breakerOpen:
		return StateBroken, s.breaker.since, "the target fails; it is tried again at " + s.breaker.until.UTC().Format(time.RFC3339)
	case breaker == breakerHalfOpen:
		return StateBroken, s.breaker.since, "the target failed; the next call shows whether it is back"
	case s.rate != nil && s.waiting > 0 && s.rate.available(now) == 0:
		return StateLimited, time.Time{}, fmt.Sprintf("the rate limit of %g calls a second is used up", s.rateSet.PerSecond)
	}
	return StatePopping, time.Time{}, ""
}

// disabled says that the bridge itself paused the target.
func (s *share) disabled() bool { return s.stored != nil && s.stored.By == ByBridge }

// describe tells what holds a target back.
func (l *limiter) describe(t *share, now time.Time, s *RouteStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.State, s.Since, s.Detail = t.state(now)
}
