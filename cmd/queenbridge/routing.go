package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
)

// routing is what a dispatcher follows.
type routing struct {
	routes  []bridge.Route
	targets []bridge.Target
	// draining are the routes that are being deleted.
	draining []string
}

// liveRouting hands routing to the dispatcher. Those that come before there is
// one, which needs Queen, wait for it.
type liveRouting struct {
	newSender func(bridge.Target) (dispatch.Sender, error)

	mu      sync.Mutex
	now     routing
	changes int
	d       *dispatch.Dispatcher // nil: not yet
}

// update makes routing count; after an error those of before do.
func (l *liveRouting) update(next routing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.apply(next); err != nil {
		return err
	}
	l.now = next
	l.changes++
	return nil
}

func (l *liveRouting) apply(next routing) error {
	if l.d != nil {
		if err := l.d.Update(next.routes, next.targets); err != nil {
			return err
		}
		return drain(l.d, next.draining)
	}
	var errs []error
	for _, t := range next.targets {
		s, err := l.newSender(t)
		if err != nil {
			errs = append(errs, fmt.Errorf("target %s: %w", t.Name, err))
			continue
		}
		if c, ok := s.(interface{ Close() }); ok {
			c.Close()
		}
	}
	return errors.Join(errs...)
}

// begin makes the dispatcher of the newest routing, once their queues are set
// up.
func (l *liveRouting) begin(ctx context.Context, setUp func(context.Context, routing) error, start func(routing) (*dispatch.Dispatcher, error)) (*dispatch.Dispatcher, error) {
	for {
		l.mu.Lock()
		now, changes := l.now, l.changes
		l.mu.Unlock()
		if err := setUp(ctx, now); err != nil {
			return nil, err
		}
		if d, err := l.beginWith(now, changes, start); d != nil || err != nil {
			return d, err
		}
	}
}

// beginWith returns nothing where it has changed meanwhile.
func (l *liveRouting) beginWith(now routing, changes int, start func(routing) (*dispatch.Dispatcher, error)) (_ *dispatch.Dispatcher, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes != changes {
		return nil, nil
	}
	l.d, err = start(now)
	if err == nil {
		err = drain(l.d, now.draining)
	}
	return l.d, err
}

// drain begins the deletion of routes; where it began already nothing happens.
func drain(d *dispatch.Dispatcher, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, d.Drain(name))
	}
	return errors.Join(errs...)
}
