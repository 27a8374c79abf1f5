package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// PendingRetry is a delivery that waits for its next attempt.
type PendingRetry struct {
	// Key names it until it is due.
	Key string
	Due time.Time
	Hop int
	// The rest is known where details were asked for, unless it has just
	// become due.
	Delivery    string // webhook-id
	Origin      bridge.Origin
	Event       EventSummary
	Attempt     int // calls made so far
	FirstFailed time.Time
	Last        bridge.Failure
}

// RetryQuery asks for a page of pending retries.
type RetryQuery struct {
	// After is the Next of the page before; "": the first.
	After string
	// Limit is the most of a page: 1 to 1000; 0 means 100.
	Limit int
	// Details costs a call of Queen for each.
	Details bool
}

// RetryPage holds pending retries in the order of their keys.
type RetryPage struct {
	Retries []PendingRetry
	// Next is the After of the page behind it; "": this was the last.
	Next string
}

// Retries lists the pending retries of a route. With ordering partition a
// failing event waits in front of its partition instead, where only its count
// (Queen's KV) and the lease tell of it: it is not among them.
func (o *Operator) Retries(ctx context.Context, route string, q RetryQuery) (RetryPage, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	queue := bridge.RetryQueue(route)
	rows, next, err := o.queen.ListTimers(ctx, queue, q.After, min(limit, maxPage))
	if err != nil {
		return RetryPage{}, fmt.Errorf("list retries of route %s: %w", route, err)
	}
	page := RetryPage{Retries: make([]PendingRetry, len(rows)), Next: next}
	for i, row := range rows {
		r := &page.Retries[i]
		r.Key, r.Due, r.Hop = row.Key, row.DeliverAt, hopOf(row.Key)
		if !q.Details {
			continue
		}
		if err := o.addDetails(ctx, queue, r); err != nil {
			return RetryPage{}, fmt.Errorf("list retries of route %s: %w", route, err)
		}
	}
	return page, nil
}

func hopOf(key string) int {
	hop, _ := strconv.Atoi(key[strings.LastIndexByte(key, '/')+1:])
	return hop
}

func (o *Operator) addDetails(ctx context.Context, queue string, r *PendingRetry) error {
	t, found, err := o.queen.PeekTimer(ctx, queue, r.Key)
	if err != nil || !found {
		return err
	}
	d, ours, err := bridge.DecodeDelivery(t.Payload)
	if err != nil || !ours {
		return nil //nolint:nilerr // somebody else's timer: its key and time are all there is
	}
	r.Delivery, r.Origin, r.Event = bridge.DeliveryID(d.Route, d.Origin), d.Origin, summary(d)
	r.Attempt, r.FirstFailed, r.Last = d.Attempt, d.FirstFailed, d.Last
	return nil
}

// ErrNoRetry says that no retry waits under a key: it is due, was cancelled, or
// never was.
var ErrNoRetry = errors.New("no such retry is waiting")

// hasten is how soon a retry fires that is called now: time enough to take a
// timer back that was set beside one that had just fired.
const hasten = time.Second

// RetryNow lets a pending retry fire within about a second (on an idle Queen
// before 1.5.2 within two). The error matches ErrNoRetry where it is due
// already. The target's holds and limits stay: Dispatcher.RetryNow ends those.
// An event that waits in front of its partition (ordering partition) cannot be
// hastened: the lease that is its delay can be lengthened, not shortened; it
// waits at most the route's longest backoff.
func (o *Operator) RetryNow(ctx context.Context, route, key string) error {
	if err := o.retryNow(ctx, bridge.RetryQueue(route), key); err != nil {
		return fmt.Errorf("retry %s of route %s now: %w", key, route, err)
	}
	return nil
}

func (o *Operator) retryNow(ctx context.Context, queue, key string) error {
	t, found, err := o.queen.PeekTimer(ctx, queue, key)
	if err != nil {
		return err
	}
	if !found || t.Claimed {
		return ErrNoRetry
	}
	t.Delay = hasten
	statuses, err := o.queen.Schedule(ctx, []queen.Timer{t.Timer})
	switch {
	case err != nil:
		return err
	case statuses[0] == queen.TimerTooLate:
		return ErrNoRetry
	case statuses[0] == queen.TimerScheduled:
		// It fired between the two: this one would be a copy.
		_, err := o.queen.CancelTimer(ctx, queue, key)
		return errors.Join(ErrNoRetry, err)
	}
	return nil
}
