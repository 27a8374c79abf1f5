package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// route is a bridge.Route at work, from its first pop until all it began is
// settled. A changed route is another one.
type route struct {
	d          *Dispatcher
	cfg        bridge.Route
	group      string
	retryQueue string
	target     *target
	policy     bridge.Policy
	filter     matcher           // nil: every event is wanted
	transform  *filter.Transform // nil: events are called as they are
	encoder    *format.Encoder
	calls      calls // one event each
	lots       lots  // batch.size above 1
	claim      *claim
	memo       *memo
	large      *large
	log        *slog.Logger
	m          routeMetrics
	status     status
	careful    atomic.Int64 // until when single messages are popped in order: unix nanoseconds

	source, retries, dead intake
	draining              atomic.Bool // being deleted: the source is popped no more

	leased load // what pops, and what was popped and is not settled
	work   load // every goroutine of the route, detached calls among them

	// Guarded by the dispatcher's mu.
	fresh         bool // no route had its name since the dispatcher was made
	begun, ending bool
	life          context.Context // ends when the route does
	end           context.CancelCauseFunc
}

// intake is a feed that may be stopped and begun again. Guarded by the
// dispatcher's mu.
type intake struct {
	*feed
	stop context.CancelCauseFunc // nil: it does not pop
}

// newRoute makes a route; the error says what is wrong with it.
func (d *Dispatcher) newRoute(cfg bridge.Route, t *target) (*route, error) {
	policy, problems := bridge.NewPolicy(cfg)
	for _, p := range problems {
		if !p.Warning {
			return nil, fmt.Errorf("route %s: %s", cfg.Name, p)
		}
	}
	wanted, err := newFilter(cfg)
	if err != nil {
		return nil, err
	}
	transform, err := newTransform(cfg)
	if err != nil {
		return nil, err
	}
	r := &route{
		d: d, cfg: cfg, group: groupOf(cfg), retryQueue: bridge.RetryQueue(cfg.Name), target: t, policy: policy, filter: wanted, transform: transform, memo: newMemo(), large: &large{queen: d.queen},
		log: d.log.With(slog.String(keyRoute, cfg.Name), slog.String(keyTarget, cfg.Target)),
	}
	r.calls = calls{r: r, shed: func() { r.spawn(r.calls.turnAway) }}
	r.lots = lots{r: r, open: map[int]*lot{}, waiting: map[*lot]bool{}}
	r.source.feed, r.retries.feed, r.dead.feed = r.sourceFeed(), r.retryFeed(), r.deadFeed()
	return r, nil
}

func groupOf(cfg bridge.Route) string {
	if cfg.Group == "" {
		return cfg.Name
	}
	return cfg.Group
}

// limit bounds a route's calls at once.
func (r *route) limit(ofTarget int) int {
	if r.cfg.Concurrency > 0 {
		return min(ofTarget, r.cfg.Concurrency)
	}
	return ofTarget
}

// begin lets a route take events; the dispatcher's mu is held.
func (r *route) begin() {
	r.life, r.end = context.WithCancelCause(r.d.taking)
	if r.d.setup == nil || !r.fresh {
		r.begun = true
		r.adjust()
		return
	}
	r.leased.add(1)
	if !r.spawn(r.setUp) {
		r.leased.add(-1)
	}
}

// setUp makes ready in Queen what the route needs. Where that fails the route
// begins all the same: it may well be there.
func (r *route) setUp() {
	defer r.leased.add(-1)
	if err := r.d.setup(r.life, r.cfg); err != nil && r.life.Err() == nil {
		r.log.Warn("route not set up in queen, it begins all the same", slog.Any(keyError, err))
	}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	r.begun = true
	r.adjust()
}

// adjust starts and stops the pops of a route as its state asks for; the
// dispatcher's mu is held. A paused route takes no events, but its dead
// letters are filed.
func (r *route) adjust() {
	takes := r.begun && !r.ending
	r.dead.set(takes)
	r.retries.set(takes && !r.paused())
	r.source.set(takes && !r.paused() && !r.draining.Load())
}

// paused says that events and retries wait; the dispatcher's mu is held.
func (r *route) paused() bool { return r.cfg.Paused || r.d.isPaused(kindRoute, r.cfg.Name) }

// pauseItself pauses the route on the bridge's own word.
func (r *route) pauseItself(reason string) { r.d.pauseItself(pauseKey{kindRoute, r.cfg.Name}, reason) }

// set starts or stops a feed. What it leased and did not call is given back
// when it stops.
func (i *intake) set(on bool) {
	switch {
	case on && i.stop == nil:
		var ctx context.Context
		ctx, i.stop = context.WithCancelCause(i.r.life)
		i.r.spawnFeed(func() { i.run(ctx) })
	case !on && i.stop != nil:
		i.stop(errStopping)
		i.stop = nil
	}
}

// spawn runs f in a goroutine of the route; false: the dispatcher has ended.
func (r *route) spawn(f func()) bool {
	r.work.add(1)
	spawned := r.d.spawn(func() {
		defer r.work.add(-1)
		f()
	})
	if !spawned {
		r.work.add(-1)
	}
	return spawned
}

// spawnFeed is spawn for what pops.
func (r *route) spawnFeed(f func()) {
	r.leased.add(1)
	if !r.spawn(func() { defer r.leased.add(-1); f() }) {
		r.leased.add(-1)
	}
}

// popped counts messages between their pop and their settle.
func (r *route) popped(n int) {
	r.leased.add(n)
	r.d.limiter.popped(r.claim, n)
}
