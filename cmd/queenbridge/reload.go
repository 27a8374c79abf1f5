package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
)

// reloader keeps a running bridge on what its configuration says: sources,
// targets, routes and queues are replaced at once, everything else is reported
// as waiting for a restart. A configuration that cannot be used changes
// nothing.
type reloader struct {
	load    func() (configfile.Result, error)
	update  func([]bridge.Source) error // nil: this process serves no sources
	rules   func(rules) error           // nil: this process does not dispatch
	queues  func(context.Context, []bridge.ManagedQueue) error
	token   func(bridge.Secret) // nil: Queen's token is read at the start only
	running bridge.Config
	log     *slog.Logger
	asked   <-chan os.Signal

	pending []string // what waits for a restart
}

// run reloads when files change and when asked to, until ctx ends.
func (r *reloader) run(ctx context.Context) error {
	watcher, err := configfile.NewWatcher()
	if err != nil {
		r.log.Warn("configuration files are not watched; SIGHUP reloads them", "error", err)
		return r.loop(ctx, nil, nil)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	wg.Go(func() {
		_ = watcher.Run(ctx, func() { // it ends with ctx
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	return errors.Join(r.loop(ctx, watcher, changed), watcher.Close())
}

// loop looks once at the start: the files may have changed since they were
// read.
func (r *reloader) loop(ctx context.Context, watcher *configfile.Watcher, changed <-chan struct{}) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := func() {}
	asked := false
	for {
		queues := r.settle(watcher, asked)
		if len(queues) > 0 {
			stop() // the newest word counts
			var configuring context.Context
			configuring, stop = context.WithCancel(ctx)
			wg.Go(func() { _ = r.queues(configuring, queues) }) // it logs what Queen refuses
		}
		select {
		case <-ctx.Done():
			stop()
			return ctx.Err()
		case <-r.asked:
			asked = true
		case <-changed:
			asked = false
		}
	}
}

// settle reloads, again where the configuration names files that it did not
// name before: they are watched from then on.
func (r *reloader) settle(watcher *configfile.Watcher, asked bool) []bridge.ManagedQueue {
	const most = 3
	var queues []bridge.ManagedQueue
	for range most {
		files, more := r.reload(asked)
		queues = append(queues, more...)
		if watcher == nil || len(files) == 0 {
			break
		}
		added, err := watcher.Watch(files)
		if err != nil {
			r.log.Warn("configuration files are not watched; SIGHUP reloads them", "error", err)
		}
		if !added {
			break
		}
		asked = false
	}
	return queues
}

// reload reads the configuration and applies what may change while running.
// It returns the files it was made of, and the queues to configure.
func (r *reloader) reload(asked bool) ([]string, []bridge.ManagedQueue) {
	result, err := r.load()
	if err != nil {
		r.log.Error("configuration not reloaded: the running one stays", "problems", problemsOf(err))
		return result.Files(), nil
	}
	r.retoken(result.Config.Queen.Token)
	changes := changesOf(r.running, result.Config)
	r.report(result, changes, asked)
	before := r.running
	r.applySources(result.Config.Sources, changes.sources)
	r.applyRules(rules{result.Config.Routes, result.Config.Targets}, changes)
	if !changes.queues.none() {
		r.running.Queues = result.Config.Queues
		r.say("queues reloaded", changes.queues, time.Now())
	}
	return result.Files(), newQueues(before, r.running)
}

// retoken hands another bearer token for Queen to the running client.
func (r *reloader) retoken(token bridge.Secret) {
	if r.token == nil || token == r.running.Queen.Token {
		return
	}
	r.token(token)
	r.running.Queen.Token = token
	r.log.Info("queen token reloaded")
}

func (r *reloader) applySources(sources []bridge.Source, c resourceDiff) {
	if c.none() {
		return
	}
	begun := time.Now()
	if r.update != nil {
		if err := r.update(sources); err != nil {
			r.log.Error("sources not reloaded: the running ones stay", "problems", problemsOf(err))
			return
		}
	}
	r.running.Sources = sources
	r.say("sources reloaded", c, begun)
}

func (r *reloader) applyRules(next rules, c changes) {
	if c.targets.none() && c.routes.none() {
		return
	}
	begun := time.Now()
	if r.rules != nil {
		if err := r.rules(next); err != nil {
			r.log.Error("routes and targets not reloaded: the running ones stay", "problems", problemsOf(err))
			return
		}
	}
	r.running.Routes, r.running.Targets = next.routes, next.targets
	for msg, c := range map[string]resourceDiff{"targets reloaded": c.targets, "routes reloaded": c.routes} {
		if !c.none() {
			r.say(msg, c, begun)
		}
	}
}

func (r *reloader) say(msg string, c resourceDiff, begun time.Time) {
	r.log.Info(msg, "added", c.added, "changed", c.changed, "removed", c.removed, "took", time.Since(begun))
}

// report says what waits for a restart, once until it changes, and answers
// who asked.
func (r *reloader) report(result configfile.Result, changes changes, asked bool) {
	waiting := restartChanges(r.running, result.Config)
	if len(waiting) > 0 && (asked || !reflect.DeepEqual(waiting, r.pending)) {
		r.log.Warn("configuration changed where only a restart applies it; running on as before", "fields", waiting)
	}
	if asked && changes.none() && len(waiting) == 0 {
		r.log.Info("configuration reloaded: nothing changed")
	}
	r.pending = waiting
	if !changes.none() {
		for _, w := range result.Warnings {
			r.log.Warn("configuration", "warning", w.String())
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

// problemsOf lists the lines of an error: each is a problem of its own.
func problemsOf(err error) []string {
	if all, ok := errors.AsType[*configfile.Error](err); ok {
		lines := make([]string, len(all.Problems))
		for i, p := range all.Problems {
			lines[i] = p.String()
		}
		return lines
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, err := range joined.Unwrap() {
			lines = append(lines, problemsOf(err)...)
		}
		return lines
	}
	return []string{err.Error()}
}
