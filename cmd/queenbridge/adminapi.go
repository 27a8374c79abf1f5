package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/bridge/rules"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/signing"
)

// openRules makes the catalog, with what is stored where Queen tells soon.
func (b *bridgeProcess) openRules(ctx context.Context) error {
	keys, err := rules.NewKeyring(b.config.EncryptionKeys...)
	if err != nil {
		return err
	}
	b.rules = rules.New(rules.Config{
		File: fileOf(b.config, b.cfg), Queen: b.link.client, Keys: keys,
		References: func() func(*bridge.Node) {
			return configfile.NewResolver(filepath.Dir(b.config.Path), awsReferences(ctx, b.aws))
		},
		Left: func(ctx context.Context, route string) (string, error) {
			return dispatch.Left(ctx, b.link.client, route)
		},
		Settled: func(ctx context.Context, route bridge.Route) (bool, error) {
			return dispatch.Settled(ctx, b.link.client, route)
		},
		Logger: b.log, Metrics: b.reg,
	})
	b.rules.Sync(ctx)
	b.follower = newFollower(b.log, b.rules.Catalog().Config)
	b.referred = newReferredFiles(filepath.Dir(b.config.Path))
	return nil
}

// adminAPI makes what is served below /v1.
func (b *bridgeProcess) adminAPI(wants func(string) bool) (*admin.Server, error) {
	begun := time.Now()
	letters, err := b.newLetters()
	if err != nil {
		return nil, err
	}
	config := admin.Config{
		Rules: b.rules, Settings: b.cfg.Admin, Schemes: schemeList(), Pauses: pauses{dispatch.NewPauses(b.link.client), &b.dispatch},
		Letters: letters,
		Status: func(ctx context.Context) adminapi.Status {
			status := adminapi.Status{Version: versionText(), Started: begun.UTC()}
			status.Problems, status.Ready = judge(ctx, b.checks(wants))
			for _, part := range parts {
				if wants(part) || part == "admin" {
					status.Parts = append(status.Parts, part)
				}
			}
			states(b.dispatch.Load(), &status)
			return status
		},
		Logger: b.log, Metrics: b.reg,
	}
	if wants("dispatch") {
		config.Deliveries, config.Tester = deliveries{&b.dispatch}, tester{&b.dispatch}
	}
	s, err := admin.New(config)
	if errors.Is(err, admin.ErrNoToken) {
		return nil, &usageError{err: err, hint: "set QUEENBRIDGE_ADMIN_TOKEN, or --admin-addr 127.0.0.1:8081"}
	}
	return s, err
}

// schemeList are the presets in the words of the API.
func schemeList() []adminapi.Scheme {
	var all []adminapi.Scheme
	for _, preset := range signing.Presets() {
		all = append(all, adminapi.Scheme(viewOf(preset)))
	}
	return all
}

// pauses are the dispatcher's, in the words of the API. What this process
// dispatches is paused at once, not at its next look at Queen.
type pauses struct {
	stored  dispatch.Pauses
	running *atomic.Pointer[dispatch.Dispatcher] // holds nil in a process that does not dispatch
}

// pauser pauses and resumes; both a dispatcher and what is stored do.
type pauser interface {
	PauseRoute(ctx context.Context, name string, info dispatch.PauseInfo) error
	PauseTarget(ctx context.Context, name string, info dispatch.PauseInfo) error
	ResumeRoute(ctx context.Context, name string) error
	ResumeTarget(ctx context.Context, name string) error
}

// with lets the dispatcher do something, or else, where it does not know the
// resource, what is stored.
func (p pauses) with(do func(pauser) error) error {
	if d := p.running.Load(); d != nil {
		err := do(d)
		switch {
		case errors.Is(err, dispatch.ErrPausedByConfiguration): // its field is another matter
			return nil
		case !errors.Is(err, dispatch.ErrUnknown):
			return err
		}
	}
	return do(p.stored)
}

var _ admin.Pauses = pauses{}

func (p pauses) Pause(ctx context.Context, r bridge.Resource, why adminapi.Pause) error {
	info := dispatch.PauseInfo{Reason: why.Reason, By: why.By}
	switch r.Kind {
	case bridge.KindRoute:
		return p.with(func(to pauser) error { return to.PauseRoute(ctx, r.Name, info) })
	case bridge.KindTarget:
		return p.with(func(to pauser) error { return to.PauseTarget(ctx, r.Name, info) })
	}
	return fmt.Errorf("pause %s: only routes and targets are", r)
}

func (p pauses) Resume(ctx context.Context, r bridge.Resource) error {
	switch r.Kind {
	case bridge.KindRoute:
		return p.with(func(to pauser) error { return to.ResumeRoute(ctx, r.Name) })
	case bridge.KindTarget:
		return p.with(func(to pauser) error { return to.ResumeTarget(ctx, r.Name) })
	}
	return fmt.Errorf("resume %s: only routes and targets are paused", r)
}

func (p pauses) Paused(ctx context.Context) (map[bridge.Resource]adminapi.Pause, error) {
	stored, err := p.stored.List(ctx)
	if err != nil {
		return nil, err
	}
	all := map[bridge.Resource]adminapi.Pause{}
	for name, info := range stored.Routes {
		all[bridge.Resource{Kind: bridge.KindRoute, Name: name}] = adminapi.Pause(info)
	}
	for name, info := range stored.Targets {
		all[bridge.Resource{Kind: bridge.KindTarget, Name: name}] = adminapi.Pause(info)
	}
	return all, nil
}
