package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
)

// rules are the resources that a dispatcher follows.
type rules struct {
	routes  []bridge.Route
	targets []bridge.Target
}

// liveRules hands rules to the dispatcher. Those that come before there is
// one, which needs Queen, wait for it.
type liveRules struct {
	newSender func(bridge.Target) (dispatch.Sender, error)

	mu      sync.Mutex
	now     rules
	changes int
	d       *dispatch.Dispatcher // nil: not yet
}

// update makes rules count; after an error those of before do.
func (l *liveRules) update(next rules) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.apply(next); err != nil {
		return err
	}
	l.now = next
	l.changes++
	return nil
}

func (l *liveRules) apply(next rules) error {
	if l.d != nil {
		return l.d.Update(next.routes, next.targets)
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

// begin makes the dispatcher of the newest rules, once their queues are set
// up.
func (l *liveRules) begin(ctx context.Context, setUp func(context.Context, rules) error, start func(rules) (*dispatch.Dispatcher, error)) (*dispatch.Dispatcher, error) {
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

// beginWith returns nothing where the rules have changed meanwhile.
func (l *liveRules) beginWith(now rules, changes int, start func(rules) (*dispatch.Dispatcher, error)) (_ *dispatch.Dispatcher, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes != changes {
		return nil, nil
	}
	l.d, err = start(now)
	return l.d, err
}
