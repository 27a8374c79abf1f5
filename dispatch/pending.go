package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Queen 1.3.0 does not count timers, and lists those of one queue only
// (measured), so the retries of a route are listed to count them.
const (
	// countEvery is how often a route's pending retries are counted.
	countEvery = time.Minute
	// countGap is the least time between the counts of two routes: with more
	// than 600 of them each is counted less often.
	countGap = 100 * time.Millisecond
	// MaxRetriesPending bounds what is counted of a route: ten calls of Queen.
	MaxRetriesPending = 10_000
)

// countPending counts the pending retries of all routes, evenly over a minute,
// until ctx ends. What Queen does not answer stays as it was counted last.
func (d *Dispatcher) countPending(ctx context.Context) {
	for ctx.Err() == nil {
		names := d.wantedNames()
		gap := max(countGap, countEvery/time.Duration(max(1, len(names))))
		for _, name := range names {
			d.countPendingOf(ctx, name)
			if sleep(ctx, jitter(gap*4/3)) != nil { // gap on average
				return
			}
		}
		if len(names) == 0 && sleep(ctx, gap) != nil {
			return
		}
	}
}

func (d *Dispatcher) countPendingOf(ctx context.Context, name string) {
	n, err := d.queen.CountTimers(ctx, bridge.RetryQueue(name), MaxRetriesPending)
	if err != nil {
		d.log.LogAttrs(ctx, slog.LevelDebug, "pending retries not counted", slog.String(keyRoute, name), slog.Any(keyError, err))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.slots[name]; s != nil && s.wanted != nil {
		s.pending = &n
		d.m.pending.WithLabelValues(name).Set(float64(n))
	}
}

// wantedNames are the routes there are.
func (d *Dispatcher) wantedNames() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.order...)
}
