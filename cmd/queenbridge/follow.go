package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// follower makes the parts of this process follow the catalog. What a part
// refuses is logged, and the part stays as it is.
type follower struct {
	sources func([]bridge.Source) error // nil: this process serves none
	routing func(routing) error         // nil: this process does not dispatch
	log     *slog.Logger

	mu      sync.Mutex
	applied bridge.Config
	queues  []bridge.ManagedQueue // to be configured
	grew    chan struct{}
}

func newFollower(log *slog.Logger, applied bridge.Config) *follower {
	return &follower{log: log, applied: applied, grew: make(chan struct{}, 1)}
}

// follow applies one state of the catalog.
func (f *follower) follow(c *rules.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, changes := f.applied, changesOf(f.applied, c.Config)
	f.applySources(c.Config.Sources, changes.sources)
	f.applyRouting(routing{c.Config.Routes, c.Config.Targets, namesOf(c.DrainingRoutes())}, changes)
	if !changes.queues.none() {
		f.applied.Queues = c.Config.Queues
		f.say("queues reloaded", changes.queues, time.Now())
	}
	f.queues = append(f.queues, newQueues(before, f.applied)...)
	select {
	case f.grew <- struct{}{}:
	default:
	}
}

func namesOf(list []bridge.Resource) []string {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name
	}
	return names
}

func (f *follower) applySources(sources []bridge.Source, c resourceDiff) {
	if c.none() {
		return
	}
	begun := time.Now()
	if f.sources != nil {
		if err := f.sources(sources); err != nil {
			f.log.Error("sources not reloaded: the running ones stay", "problems", problemsOf(err))
			return
		}
	}
	f.applied.Sources = sources
	f.say("sources reloaded", c, begun)
}

// applyRouting is called for each state: which routes drain is no part of the
// configuration.
func (f *follower) applyRouting(next routing, c changes) {
	begun := time.Now()
	if f.routing != nil {
		if err := f.routing(next); err != nil {
			f.log.Error("routes and targets not reloaded: the running ones stay", "problems", problemsOf(err))
			return
		}
	}
	f.applied.Routes, f.applied.Targets = next.routes, next.targets
	if !c.targets.none() {
		f.say("targets reloaded", c.targets, begun)
	}
	if !c.routes.none() {
		f.say("routes reloaded", c.routes, begun)
	}
}

func (f *follower) say(msg string, c resourceDiff, begun time.Time) {
	f.log.Info(msg, "added", c.added, "changed", c.changed, "removed", c.removed, "took", time.Since(begun))
}

// run configures queues whose options changed until ctx ends.
func (f *follower) run(ctx context.Context, configure func(context.Context, []bridge.ManagedQueue) error) error {
	for {
		f.mu.Lock()
		queues := f.queues
		f.queues = nil
		f.mu.Unlock()
		if err := configure(ctx, queues); err != nil {
			return err // only ctx's: it logs what Queen refuses, and waits for Queen
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.grew:
		}
	}
}

// newQueues are the queues that a configuration manages with other options
// than the one before. Those of routes are set up before the route begins.
func newQueues(before, after bridge.Config) []bridge.ManagedQueue {
	before.Routes, after.Routes = nil, nil
	known := make(map[string]bridge.ManagedQueue)
	for _, q := range before.ManagedQueues() {
		known[q.Name] = q
	}
	var out []bridge.ManagedQueue
	for _, q := range after.ManagedQueues() {
		if known[q.Name] != q {
			out = append(out, q)
		}
	}
	return out
}
