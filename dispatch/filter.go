package dispatch

import (
	"fmt"
	"log/slog"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// newFilter compiles a route's filter; nil where it has none.
func newFilter(cfg bridge.Route) (*filter.Filter, error) {
	if cfg.Filter == "" {
		return nil, nil
	}
	f, err := filter.Compile(cfg.Filter)
	if err != nil {
		return nil, fmt.Errorf("route %s: filter: %w", cfg.Name, err)
	}
	return f, nil
}

// wanted asks the route's filter, once in the life of a delivery: a retry
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
