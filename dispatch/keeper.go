package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

const (
	// keeperPace is the least time between two calls of the keeper: four KV
	// writes a second, whatever the number of targets, leave the broker's
	// hundred to the settles.
	keeperPace = 250 * time.Millisecond
	// keeperTimeout bounds one call: the client tries again for as long as it
	// may where Queen is busy.
	keeperTimeout = time.Second
	// keeperPause bounds the pause after failures.
	keeperPause  = 30 * time.Second
	maxKeeperOps = 256
)

// keeper fetches the tokens of shared budgets from Queen, those of all targets
// in one call.
type keeper struct {
	d *Dispatcher
}

// fetch is one budget that tokens are fetched for.
type fetch struct {
	share *share
	b     *sharedBudget
	n     int64
}

// run fetches tokens whenever a target needs some, until ctx ends.
func (k keeper) run(ctx context.Context) {
	pause := keeperPace
	for {
		select {
		case <-k.d.limiter.hungry:
		case <-ctx.Done():
			return
		}
		for {
			list, wait := k.due(time.Now())
			if len(list) > 0 {
				pause = k.fetch(ctx, list, pause)
				wait = pause
			}
			if wait == 0 {
				break
			}
			if sleep(ctx, wait) != nil {
				return
			}
		}
	}
}

// due lists the budgets that need tokens now, and when the next one does; 0:
// none.
func (k keeper) due(now time.Time) (list []fetch, wait time.Duration) {
	shares := k.d.shares()
	l := k.d.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range shares {
		b, shared := s.rate.(*sharedBudget)
		switch {
		case !shared || !b.hungry || len(list) == maxKeeperOps:
		case b.due.After(now):
			if next := b.due.Sub(now); wait == 0 || next < wait {
				wait = next
			}
		default:
			list = append(list, fetch{s, b, b.block})
		}
	}
	return list, wait
}

// fetch asks Queen once and returns the pause before it may be asked again. A
// lost answer costs the tokens it held: nobody takes them a second time.
func (k keeper) fetch(ctx context.Context, list []fetch, pause time.Duration) time.Duration {
	ops := make([]queen.KVOp, len(list))
	for i, f := range list {
		ops[i] = queen.KVOp{Op: "incr", Namespace: bridge.KVNamespace, Key: bridge.RateKey(f.b.target), Delta: f.n, Max: new(f.b.most), TTL: f.b.window}
	}
	asked := time.Now()
	call, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	results, err := k.d.queen.KV(call, ops)
	if ctx.Err() != nil {
		return pause
	}
	totals, err := totalsOf(results, err)
	if err != nil {
		pause = min(max(2*pause, queen.RetryAfter(err)), keeperPause)
		k.failed(list, err, pause)
		return pause
	}
	k.settle(list, results, totals, asked)
	return keeperPace
}

// totalsOf reads what was taken of each window.
func totalsOf(results []queen.KVResult, err error) ([]int64, error) {
	if err != nil {
		return nil, fmt.Errorf("fetch tokens: %w", err)
	}
	totals := make([]int64, len(results))
	for i, r := range results {
		var n float64
		if json.Unmarshal(r.Value, &n) != nil || !r.Applied && r.Reason != "limit" {
			return nil, fmt.Errorf("fetch tokens: key %q does not count (%s)", r.Key, r.Reason)
		}
		totals[i] = int64(n)
	}
	return totals, nil
}

// settle hands out what was fetched.
func (k keeper) settle(list []fetch, results []queen.KVResult, totals []int64, asked time.Time) {
	l, now := k.d.limiter, time.Now()
	var back []string
	l.mu.Lock()
	for i, f := range list {
		if f.b.own != nil {
			back = append(back, f.share.name)
		}
		if results[i].Applied {
			f.b.granted(f.n, totals[i], asked)
		} else {
			f.b.denied(totals[i], now, rand.Float64)
		}
	}
	for _, f := range list {
		l.grant(f.share)
		l.signal(f.share)
	}
	l.mu.Unlock()
	for _, target := range slices.Compact(back) {
		k.d.log.Info("rate limit shared again", slog.String(keyTarget, target))
	}
}

// failed lets the budgets go on without Queen.
func (k keeper) failed(list []fetch, err error, pause time.Duration) {
	l, now := k.d.limiter, time.Now()
	var alone []fetch
	l.mu.Lock()
	for _, f := range list {
		if f.b.failed(now, pause) {
			alone = append(alone, f)
		}
	}
	for _, f := range list {
		l.grant(f.share)
		l.signal(f.share)
	}
	l.mu.Unlock()
	for _, f := range alone {
		k.d.log.Warn("rate limit not shared: queen hands out no tokens, this process goes on with the part it had",
			slog.String(keyTarget, f.share.name), slog.Float64("per_second", f.b.perSecond*f.b.part), slog.Any(keyError, err))
	}
}
