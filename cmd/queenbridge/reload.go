package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// reloader keeps a running bridge on what its configuration says: what the
// catalog has follows at once, everything else is reported as waiting for a
// restart. A configuration that cannot be used changes nothing.
type reloader struct {
	load   func() (configfile.Result, error)
	follow func(rules.File)
	token  func(bridge.Secret) // nil: Queen's token is read at the start only
	access func(bridge.AdminConfig) error
	// stored are the files that stored rules refer to; named tells that there are
	// others.
	stored  func() []string
	named   <-chan struct{}
	running bridge.Config
	log     *slog.Logger
	asked   <-chan os.Signal

	pending []string    // what waits for a restart
	last    *rules.File // the last one that could be used; nil: none yet
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
	asked := false
	for {
		r.settle(watcher, asked)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.asked:
			asked = true
		case <-changed:
			asked = false
		case <-r.named:
			asked = false
		}
	}
}

// settle reloads, again where the configuration names files that it did not
// name before: they are watched from then on.
func (r *reloader) settle(watcher *configfile.Watcher, asked bool) {
	const most = 3
	for range most {
		files := r.reload(asked)
		if len(files) > 0 {
			files = append(files, r.stored()...)
		}
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
}

// reload reads the configuration and hands it on. It returns the files it was
// made of.
func (r *reloader) reload(asked bool) []string {
	result, err := r.load()
	if err != nil {
		r.log.Error("configuration not reloaded: the running one stays", "problems", problemsOf(err))
		if r.last != nil {
			r.follow(*r.last) // what stored rules refer to may have changed
		}
		return result.Files()
	}
	r.retoken(result.Config.Queen.Token)
	r.reaccess(result.Config.Admin.Tokens)
	r.report(result, changesOf(r.running, result.Config), asked)
	r.running.Sources, r.running.Targets = result.Config.Sources, result.Config.Targets
	r.running.Routes, r.running.Queues = result.Config.Routes, result.Config.Queues
	file := fileOf(result, r.running)
	r.last = &file
	r.follow(file)
	return result.Files()
}

// fileOf is what a configuration file says, with the settings that the process
// runs with.
func fileOf(result configfile.Result, running bridge.Config) rules.File {
	return rules.File{Config: running, Document: result.Document()}
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

// reaccess hands the admin API other tokens. Without any it would ask for none:
// that waits for a restart.
func (r *reloader) reaccess(tokens []bridge.AdminToken) {
	next := r.running.Admin
	next.Tokens = tokens
	if reflect.DeepEqual(tokens, r.running.Admin.Tokens) || r.access(next) != nil {
		return
	}
	r.running.Admin = next
	r.log.Info("admin tokens reloaded", "tokens", len(tokens))
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
		warn(r.log, result)
	}
}

// warn logs what a configuration is warned of.
func warn(log *slog.Logger, result configfile.Result) {
	for _, w := range result.Warnings {
		log.Warn("configuration", "warning", w.String())
	}
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
