package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// errLeaseLost ends what a lost lease covered: it is called no further, and
// what is known of it is dropped.
var errLeaseLost = errors.New("the lease is lost")

// errStale is why a call does not begin: the lease was not renewed when it was
// due, so it may end before the call does (dispatch.md §5).
var errStale = errors.New("the lease is not renewed")

// errDraining ends the renewals of a source lease while its route is deleted:
// nothing may settle it once the route is gone.
var errDraining = fmt.Errorf("the route is being deleted: %w", errLeaseLost)

// Lease lengths asked from Queen (dispatch.md §5). Each is renewed at a third.
const (
	leaseNone      = 60 * time.Second
	leasePartition = 15 * time.Second
)

func leaseLength(o bridge.Ordering) time.Duration {
	if o == bridge.OrderingPartition {
		return leasePartition
	}
	return leaseNone
}

// lease keeps what one pop leased: it is renewed every third of its length
// until all its parts are done. One lease may cover several partitions, each
// held and lost on its own; Queen tells only whether any is still held, so the
// settle decides for each.
type lease struct {
	queen.Lease
	length time.Duration
	extend func(context.Context, queen.Lease, time.Duration) (int, error)
	spawn  func(func())    // runs a goroutine the dispatcher waits for
	base   context.Context // of renewals: ends with the dispatcher's settles
	log    *slog.Logger
	final  *atomic.Bool // set: renewed no more; nil: never

	// ctx is for waiting: it ends when the lease is lost (cause errLeaseLost)
	// or the dispatcher stops (cause errStopping). held is for calls in order:
	// it ends when the lease is lost or the calls are cancelled.
	ctx, held         context.Context
	endWaits, endHeld context.CancelCauseFunc

	renewing chan struct{} // holds a token while no renewal is under way

	mu      sync.Mutex
	expires time.Time // monotonic: counted from before the pop or renewal was sent
	lost    bool
	parts   int // not done yet
	timer   *time.Timer
	renewed chan struct{} // closed when it is; nil while nobody waits
}

// newLease is a lease of a pop, not kept yet; taking ends when nothing more is
// to be called. A lease of the source is renewed no longer once the route is
// being deleted.
func (r *route) newLease(taking context.Context, l queen.Lease, length time.Duration, source bool) *lease {
	k := &lease{Lease: l, length: length, extend: r.d.queen.Extend, spawn: func(f func()) { r.spawn(f) }, base: r.d.settling, log: r.log, renewing: make(chan struct{}, 1)}
	k.renewing <- struct{}{}
	if source {
		k.final = &r.draining
	}
	k.ctx, k.endWaits = context.WithCancelCause(taking)
	k.held, k.endHeld = context.WithCancelCause(r.d.calling)
	return k
}

// start begins to keep a lease that was asked for at asked and covers parts.
func (l *lease) start(asked time.Time, parts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expires, l.parts = asked.Add(l.length), parts
	l.timer = time.AfterFunc(time.Until(asked.Add(l.period())), l.tick)
}

// whenEnded lets f run once the lease is lost or what it covers is to be given
// back: neither must wait for a window or a slot.
func (l *lease) whenEnded(f func()) {
	context.AfterFunc(l.ctx, func() {
		if !errors.Is(context.Cause(l.ctx), context.Canceled) { // all its parts are done
			l.spawn(f)
		}
	})
}

// keep renews, unless a renewal is under way already.
func (l *lease) keep() error {
	select {
	case <-l.renewing:
		defer func() { l.renewing <- struct{}{} }()
		return l.renew(l.base)
	default:
		return nil
	}
}

func (l *lease) period() time.Duration { return l.length / 3 }

// tick renews in a goroutine of the dispatcher.
func (l *lease) tick() {
	l.spawn(func() {
		err := l.keep()
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.lost || l.parts <= 0 || l.base.Err() != nil:
		case err == nil:
			l.timer.Reset(l.period())
		default:
			l.timer.Reset(l.period() / 4)
		}
	})
}

// renew asks for the whole length again. errLeaseLost is Queen's definite no;
// any other error leaves the lease as it was, as far as anybody knows.
func (l *lease) renew(ctx context.Context) error { return l.lengthen(ctx, l.length) }

// lengthen makes the lease last at least d from now.
func (l *lease) lengthen(ctx context.Context, d time.Duration) error {
	if l.final != nil && l.final.Load() {
		return errDraining
	}
	asked := time.Now()
	renewed, err := l.extend(ctx, l.Lease, d)
	if err != nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "lease not renewed, trying again", slog.Any(keyError, err))
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if renewed == 0 {
		l.lose()
		return errLeaseLost
	}
	if until := asked.Add(d); until.After(l.expires) {
		l.expires = until
	}
	if l.renewed != nil {
		close(l.renewed)
		l.renewed = nil
	}
	return nil
}

// ageing says that a renewal is overdue: one is due when two periods are left,
// and has a quarter of one to be answered.
func (l *lease) ageing() bool { return l.left() <= 2*l.period()-l.period()/4 }

// fresh waits until a call may begin. The error says that none may: the cause of
// the lease's end.
func (l *lease) fresh() error {
	for l.ageing() {
		l.mu.Lock()
		if l.renewed == nil {
			l.renewed = make(chan struct{})
		}
		renewed := l.renewed
		l.mu.Unlock()
		select {
		case <-renewed:
		case <-time.After(max(time.Millisecond, l.left())): // nobody knows of it any more
			if l.left() <= 0 {
				return errLeaseLost
			}
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	return nil
}

// lose marks the lease lost; mu is held.
func (l *lease) lose() {
	if l.parts > 0 && !l.lost {
		l.lost = true
		l.endWaits(errLeaseLost)
		l.endHeld(errLeaseLost)
	}
}

// isLost says that Queen told so.
func (l *lease) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// left is how long the lease surely lasts; 0 or less: it may have run out.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return 0
	}
	return time.Until(l.expires)
}

// ensure makes sure that more than two renewal periods are left, renewing if
// need be: a call begun later could run beside the successor's. errLeaseLost
// or the renewal's error otherwise.
func (l *lease) ensure(ctx context.Context) error {
	if l.left() > 2*l.period() {
		return nil
	}
	select {
	case <-l.renewing:
		defer func() { l.renewing <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case l.isLost():
		return errLeaseLost
	case l.left() > 2*l.period(): // renewed while we waited
		return nil
	}
	return l.renew(ctx)
}

// done says that one part needs the lease no longer.
func (l *lease) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts--
	if l.parts == 0 {
		l.timer.Stop()
		l.endWaits(context.Canceled)
		l.endHeld(context.Canceled)
	}
}
