package rules

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Delete is one resource to be deleted.
type Delete struct {
	Resource bridge.Resource
	Precondition
	// Stored deletes what is stored under a name that the file has, too. The
	// file's resource stays.
	Stored bool
	// Drain deletes also the routes that need a target: they drain, and the
	// target goes with the last of them.
	Drain bool
	// By is the name of the token that asks.
	By string
}

// Deleted is what a Delete came to.
type Deleted struct {
	// Before is the version that was deleted.
	Before int64
	// Gone is false for what drains; Entry is its state.
	Gone  bool
	Entry Entry
	// Routes are those that were deleted with a target.
	Routes []bridge.Resource
}

// Delete deletes a stored resource that no other one needs. A route in use
// drains first: its events stay in the queue, its retries and dead letters run
// on, and once none is left and every process knows, it goes; see also Drain. The error is
// ErrNotFound, ErrManagedByFile, or of type *PreconditionError or *InUseError;
// any other one is Queen's, and the change may have been made then.
func (s *Store) Delete(ctx context.Context, d Delete) (Deleted, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		return Deleted{}, err
	}
	defer s.end()
	for try := 0; ; try++ {
		out, err := s.delete(ctx, d)
		if again, err := s.lost(ctx, err, d.asks(), try); !again {
			return out, err
		}
	}
}

func (s *Store) delete(ctx context.Context, d Delete) (Deleted, error) {
	if err := s.refresh(ctx); err != nil {
		return Deleted{}, err
	}
	one, e, err := s.deletable(d)
	out := Deleted{Before: one.version, Entry: e}
	used, _ := errors.AsType[*InUseError](err)
	switch {
	case used != nil && d.Drain && d.Resource.Kind == bridge.KindTarget && s.mayDrain(used.By):
		for _, r := range append(used.By, d.Resource) {
			if err = s.drain(ctx, r, d.By); err != nil {
				break
			}
		}
		out.Routes = used.By
		out.Entry, _ = s.Catalog().Entry(d.Resource)
	case err != nil:
		return Deleted{}, err
	case one.row.Draining != nil:
		return out, nil
	case d.Resource.Kind == bridge.KindRoute && e.InUse && !e.File:
		err = s.drain(ctx, d.Resource, d.By)
		out.Entry, _ = s.Catalog().Entry(d.Resource)
	default:
		err = s.remove(ctx, one)
		out.Gone = true
	}
	if err != nil {
		return Deleted{}, err
	}
	s.metrics.writes.WithLabelValues(string(d.Resource.Kind)).Inc()
	return out, nil
}

// mayDrain says that resources are stored routes: they can be made to drain.
func (s *Store) mayDrain(list []bridge.Resource) bool {
	c := s.Catalog()
	return !slices.ContainsFunc(list, func(r bridge.Resource) bool {
		e, _ := c.Entry(r)
		return r.Kind != bridge.KindRoute || e.File || e.Newer
	})
}

// drain begins the deletion of a resource, unless it began already.
func (s *Store) drain(ctx context.Context, r bridge.Resource, by string) error {
	s.mu.Lock()
	one := s.rows[bridge.RuleKey(r)]
	s.mu.Unlock()
	if one.row.Draining != nil {
		return nil
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	next := one.row
	next.Draining, next.Updated, next.By, next.Write = &now, now, by, newSealedID()
	return s.put(ctx, one.version, next)
}

// deletable is the row to delete.
func (s *Store) deletable(d Delete) (stored, Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.catalog.Load()
	e, _ := c.Entry(d.Resource)
	one, found := s.rows[bridge.RuleKey(d.Resource)]
	switch users := c.Users(d.Resource); {
	case e.File && !d.Stored:
		return one, e, ErrManagedByFile
	case !found:
		return one, e, ErrNotFound
	case !d.holds(one.version, true):
		return one, e, &PreconditionError{}
	case len(users) > 0 && !e.File && one.row.Draining == nil:
		return one, e, &InUseError{By: users}
	}
	return one, e, nil
}

// drainState is what this process knows about a draining route.
type drainState struct {
	since time.Time // when it was first seen; clocks of other machines do not count
	next  time.Time // when to look again
	wait  time.Duration
}

// The looks at a draining route: one look asks Queen three times.
const (
	firstDrainLook = 2 * time.Second
	maxDrainLook   = 30 * time.Second
)

// finishDrained deletes the rows of routes that have drained. writing is held.
func (s *Store) finishDrained(ctx context.Context) {
	if s.config.Left == nil {
		return
	}
	draining := s.Catalog().DrainingRoutes()
	known := make(map[bridge.Resource]drainState, len(draining))
	now := time.Now()
	for _, r := range draining {
		state, seen := s.drained[r]
		if !seen {
			state = drainState{since: now, next: now.Add(min(s.config.KnownAfter, s.config.DrainAfter)), wait: min(firstDrainLook, s.config.DrainAfter)}
		}
		if !now.Before(state.next) {
			leased := now.Sub(state.since) < s.config.DrainAfter && !s.settled(ctx, r)
			if !leased && s.finishOne(ctx, r) {
				continue
			}
			state.next, state.wait = now.Add(state.wait), min(2*state.wait, maxDrainLook)
			if end := state.since.Add(s.config.DrainAfter); leased && state.next.After(end) {
				state.next = end
			}
		}
		known[r] = state
	}
	s.drained = known
	s.finishTargets(ctx)
}

// finishTargets deletes the rows of targets that drained with their routes. What
// fails is tried again at the next look.
func (s *Store) finishTargets(ctx context.Context) {
	c := s.Catalog()
	for _, r := range c.Draining() {
		if r.Kind != bridge.KindTarget || len(c.Users(r)) > 0 {
			continue
		}
		s.mu.Lock()
		one, found := s.rows[bridge.RuleKey(r)]
		s.mu.Unlock()
		if found && s.remove(ctx, one) == nil {
			s.log.Info("target deleted: its routes are gone", "target", r.Name)
		}
	}
}

// settled says that a draining route holds nothing of its source any more.
func (s *Store) settled(ctx context.Context, r bridge.Resource) bool {
	routes := s.Catalog().Config.Routes
	at := slices.IndexFunc(routes, func(one bridge.Route) bool { return one.Name == r.Name })
	if s.config.Settled == nil || at < 0 {
		return false
	}
	settled, err := s.config.Settled(ctx, routes[at])
	if err != nil && ctx.Err() == nil {
		s.log.Warn("draining route not looked at", "route", r.Name, "error", err)
	}
	return settled
}

// finishOne deletes a draining route's row if nothing of it is left in Queen.
// What fails is tried again at the next look.
func (s *Store) finishOne(ctx context.Context, r bridge.Resource) bool {
	left, err := s.config.Left(ctx, r.Name)
	if err != nil || left != "" {
		if err != nil && ctx.Err() == nil {
			s.log.Warn("draining route not looked at", "route", r.Name, "error", err)
		}
		return false
	}
	s.mu.Lock()
	one, found := s.rows[bridge.RuleKey(r)]
	s.mu.Unlock()
	if !found {
		return true
	}
	if err := s.remove(ctx, one); err != nil {
		return false // another process was faster, or Queen is away
	}
	s.log.Info("route drained and deleted", "route", r.Name)
	return true
}
