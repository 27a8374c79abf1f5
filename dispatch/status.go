package dispatch

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// State is what a route does, in one word.
type State string

// The states of a route.
const (
	StateStarting    State = "starting"    // waits for its queues, or for the route it replaces
	StatePopping     State = "popping"     // takes events
	StateDraining    State = "draining"    // being deleted: takes retries only
	StatePaused      State = "paused"      // by the configuration, or by an operator
	StateHeld        State = "held"        // its target asked for time (Retry-After)
	StateBroken      State = "broken"      // the breaker of its target is open
	StateLimited     State = "limited"     // the rate limit of its target is used up
	StateDisabled    State = "disabled"    // the bridge paused its target (410, disable_after)
	StateUnreachable State = "unreachable" // Queen does not answer pops
	StateBlocked     State = "blocked"     // Queen refuses settles: an operator's matter
	StateStopped     State = "stopped"
)

// RouteStatus is the state of one route.
type RouteStatus struct {
	Route  string
	Target string
	State  State
	// Since is when the state began; zero where it was so from the start.
	Since time.Time
	// Detail says why, for a reader; never a secret.
	Detail string
	// Retries wait in Queen for their time, as last counted: once a minute.
	// MaxRetriesPending means that many or more; nil: not counted yet. With
	// ordering partition a failing event waits in its partition instead.
	Retries *int
}

// status collects what goes wrong with a route.
type status struct {
	troubled atomic.Bool // anything below is set: keeps the good path free of the lock
	mu       sync.Mutex
	blocked  trouble
	freed    chan struct{} // closed when blocked ends
	feeds    map[string]trouble
}

type trouble struct {
	since  time.Time
	err    error
	outage bool // counted in the dispatcher's outage
}

// block says that Queen refuses a settle for a reason only an operator can
// remove: the route pops nothing meanwhile, or every lease expiry would be a
// duplicate call.
func (s *status) block(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubled.Store(true)
	if s.blocked.err == nil {
		s.blocked.since, s.freed = time.Now(), make(chan struct{})
	}
	s.blocked.err = err
}

func (s *status) unblock() {
	if !s.troubled.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked.err != nil {
		close(s.freed)
		s.blocked, s.freed = trouble{}, nil
	}
}

// blockedUntil is closed when the route may pop again; nil: it may now.
func (s *status) blockedUntil() <-chan struct{} {
	if !s.troubled.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed
}

// failed notes that pops of a feed fail, and returns how it was before.
func (s *status) failed(feed string, err error) (before trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubled.Store(true)
	if s.feeds == nil {
		s.feeds = make(map[string]trouble)
	}
	before = s.feeds[feed]
	now := trouble{since: before.since, err: err, outage: noAnswer(err)}
	if before.err == nil {
		now.since = time.Now()
	}
	s.feeds[feed] = now
	return before
}

// recovered notes that pops of a feed succeed, and returns how it was before.
func (s *status) recovered(feed string) (before trouble) {
	if !s.troubled.Load() {
		return trouble{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.feeds[feed]
	delete(s.feeds, feed)
	return before
}

// worst is the trouble of the feeds that an operator should hear of, and the
// blockade: what Queen says of one queue before that it is away, then the
// oldest.
func (s *status) worst() (blocked, feed trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.feeds)) {
		if t := s.feeds[name]; feed.err == nil || feed.outage && !t.outage || feed.outage == t.outage && t.since.Before(feed.since) {
			feed = t
		}
	}
	return s.blocked, feed
}

// Status lists the routes in the order of the configuration.
func (d *Dispatcher) Status() []RouteStatus {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]RouteStatus, len(d.order))
	for i, name := range d.order {
		list[i] = d.slots[name].status(now)
		list[i].Retries = d.slots[name].pending
	}
	return list
}

// status is of the route that is wanted.
func (s *slot) status(now time.Time) RouteStatus {
	r := s.wanted
	if r.d.stopped.Load() || s.running == r && r.begun {
		return r.currentStatus(now)
	}
	waits := RouteStatus{Route: r.cfg.Name, Target: r.cfg.Target, State: StateStarting, Detail: "its queues are being set up"}
	switch {
	case !r.d.open && r.d.paused.trouble.err != nil:
		waits.State, waits.Since, waits.Detail = StateUnreachable, r.d.paused.trouble.since, r.d.paused.trouble.err.Error()
	case !r.d.open:
		waits.Detail = "what is paused is not known yet"
	case s.running != r:
		waits.Detail = "the route as it was before finishes its calls"
	}
	return waits
}

func (r *route) currentStatus(now time.Time) RouteStatus {
	s := RouteStatus{Route: r.cfg.Name, Target: r.cfg.Target, State: StatePopping}
	blocked, feed := r.status.worst()
	pause, stored := r.d.paused.all[pauseKey{kindRoute, r.cfg.Name}]
	switch {
	case r.d.stopped.Load():
		s.State = StateStopped
	case blocked.err != nil:
		s.State, s.Since, s.Detail = StateBlocked, blocked.since, blocked.err.Error()
	case feed.err != nil:
		s.State, s.Since, s.Detail = StateUnreachable, feed.since, feed.err.Error()
	case stored:
		s.State, s.Since, s.Detail = StatePaused, pause.Since, "the route is paused "+pause.String()
	case r.cfg.Paused:
		s.State, s.Detail = StatePaused, "the configuration pauses the route"
	default:
		r.d.limiter.describe(r.target.share, now, &s)
		if r.draining.Load() && s.State == StatePopping {
			s.State, s.Detail = StateDraining, "the route is being deleted: only its retries and dead letters run on"
		}
	}
	return s
}
