package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// orphanEvery is how often what no route owns is looked for.
const orphanEvery = time.Hour

// maxOrphanTimers bounds what is counted of one route.
const maxOrphanTimers = 10_000

// Orphan is what a route that is no more left in Queen. A route of that name
// takes it up again.
type Orphan struct {
	Route string
	// Timers are retries scheduled (10 000 means that many or more), Retries
	// those due, Dead dead letters that are not filed.
	Timers, Retries, Dead int
}

// Orphans lists what no route owns, by name; routes are the names of those
// there are.
func Orphans(ctx context.Context, q Inspector, routes []string) ([]Orphan, error) {
	queues, err := q.Queues(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what no route owns: %w", err)
	}
	var orphans []Orphan
	for _, name := range unowned(queues, routes) {
		o, err := inspect(ctx, q, name, maxOrphanTimers)
		if err != nil {
			return nil, fmt.Errorf("look for what no route owns: %s: %w", name, err)
		}
		if o.Timers+o.Retries+o.Dead > 0 {
			orphans = append(orphans, o)
		}
	}
	return orphans, nil
}

// unowned are the names of the routes whose retry or dead queue there is,
// without those there are.
func unowned(queues []queen.QueueInfo, routes []string) []string {
	var names []string
	for _, q := range queues {
		if name, ok := bridge.RouteOfQueue(q.Name); ok && !slices.Contains(routes, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// watchOrphans looks for what no route owns, at the start and hourly.
func (d *Dispatcher) watchOrphans(ctx context.Context) {
	for pause := (backoff{}); ; {
		wait := jitter(2 * orphanEvery)
		orphans, err := Orphans(ctx, d.queen, d.routeNames())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.LogAttrs(ctx, pause.level(), "what no route owns is not known, looking again", slog.Any(keyError, err))
			wait = pause.next(queen.RetryAfter(err))
		default:
			pause = backoff{}
			d.sayOrphans(orphans)
		}
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

func (d *Dispatcher) routeNames() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := slices.Clone(d.order)
	for name := range d.slots { // also those that just go
		names = append(names, name)
	}
	return names
}

func (d *Dispatcher) sayOrphans(orphans []Orphan) {
	var sum Orphan
	var names []string
	for _, o := range orphans {
		sum.Timers, sum.Retries, sum.Dead = sum.Timers+o.Timers, sum.Retries+o.Retries, sum.Dead+o.Dead
		names = append(names, o.Route)
	}
	d.m.orphans.WithLabelValues("timer").Set(float64(sum.Timers))
	d.m.orphans.WithLabelValues("retry").Set(float64(sum.Retries))
	d.m.orphans.WithLabelValues("dead").Set(float64(sum.Dead))
	if len(names) > 0 {
		const most = 20
		list := strings.Join(names[:min(most, len(names))], " ")
		d.log.Warn("deliveries that no route owns wait in queen: a route of that name would take them up",
			slog.String("routes", list), slog.Int(keyCount, sum.Timers+sum.Retries+sum.Dead),
			slog.Int("timers", sum.Timers), slog.Int("retries", sum.Retries), slog.Int("dead", sum.Dead))
	}
}
