package queen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// verdict is what one push did to one entry.
type verdict struct {
	status PushStatus
	// again says that the entry is to be pushed again: nothing is known, or
	// Queen could not store it this time.
	again bool
}

var errPanic = errors.New("panic while pushing")

// run pushes batches until none may start.
func (b *Buffer) run() {
	for x := b.begin(); x != nil; x = b.begin() {
		b.settle(x, b.push(x))
	}
}

// push sends a batch and fills in its verdicts.
func (b *Buffer) push(x *batch) error {
	ctx := b.life
	if !x.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, x.deadline)
		defer cancel()
	}
	return b.send(ctx, x.items, x.entries, x.verdicts)
}

// send pushes entries in one call and fills in one verdict each. Where Queen
// finds the request malformed, one item is at fault but all are refused
// (queen-contract.md §3): the halves are then pushed one after the other, down
// to that item. The error is that of a call that failed as a whole.
func (b *Buffer) send(ctx context.Context, items []Item, entries []*entry, verdicts []verdict) error {
	got, err := b.call(ctx, items)
	switch {
	case err == nil:
		for i, v := range got {
			verdicts[i] = judge(v.Status)
		}
		return nil
	case !malformed(err):
		for i := range verdicts {
			verdicts[i] = verdict{again: true}
		}
		return err
	case len(entries) == 1:
		verdicts[0] = verdict{status: statusRefused}
		b.observe.Refused(&entries[0].item, err)
		b.logger.LogAttrs(ctx, slog.LevelError, msgRefused, slog.String("queue", b.queue),
			slog.String("event", entries[0].item.TransactionID), slog.Any("error", err))
		return nil
	}
	return b.halves(ctx, items, entries, verdicts)
}

// halves pushes the front half, then the back half without the entries of
// lanes that the front half left something of: order comes first.
func (b *Buffer) halves(ctx context.Context, items []Item, entries []*entry, verdicts []verdict) error {
	half := len(entries) / 2
	errFront := b.send(ctx, items[:half], entries[:half], verdicts[:half])
	held := make(map[*lane]bool)
	for i, v := range verdicts[:half] {
		if v.again {
			held[entries[i].lane] = true
		}
	}
	var rest []*entry
	var restItems []Item
	var at []int
	for i := half; i < len(entries); i++ {
		if held[entries[i].lane] {
			verdicts[i] = verdict{again: true}
			continue
		}
		rest, restItems, at = append(rest, entries[i]), append(restItems, items[i]), append(at, i)
	}
	if len(rest) == 0 {
		return errFront
	}
	back := make([]verdict, len(rest))
	errBack := b.send(ctx, restItems, rest, back)
	for i, v := range back {
		verdicts[at[i]] = v
	}
	return errors.Join(errFront, errBack)
}

// call makes one push and measures it.
func (b *Buffer) call(ctx context.Context, items []Item) (got []PushVerdict, err error) {
	defer func() {
		if cause := recover(); cause != nil { // a failed push, never a dead process
			b.logger.LogAttrs(ctx, slog.LevelError, msgPanic, slog.Any("error", cause), slog.String("stack", string(debug.Stack())))
			err = errPanic
		}
	}()
	start := time.Now()
	got, err = b.pusher.Push(ctx, items)
	b.observe.Pushed(len(items), time.Since(start))
	if err == nil && len(got) != len(items) {
		return nil, fmt.Errorf("push to queue %q: %d verdicts for %d items", b.queue, len(got), len(items))
	}
	return got, err
}

// judge reads one verdict of Queen. Words it may learn later count as error.
func judge(s PushStatus) verdict {
	switch s {
	case PushQueued, PushDuplicate, PushBuffered:
		return verdict{status: s}
	}
	return verdict{again: true}
}

// malformed says that the request itself is refused, by Queen or by Client, so
// a resend of it would be refused for ever.
func malformed(err error) bool {
	var item *itemError
	var status *StatusError
	return errors.As(err, &item) || errors.As(err, &status) &&
		(status.Status == http.StatusBadRequest || status.Status == http.StatusRequestEntityTooLarge)
}
