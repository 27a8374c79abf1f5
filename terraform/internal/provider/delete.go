package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// drainingError says that a wait for a draining route ended before it was gone.
type drainingError struct{ routes []string }

func (e *drainingError) Error() string {
	if len(e.routes) == 1 {
		return fmt.Sprintf("the route %q is still draining", e.routes[0])
	}
	return "the routes " + strings.Join(e.routes, ", ") + " are still draining"
}

func isDraining(err error) bool {
	_, ok := errors.AsType[*drainingError](err)
	return ok
}

// create makes a resource. A route that was deleted and still drains is waited
// for.
func (m *managed) create(ctx context.Context, name string, doc json.RawMessage) (adminapi.Resource, error) {
	for {
		r, err := m.api.Put(ctx, m.kind, name, doc, adminapi.WriteOptions{MustNotExist: true})
		if !adminapi.IsCode(err, adminapi.CodeDraining) {
			return r, err
		}
		if err := m.awaitGone(ctx, name); err != nil {
			return r, err
		}
	}
}

// delete deletes a resource that is as it was read, and waits until it is gone.
// What only draining routes use is waited for, too.
func (m *managed) delete(ctx context.Context, name string, read reading) error {
	for {
		gone, err := m.api.Delete(ctx, m.kind, name, read.version)
		switch {
		case gone || adminapi.IsCode(err, adminapi.CodeNotFound):
			return nil
		case err == nil:
			return m.awaitGone(ctx, name)
		case adminapi.IsCode(err, adminapi.CodePrecondition):
			r, readErr := m.api.Read(ctx, m.kind, name)
			switch {
			case readErr == nil && r.Meta.State == adminapi.StateDraining:
				return m.awaitGone(ctx, name) // somebody else deleted it
			case readErr != nil || !read.renew(r):
				return err
			}
		case adminapi.IsCode(err, adminapi.CodeInUse):
			routes := m.drainingUsers(ctx, name)
			if len(routes) == 0 {
				return err
			}
			if pause(ctx, pollInterval) != nil {
				return &drainingError{routes}
			}
		default:
			return err
		}
	}
}

// drainingUsers are the routes that use a resource, if all that do are draining.
func (m *managed) drainingUsers(ctx context.Context, name string) []string {
	field := m.word()
	var draining []string
	for r, err := range m.api.List(ctx, bridge.KindRoute) {
		if err != nil {
			return nil
		}
		var route map[string]any
		if json.Unmarshal(r.Document, &route) != nil || route[field] != name {
			continue
		}
		if r.Meta.State != adminapi.StateDraining {
			return nil
		}
		draining = append(draining, r.Name())
	}
	return draining
}

// pollInterval is between two looks at a draining route: it drains for ten
// seconds at least.
const pollInterval = 2 * time.Second

// awaitGone waits until a route has drained.
func (m *managed) awaitGone(ctx context.Context, name string) error {
	for {
		_, err := m.api.Read(ctx, m.kind, name)
		switch {
		case adminapi.IsCode(err, adminapi.CodeNotFound):
			return nil
		case ctx.Err() != nil:
			return &drainingError{[]string{name}}
		case err != nil:
			return err
		}
		if pause(ctx, pollInterval) != nil {
			return &drainingError{[]string{name}}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return cmp.Or(ctx.Err(), context.Canceled)
	}
}
