package dispatch

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// matcher says which events a route wants: a filter or a pattern.
type matcher interface {
	Match(ctx context.Context, e *bridge.Event) (bool, error)
}

// newFilter compiles a route's filter or pattern; nil where it has neither.
func newFilter(cfg bridge.Route) (matcher, error) {
	switch {
	case cfg.Filter != "":
		f, err := filter.Compile(cfg.Filter)
		if err != nil {
			return nil, fmt.Errorf("route %s: filter: %w", cfg.Name, err)
		}
		return f, nil
	case cfg.Pattern != nil:
		p, err := filter.CompilePattern(cfg.Pattern)
		if err != nil {
			return nil, fmt.Errorf("route %s: pattern: %w", cfg.Name, err)
		}
		return p, nil
	}
	return nil, nil
}

// newTransform compiles a route's transform; nil where it has none.
func newTransform(cfg bridge.Route) (*filter.Transform, error) {
	if cfg.Transform.Body == "" && len(cfg.Transform.Headers) == 0 {
		return nil, nil
	}
	t, err := filter.CompileTransform(cfg.Transform)
	if err != nil {
		return nil, fmt.Errorf("route %s: transform: %w", cfg.Name, err)
	}
	return t, nil
}

// transformed makes of an event what its function gets. The error is the
// reason of a dead letter.
func (r *route) transformed(ctx context.Context, e *bridge.Event) (*bridge.Event, error) {
	if r.transform == nil {
		return e, nil
	}
	return r.transform.Apply(ctx, e)
}

// untransformable is the outcome of an event of which the transform can make
// nothing: never dropped, never called as it is.
func untransformable(err error) bridge.Outcome {
	return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{Class: bridge.FailureTransform, Error: err.Error()}}
}

// wanted asks the route's filter or pattern, once in the life of a delivery: a retry
// passed it before, and a filter that was changed since does not end what was
// begun. The exception is a redriven dead letter of class filter_error, about
// which the filter never said a word. The error is the reason of such a dead
// letter.
//
// Only the end of all settling ends it early: an event that is settled unjudged
// would pass as a retry.
func (r *route) wanted(it *item, event *bridge.Event) (bool, error) {
	if r.filter == nil || it.retried && it.d.Last.Class != bridge.FailureFilter {
		return true, nil
	}
	match, err := r.filter.Match(r.d.settling, event)
	if err == nil && !match {
		it.filtered = true
		r.log.LogAttrs(r.d.settling, slog.LevelDebug, msgFiltered, slog.String(keyEvent, it.d.Origin.TransactionID))
	}
	return match, err
}

// unfilterable is the outcome of an event about which the filter cannot say
// yes or no: never dropped, never called.
func unfilterable(err error) bridge.Outcome {
	return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{Class: bridge.FailureFilter, Error: err.Error()}}
}

// skip says that nothing is left of an item but its ack.
func (p *part) skip(it *item) {
	p.mu.Lock()
	it.state = ackOnly
	p.waiting--
	p.mu.Unlock()
	p.step()
}
