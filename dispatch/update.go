package dispatch

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// errStopped answers what comes too late.
var errStopped = errors.New("dispatch: the dispatcher has stopped")

// slot is the place of one route's name.
type slot struct {
	name    string
	running *route // takes events, or finishes what it took; nil: none
	wanted  *route // is to run; nil: none
	// draining is when the deletion of the route began; zero: it did not.
	draining time.Time
	pending  *int // retries, as last counted; nil: not yet. It is not changed
}

// Update replaces the routes and targets, which are valid and have their
// defaults filled in, while the dispatcher runs (or before). What did not
// change is not touched: pops, leases, calls and limits go on. A changed or
// removed route first stops taking events, lets its running calls finish,
// gives back or settles the rest, and only then its successor begins; Update
// does not wait for that. A changed target is called as it is now from the
// next call on, with what was learned of it (holds, limits); its old Sender is
// closed when its last call has ended.
//
// The error names every problem; nothing was changed then. Of calls at once
// each is applied whole, and the last one wins.
func (d *Dispatcher) Update(routes []bridge.Route, targets []bridge.Target) error {
	d.updating.Lock()
	defer d.updating.Unlock()
	if d.stopped.Load() {
		return errStopped
	}
	u, err := d.plan(routes, targets)
	if err != nil {
		u.discard()
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	u.apply()
	return nil
}

// update is a change worked out and not applied.
type update struct {
	d       *Dispatcher
	configs []bridge.Target
	targets map[string]*target // as they are to be
	senders map[string]Sender  // of added and changed targets
	order   []string
	routes  map[string]*route // added and changed ones
}

// plan works out a change; it changes nothing.
func (d *Dispatcher) plan(routes []bridge.Route, targets []bridge.Target) (*update, error) {
	u := &update{d: d, configs: targets, targets: map[string]*target{}, senders: map[string]Sender{}, routes: map[string]*route{}}
	var errs []error
	for _, t := range targets {
		errs = append(errs, u.target(t))
	}
	groups := map[[2]string]string{}
	for _, r := range routes {
		if slices.Contains(u.order, r.Name) {
			errs = append(errs, fmt.Errorf("route %s: there is another one of that name", r.Name))
			continue
		}
		key := [2]string{r.Queue, groupOf(r)}
		if other, taken := groups[key]; taken {
			errs = append(errs, fmt.Errorf("route %s: route %s reads queue %q as the same group: each would lose what the other got", r.Name, other, r.Queue))
		}
		groups[key], u.order = r.Name, append(u.order, r.Name)
		errs = append(errs, u.route(r))
	}
	return u, errors.Join(errs...)
}

// target plans one target: a new one where its routes must notice the change.
func (u *update) target(cfg bridge.Target) error {
	if u.targets[cfg.Name] != nil {
		return fmt.Errorf("target %s: there is another one of that name", cfg.Name)
	}
	old := u.d.targets[cfg.Name]
	if old != nil && reflect.DeepEqual(old.config(), cfg) {
		u.targets[cfg.Name] = old
		return nil
	}
	u.targets[cfg.Name] = old
	if old == nil || !sameShape(old.config(), cfg) {
		u.targets[cfg.Name] = &target{name: cfg.Name}
	}
	sender, err := u.d.newSender(cfg)
	if err != nil {
		return fmt.Errorf("target %s: %w", cfg.Name, err)
	}
	u.senders[cfg.Name] = sender
	return nil
}

// route plans one route.
func (u *update) route(cfg bridge.Route) error {
	t := u.targets[cfg.Target]
	if t == nil {
		return fmt.Errorf("route %s: there is no target %q", cfg.Name, cfg.Target)
	}
	if s := u.d.slots[cfg.Name]; s != nil && s.wanted != nil && s.wanted.target == t && reflect.DeepEqual(s.wanted.cfg, cfg) {
		return nil
	}
	r, err := u.d.newRoute(cfg, t)
	u.routes[cfg.Name] = r
	return err
}

// discard ends what was made for a change that is not applied.
func (u *update) discard() {
	for _, s := range u.senders {
		(&sending{sender: s}).close()
	}
}

// apply makes the change; the dispatcher's mu is held.
func (u *update) apply() {
	d := u.d
	limits := u.applyTargets()
	for name, r := range u.routes {
		r.target.use(1)
		r.draining.Store(d.slots[name] != nil && !d.slots[name].draining.IsZero())
		r.claim = d.limiter.newClaim(r.target.share, r.limit(limits[r.cfg.Target]), r.cfg.Batch.Size)
		r.encoder = format.New(r.cfg, r.target.config())
		r.m = d.m.of(name, r.cfg.Target)
		if d.slots[name] == nil {
			r.fresh = d.made
			d.slots[name] = &slot{name: name}
		}
	}
	d.order = u.order
	d.routes.Store(int64(len(u.order)))
	for name, s := range d.slots {
		switch r := u.routes[name]; {
		case !slices.Contains(u.order, name):
			d.want(s, nil)
		case r != nil:
			d.want(s, r)
		default:
			d.limiter.bound(s.wanted.claim, s.wanted.limit(limits[s.wanted.cfg.Target]))
		}
	}
	for key := range d.paused.all {
		d.applyPause(key)
	}
}

// applyTargets returns how many calls at once each target may get.
func (u *update) applyTargets() map[string]int {
	d, before := u.d, u.d.targets
	limits := make(map[string]int, len(u.configs))
	d.targets = u.targets
	for _, cfg := range u.configs {
		limit := concurrencyOf(cfg, d.pool, len(u.configs))
		limits[cfg.Name] = limit
		t, old, sender := u.targets[cfg.Name], before[cfg.Name], u.senders[cfg.Name]
		switch {
		case t != old:
			t.now = newSending(cfg, sender)
			t.use(1)
			if old != nil {
				t.share = old.share
			} else {
				t.share = d.limiter.newShare(limit, cfg)
			}
		case sender != nil:
			t.replace(cfg, sender)
		}
		d.limiter.reshape(t.share, limit, cfg)
	}
	for name, old := range before {
		if u.targets[name] != old {
			old.use(-1)
		}
		if u.targets[name] == nil {
			d.m.forgetTarget(name)
		}
	}
	return limits
}

// want says what is to run in a slot; mu is held.
func (d *Dispatcher) want(s *slot, r *route) {
	if never := s.wanted; never != nil && never != s.running {
		never.target.use(-1)
	}
	s.wanted = r
	if r == nil {
		s.draining = time.Time{}
	}
	if r == nil && s.running == nil {
		delete(d.slots, s.name)
		return
	}
	d.turn(s)
}

// turn brings a slot nearer to what is wanted; mu is held.
func (d *Dispatcher) turn(s *slot) {
	switch old := s.running; {
	case !d.open || d.taking.Err() != nil || old == s.wanted:
	case old == nil:
		s.running = s.wanted
		s.running.begin()
	case !old.ending:
		old.ending = true
		old.adjust()
		old.end(errStopping)
		d.spawn(func() { d.succeed(s, old) })
	}
}

// succeed waits until a route has settled all that it took, lets its successor
// begin, and forgets it when its last call has ended.
func (d *Dispatcher) succeed(s *slot, old *route) {
	select {
	case <-old.leased.empty():
	case <-d.settling.Done():
	}
	d.mu.Lock()
	s.running = nil
	if s.wanted != nil {
		s.wanted.retries.seldom.inherit(old.retries.seldom)
	}
	d.turn(s)
	d.mu.Unlock()
	select {
	case <-old.work.empty():
	case <-d.settling.Done():
	}
	old.target.use(-1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.running == nil && s.wanted == nil && d.slots[s.name] == s {
		delete(d.slots, s.name)
		d.m.forget(s.name)
		d.log.Info("route ended", slog.String(keyRoute, s.name))
	}
}

// release closes the Senders once the dispatcher has ended.
func (d *Dispatcher) release() {
	d.updating.Lock()
	defer d.updating.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.slots {
		if s.running != nil {
			s.running.target.use(-1)
		}
		if s.wanted != nil && s.wanted != s.running {
			s.wanted.target.use(-1)
		}
	}
	for _, t := range d.targets {
		t.use(-1)
	}
}
