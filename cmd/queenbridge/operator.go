package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
	"github.com/queenbridge/queenbridge/dispatch"
)

// letters are the dispatcher's operator, in the words of the API.
type letters struct {
	operator *dispatch.Operator
	running  *atomic.Pointer[dispatch.Dispatcher] // holds nil in a process that does not dispatch
	rules    *rules.Store
}

var _ admin.Letters = letters{}

func (b *bridgeProcess) newLetters() (letters, error) {
	o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: b.link.client, Accepts: accepts(b.rules), Logger: b.log})
	return letters{o, &b.dispatch, b.rules}, err
}

// accepts refuses redrives of routes that nobody would take them up for.
func accepts(store *rules.Store) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		store.Sync(ctx)
		e, ok := store.Catalog().Entry(bridge.Resource{Kind: bridge.KindRoute, Name: name})
		switch {
		case !ok:
			return errors.New("there is no such route: make one of that name")
		case !e.Draining.IsZero():
			return errors.New("it was deleted and drains")
		case !e.InUse:
			return errors.New("it is not in use: mend it first")
		}
		return nil
	}
}

func (l letters) List(ctx context.Context, route string, s adminapi.Selection, size, offset int) ([]adminapi.DeadLetter, int, error) {
	page, err := l.operator.DeadLetters(ctx, route, dispatch.DeadLetterQuery{Selection: selection(s), Limit: size, Offset: offset})
	var items []adminapi.DeadLetter
	for _, letter := range page.Letters {
		items = append(items, letterView(letter))
	}
	return items, page.Next, err
}

func (l letters) Read(ctx context.Context, route, id string) (adminapi.DeadLetter, error) {
	letter, err := l.operator.DeadLetter(ctx, route, id)
	return letterView(letter), apiKind(err)
}

func (l letters) Redrive(ctx context.Context, route string, o adminapi.Order) (adminapi.OrderResult, error) {
	result, err := l.operator.Redrive(ctx, route, order(o))
	if d := l.running.Load(); d != nil {
		d.Expect(route)
	}
	return adminapi.OrderResult(result), apiKind(err)
}

func (l letters) Delete(ctx context.Context, route string, o adminapi.Order) (adminapi.OrderResult, error) {
	result, err := l.operator.DeleteDeadLetters(ctx, route, order(o))
	return adminapi.OrderResult(result), apiKind(err)
}

func (l letters) Retries(ctx context.Context, route, after string, size int, details bool) ([]adminapi.Retry, string, error) {
	page, err := l.operator.Retries(ctx, route, dispatch.RetryQuery{After: after, Limit: size, Details: details})
	var items []adminapi.Retry
	for _, r := range page.Retries {
		items = append(items, retryView(r))
	}
	return items, page.Next, err
}

// RetryNow also ends what keeps the route's target from being called by this
// process: the retry would wait for it.
func (l letters) RetryNow(ctx context.Context, route, key string) error {
	if err := l.operator.RetryNow(ctx, route, key); err != nil {
		return apiKind(err)
	}
	if d := l.running.Load(); d != nil {
		if err := d.RetryNow(route); err != nil && !errors.Is(err, dispatch.ErrUnknown) {
			return apiKind(err)
		}
	}
	return nil
}

// apiKind marks errors whose text the one who asks may see.
func apiKind(err error) error {
	switch {
	case errors.Is(err, dispatch.ErrNoDeadLetter), errors.Is(err, dispatch.ErrNoRetry), errors.Is(err, dispatch.ErrUnknown):
		return fmt.Errorf("%w: %w", admin.ErrNotFound, err)
	case errors.Is(err, dispatch.ErrRedriveRefused), errors.Is(err, dispatch.ErrReplayRefused):
		return fmt.Errorf("%w: %w", admin.ErrConflict, err)
	}
	return err
}

func order(o adminapi.Order) dispatch.Order {
	return dispatch.Order{Selection: selection(o.Selection), Limit: o.Limit, PerSecond: o.PerSecond, DryRun: o.DryRun}
}

func selection(s adminapi.Selection) dispatch.Selection {
	out := dispatch.Selection{IDs: s.IDs, Event: s.Event, Since: s.Since, Until: s.Until}
	for _, class := range s.Classes {
		out.Classes = append(out.Classes, bridge.FailureClass(class))
	}
	return out
}

func letterView(l dispatch.DeadLetter) adminapi.DeadLetter {
	return adminapi.DeadLetter{
		ID: l.ID, Route: l.Route, Failed: l.FailedAt, Delivery: l.Delivery, Event: adminapi.Event(l.Event), Origin: originView(l.Origin),
		Reason: adminapi.Reason{Class: string(l.Reason.Class), Attempts: l.Reason.Attempts, First: l.Reason.First, Last: l.Reason.Last,
			Status: l.Reason.Status, Error: l.Reason.Error, Response: l.Reason.Response},
		Redrivable: l.Redrivable, Payload: string(l.Payload), PayloadError: l.PayloadError,
	}
}

func originView(o bridge.Origin) adminapi.Origin {
	return adminapi.Origin{Queue: o.Queue, Partition: o.Partition, TransactionID: o.TransactionID, MessageID: o.MessageID, Created: o.CreatedAt}
}

func retryView(r dispatch.PendingRetry) adminapi.Retry {
	view := adminapi.Retry{Key: r.Key, Due: r.Due, Hop: r.Hop}
	if r.Delivery == "" { // no details, or none any more
		return view
	}
	event, origin := adminapi.Event(r.Event), originView(r.Origin)
	view.Delivery, view.Attempt, view.FirstFailed = r.Delivery, r.Attempt, r.FirstFailed
	view.Event, view.Origin = &event, &origin
	view.Last = &adminapi.Failure{Class: string(r.Last.Class), Status: r.Last.Status, Error: r.Last.Error}
	return view
}

// tester is the running dispatcher, in the words of the API.
type tester struct {
	d *atomic.Pointer[dispatch.Dispatcher]
}

var _ admin.Tester = tester{}

func (t tester) TestFire(ctx context.Context, route string, e bridge.Event) (adminapi.TestResult, error) {
	d := t.d.Load()
	if d == nil {
		return adminapi.TestResult{}, errors.New("the dispatcher waits for Queen")
	}
	r, err := d.TestFire(ctx, route, e)
	if err != nil {
		return adminapi.TestResult{}, apiKind(err)
	}
	view := adminapi.TestResult{Filtered: r.Filtered, Outcome: string(r.Outcome), Status: r.Status, Elapsed: r.Elapsed.Round(time.Microsecond).String(),
		Class: string(r.Class), Error: r.Error, Body: string(r.Body), Truncated: r.Truncated}
	if r.Delay > 0 {
		view.Delay = bridge.FormatDuration(r.Delay.Round(time.Millisecond))
	}
	return view, nil
}
