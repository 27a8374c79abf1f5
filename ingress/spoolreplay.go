package ingress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// replay pushes what is spooled of one queue, partition by partition in order
// and with the ids it was accepted under: what Queen has already is a
// duplicate.
type replay struct {
	spool *Spool
	queue string
	queen Pusher
	pause *backoff.ExponentialBackOff
	taken int
	// onTaken and onRefused may be nil.
	onTaken   func(events int)
	onRefused func(id string, err error)
	onFailed  func(err error)
}

const (
	replayItems = 100
	replayBytes = 4 << 20
)

func newReplay(s *Spool, queue string, p Pusher) *replay {
	return &replay{
		spool: s, queue: queue, queen: p,
		pause: backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond),
			backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0)),
	}
}

// run ends when nothing waits any more, or when ctx does.
func (r *replay) run(ctx context.Context) error {
	for r.spool.waits(r.queue) {
		if err := r.try(ctx); err != nil {
			return err
		}
	}
	return nil
}

// beingWritten is the pause where all that waits is still being written.
const beingWritten = 5 * time.Millisecond

// try makes one round and pauses after one that left something. Its error is
// the end of ctx.
func (r *replay) try(ctx context.Context) error {
	before := r.taken
	err := r.round(ctx)
	if r.taken > before {
		r.pause.Reset()
	}
	wait := time.Duration(0)
	switch {
	case err != nil:
		wait = max(r.pause.NextBackOff(), queen.RetryAfter(err))
		if r.onFailed != nil && ctx.Err() == nil {
			r.onFailed(err)
		}
	case r.taken == before:
		wait = beingWritten
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), err)
	case <-timer.C:
		return nil
	}
}

// errKept says that Queen took the call but not every event of it.
var errKept = errors.New("queen could not store every event")

// round goes once through all that waits. Behind an event that Queen could
// not store its partition is left for the next round.
func (r *replay) round(ctx context.Context) error {
	held := make(map[string]bool)
	for after := int64(0); ; {
		events, err := r.spool.store.next(r.queue, after, replayItems, replayBytes)
		if err != nil || len(events) == 0 {
			if err == nil && len(held) > 0 {
				err = errKept
			}
			return err
		}
		after = events[len(events)-1].seq
		rest := events[:0]
		for _, e := range events {
			if !held[e.item.Partition] {
				rest = append(rest, e)
			}
		}
		if err := r.push(ctx, rest, held); err != nil {
			return err
		}
	}
}

// push sends events in one call; where Queen finds that malformed it sends the
// halves, down to the event at fault.
func (r *replay) push(ctx context.Context, events []spooledEvent, held map[string]bool) error {
	if len(events) == 0 {
		return nil
	}
	items := make([]queen.Item, len(events))
	for i := range events {
		items[i] = events[i].item
	}
	verdicts, err := r.queen.Push(ctx, items)
	switch {
	case err == nil && len(verdicts) == len(events):
		return r.settle(events, verdicts, held)
	case err == nil:
		return fmt.Errorf("%d verdicts for %d events", len(verdicts), len(events))
	case !refusedForGood(err):
		return err
	case len(events) == 1:
		return r.refuse(&events[0], err)
	}
	half := len(events) / 2
	if err := r.push(ctx, events[:half], held); err != nil {
		return err
	}
	back := make([]spooledEvent, 0, len(events)-half)
	for _, e := range events[half:] {
		if !held[e.item.Partition] {
			back = append(back, e)
		}
	}
	return r.push(ctx, back, held)
}

// refusedForGood says that Queen refuses the call itself, so that a resend
// would be refused for ever.
func refusedForGood(err error) bool {
	var status *queen.StatusError
	return errors.As(err, &status) &&
		(status.Status == http.StatusBadRequest || status.Status == http.StatusRequestEntityTooLarge)
}

func (r *replay) settle(events []spooledEvent, verdicts []queen.PushVerdict, held map[string]bool) error {
	var stored []int64
	bytes := int64(0)
	for i, v := range verdicts {
		if v.Status != queen.PushQueued && v.Status != queen.PushDuplicate {
			held[events[i].item.Partition] = true
			continue
		}
		stored = append(stored, events[i].seq)
		bytes += spoolBytes(&events[i].item)
	}
	if err := r.spool.store.settle(stored, nil); err != nil {
		return err
	}
	r.spool.book(r.queue, -int64(len(stored)), -bytes, 0)
	r.taken += len(stored)
	if r.onTaken != nil {
		r.onTaken(len(stored))
	}
	return nil
}

// refuse sets an event apart: it was answered 2xx, so it is kept.
func (r *replay) refuse(e *spooledEvent, cause error) error {
	if err := r.spool.store.settle(nil, map[int64]string{e.seq: cause.Error()}); err != nil {
		return err
	}
	r.spool.book(r.queue, -1, 0, 1)
	if r.onRefused != nil {
		r.onRefused(e.item.TransactionID, cause)
	}
	return nil
}
