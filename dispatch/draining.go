package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// A route is deleted in two phases (design.md), for a check of what is left
// races with a replica that still settles: draining, then gone.

// drainTime is how long a route must have been draining before it can be
// gone: every process has learned of it, and what it leased of the source is
// settled or lost.
const drainTime = 5*time.Second + leaseNone

// Inspector tells what is left in Queen; *queen.Client is one.
type Inspector interface {
	// Depth is how many messages a group has not consumed, leased ones
	// included; queen.ErrNotFound where there is no such queue.
	Depth(ctx context.Context, queue, group string) (int, error)
	// CountTimers counts the timers of a queue, up to limit.
	CountTimers(ctx context.Context, queue string, limit int) (int, error)
	// Queues lists every queue.
	Queues(ctx context.Context) ([]queen.QueueInfo, error)
}

// Drain begins the deletion of a route in this process: its source is popped
// no more and its leases there are renewed no more, while retries and dead
// letters run on. It holds over Update as long as that names the route, so it
// is repeated after a restart. The error is ErrUnknown.
func (d *Dispatcher) Drain(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[name]
	if s == nil || s.wanted == nil {
		return fmt.Errorf("drain: route %q: %w", name, ErrUnknown)
	}
	if !s.draining.IsZero() {
		return nil
	}
	s.draining = time.Now()
	for _, r := range []*route{s.running, s.wanted} {
		if r != nil {
			r.draining.Store(true)
			r.adjust()
		}
	}
	d.log.Info("route drains: it takes no new events", slog.String(keyRoute, name))
	return nil
}

// Drained says whether a route that Drain was called for has nothing left, so
// that it may be removed; detail says what it waits for. While it is paused it
// will not. The error is ErrUnknown, or Queen's.
func (d *Dispatcher) Drained(ctx context.Context, route string) (done bool, detail string, err error) {
	since, paused, err := d.drainingSince(route)
	switch {
	case err != nil:
		return false, "", fmt.Errorf("drained: %w", err)
	case since.IsZero():
		return false, "the route does not drain", nil
	case time.Since(since) < drainTime:
		return false, "events that were taken before may still be settled", nil
	}
	detail, err = Left(ctx, d.queen, route)
	if detail != "" && paused {
		detail += ", and the route or its target is paused"
	}
	return err == nil && detail == "", detail, err
}

func (d *Dispatcher) drainingSince(name string) (since time.Time, paused bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[name]
	if s == nil || s.wanted == nil {
		return time.Time{}, false, fmt.Errorf("route %q: %w", name, ErrUnknown)
	}
	r := s.wanted
	return s.draining, r.paused() || d.isPaused(kindTarget, r.cfg.Target) || r.target.config().Paused, nil
}

// Left says what a route still has in Queen beside its source: timers,
// retries, dead letters not filed; "" is nothing. A delivery on its way from
// one to another is seen: each is looked at twice.
func Left(ctx context.Context, q Inspector, route string) (string, error) {
	for range 2 {
		o, err := inspect(ctx, q, route, 1)
		if err != nil {
			return "", fmt.Errorf("what is left of route %s: %w", route, err)
		}
		switch {
		case o.Timers > 0:
			return "retries are scheduled", nil
		case o.Retries > 0:
			return fmt.Sprintf("%d retries are due or under way", o.Retries), nil
		case o.Dead > 0:
			return fmt.Sprintf("%d dead letters are not filed yet", o.Dead), nil
		}
	}
	return "", nil
}

// Settled says that no process holds an event of a route's source, once none
// takes any: there is none that its group has not consumed. Leased ones count,
// so a backlog looks like leases.
func Settled(ctx context.Context, q Inspector, r bridge.Route) (bool, error) {
	n, err := depthOf(ctx, q, r.Queue, r.Group)
	if err != nil {
		return false, fmt.Errorf("what route %s holds: %w", r.Name, err)
	}
	return n == 0, nil
}

// inspect counts what a route has; timers up to a limit, and first: a timer
// that fires meanwhile is then seen as a retry.
func inspect(ctx context.Context, q Inspector, route string, timers int) (o Orphan, err error) {
	o.Route = route
	if o.Timers, err = q.CountTimers(ctx, bridge.RetryQueue(route), timers); err != nil {
		return o, err
	}
	if o.Retries, err = depthOf(ctx, q, bridge.RetryQueue(route), route); err != nil {
		return o, err
	}
	o.Dead, err = depthOf(ctx, q, bridge.DeadQueue(route), route)
	return o, err
}

func depthOf(ctx context.Context, q Inspector, queue, group string) (int, error) {
	n, err := q.Depth(ctx, queue, group)
	if errors.Is(err, queen.ErrNotFound) {
		return 0, nil
	}
	return n, err
}
