package ingress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// verdict is what one push did to one entry.
type verdict struct {
	status queen.PushStatus
	// again says that the entry is to be pushed again: nothing is known, or
	// Queen could not store it this time.
	again bool
}

var errPanic = errors.New("panic while pushing")

// statusRefused ends an entry that Queen will never take.
const statusRefused queen.PushStatus = "refused"

// run pushes batches until none may start.
func (q *batchQueue) run() {
	for b := q.begin(); b != nil; b = q.begin() {
		ctx, cancel := context.WithDeadline(q.life, b.deadline)
		err := q.send(ctx, b.items, b.entries, b.verdicts)
		cancel()
		q.settle(b, err)
	}
}

// send pushes entries in one call and fills in one verdict each. Where Queen
// finds the request malformed, one item is at fault but all are refused
// (queen-contract §3): the halves are then pushed one after the other, down to
// that item. The error is that of a call that failed as a whole.
func (q *batchQueue) send(ctx context.Context, items []queen.Item, entries []*entry, verdicts []verdict) error {
	got, err := q.call(ctx, items)
	switch {
	case err == nil:
		for i, v := range got {
			verdicts[i] = q.judge(v.Status)
		}
		return nil
	case !malformed(err):
		for i := range verdicts {
			verdicts[i] = verdict{again: true}
		}
		return err
	case len(entries) == 1:
		verdicts[0] = verdict{status: statusRefused}
		q.observe.refused.Inc()
		q.logger.LogAttrs(ctx, slog.LevelError, msgRefused, slog.String(keyQueue, q.name),
			slog.String(keyEvent, entries[0].item.TransactionID), slog.Any(keyError, err))
		return nil
	}
	return q.halves(ctx, items, entries, verdicts)
}

// halves pushes the front half, then the back half without the entries of
// lanes that the front half left something of: order comes first.
func (q *batchQueue) halves(ctx context.Context, items []queen.Item, entries []*entry, verdicts []verdict) error {
	half := len(entries) / 2
	errFront := q.send(ctx, items[:half], entries[:half], verdicts[:half])
	held := make(map[*lane]bool)
	for i, v := range verdicts[:half] {
		if v.again {
			held[entries[i].lane] = true
		}
	}
	var rest []*entry
	var restItems []queen.Item
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
	errBack := q.send(ctx, restItems, rest, back)
	for i, v := range back {
		verdicts[at[i]] = v
	}
	return errors.Join(errFront, errBack)
}

// call makes one push and measures it.
func (q *batchQueue) call(ctx context.Context, items []queen.Item) (got []queen.PushVerdict, err error) {
	defer func() {
		if cause := recover(); cause != nil { // a failed push, never a dead process
			q.logger.LogAttrs(ctx, slog.LevelError, msgPanic, slog.Any(keyError, cause), slog.String(keyStack, string(debug.Stack())))
			err = errPanic
		}
	}()
	start := time.Now()
	got, err = q.pusher.Push(ctx, items)
	q.observe.push.Observe(time.Since(start).Seconds())
	q.observe.items.Observe(float64(len(items)))
	if err == nil && len(got) != len(items) {
		return nil, fmt.Errorf("push to queue %q: %d verdicts for %d items", q.name, len(got), len(items))
	}
	return got, err
}

// judge reads one verdict of Queen. Words it may learn later count as error.
func (q *batchQueue) judge(s queen.PushStatus) verdict {
	switch s {
	case queen.PushQueued, queen.PushDuplicate, queen.PushBuffered:
		return verdict{status: s}
	}
	return verdict{again: true}
}

// malformed says that Queen refuses the request itself, so a resend of it
// would be refused for ever.
func malformed(err error) bool {
	var status *queen.StatusError
	return errors.As(err, &status) &&
		(status.Status == http.StatusBadRequest || status.Status == http.StatusRequestEntityTooLarge)
}

// retryAfter is what Queen asked for, 0 if nothing.
func retryAfter(err error) time.Duration {
	var status *queen.StatusError
	if errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}
