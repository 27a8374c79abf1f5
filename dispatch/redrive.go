package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Order says what to do with many dead letters.
type Order struct {
	Selection
	// Limit bounds how many are touched. 0: no bound.
	Limit int
	// PerSecond spreads them. 0: as fast as Queen answers.
	PerSecond float64
	// DryRun changes nothing: Done says how many it would be.
	DryRun bool
}

// OrderResult is what became of an Order.
type OrderResult struct {
	// Done were redriven or deleted.
	Done int
	// Skipped cannot be redriven: somebody else put them into the dead queue.
	Skipped int
	// Failed are still there, each with its reason; at most 20 are named.
	Failed   int
	Problems []string
}

const maxProblems = 20

func (r *OrderResult) fail(l *DeadLetter, err error) {
	r.Failed++
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf("dead letter %s: %v", l.ID, err))
	}
}

// Redrive lets dead letters be delivered again, as new deliveries of the same
// webhook-id with the whole retry policy before them. They go to the route's
// retry queue, so no other reader of the source queue sees them. It may be
// repeated, also after it broke off and by two operators at once: the id of a
// redrive is fixed, and a row goes only once Queen has what stands for it.
//
// Dead letters that come to be meanwhile are left alone. An error is
// ErrRedriveRefused, Queen's, or the end of ctx; the result says what was done
// until then.
func (o *Operator) Redrive(ctx context.Context, route string, order Order) (OrderResult, error) {
	if err := o.accepts(ctx, route); err != nil {
		return OrderResult{}, fmt.Errorf("redrive on route %s: %w: %w", route, ErrRedriveRefused, err)
	}
	return o.each(ctx, route, order, func(l *DeadLetter) error { return o.redrive(ctx, l) })
}

// RedriveOne redrives one dead letter, by its id. The error matches
// ErrNoDeadLetter where there is none.
func (o *Operator) RedriveOne(ctx context.Context, route, id string) error {
	result, err := o.Redrive(ctx, route, Order{Selection: Selection{IDs: []string{id}}})
	return one(result, err, route, id)
}

// DeleteDeadLetters deletes dead letters for good. Errors are as with Redrive,
// but for a route's state.
func (o *Operator) DeleteDeadLetters(ctx context.Context, route string, order Order) (OrderResult, error) {
	return o.each(ctx, route, order, func(l *DeadLetter) error {
		return gone(o.queen.DeleteDeadLetter(ctx, l.partitionID, l.txn))
	})
}

// DeleteDeadLetter deletes one dead letter, by its id. The error matches
// ErrNoDeadLetter where there is none.
func (o *Operator) DeleteDeadLetter(ctx context.Context, route, id string) error {
	result, err := o.DeleteDeadLetters(ctx, route, Order{Selection: Selection{IDs: []string{id}}})
	return one(result, err, route, id)
}

func one(r OrderResult, err error, route, id string) error {
	switch {
	case err != nil:
		return err
	case len(r.Problems) > 0:
		return errors.New(r.Problems[0])
	case r.Skipped > 0:
		return fmt.Errorf("dead letter %s of route %s: %w", id, route, errForeign)
	case r.Done == 0:
		return fmt.Errorf("dead letter %s of route %s: %w", id, route, ErrNoDeadLetter)
	}
	return nil
}

// errForeign says that a row holds no delivery of the bridge.
var errForeign = errors.New("it holds no delivery of this bridge")

// each does something with every dead letter that fits, those aside that are
// newer than the first one seen: what is redriven may soon be dead again.
func (o *Operator) each(ctx context.Context, route string, order Order, act func(*DeadLetter) error) (OrderResult, error) {
	var result OrderResult
	var newest time.Time
	touched, pace := 0, newPace(order.PerSecond)
	scan := o.scan(route)
	for {
		l, err := scan.next(ctx)
		if l == nil || err != nil {
			return result, err
		}
		if newest.IsZero() {
			newest = l.FailedAt
		}
		if l.FailedAt.After(newest) || !order.fits(l) {
			continue
		}
		if touched++; order.Limit > 0 && touched > order.Limit {
			return result, nil
		}
		if order.DryRun {
			result.Done++
			continue
		}
		if err := pace.wait(ctx); err != nil {
			return result, err
		}
		switch err := act(l); {
		case err == nil:
			result.Done++
			scan.removed()
		case errors.Is(err, errForeign):
			result.Skipped++
		case ctx.Err() != nil:
			return result, fmt.Errorf("dead letter %s: %w", l.ID, err)
		default:
			result.fail(l, err)
		}
		if len(order.IDs) > 0 && touched == len(order.IDs) {
			return result, nil
		}
	}
}

// redrive pushes one delivery anew, then deletes its row. It travels whole: the
// retry queue has no retention by age.
func (o *Operator) redrive(ctx context.Context, l *DeadLetter) error {
	if !l.Redrivable {
		return errForeign
	}
	d := whole(l.delivery)
	d.Hop, d.Attempt, d.FirstFailed, d.Dead = d.Hop+1, 0, time.Time{}, nil
	verdicts, err := o.queen.Push(ctx, []queen.Item{{
		Queue: bridge.RetryQueue(l.Route), Partition: bridge.RetryLane(d.Lineage),
		TransactionID: bridge.RedriveTxn(l.txn), Payload: d.AppendEnvelope(nil),
	}})
	if err == nil {
		err = notStored(verdicts)
	}
	if err != nil {
		return fmt.Errorf("push to the retry queue: %w", err)
	}
	o.log.LogAttrs(ctx, slog.LevelInfo, "dead letter redriven", slog.String(keyRoute, l.Route),
		slog.String(keyDelivery, l.Delivery), slog.String(keyEvent, l.Origin.TransactionID))
	if err := gone(o.queen.DeleteDeadLetter(ctx, l.partitionID, l.txn)); err != nil {
		return fmt.Errorf("redriven, but its row is not deleted (repeat it): %w", err)
	}
	return nil
}

// gone takes what is not there for deleted: another operator was faster, or an
// answer was lost.
func gone(err error) error {
	if errors.Is(err, queen.ErrNotFound) {
		return nil
	}
	return err
}

// pace spreads what is done over time.
type pace struct {
	every time.Duration
	due   time.Time
}

func newPace(perSecond float64) *pace {
	if perSecond <= 0 {
		return &pace{}
	}
	return &pace{every: time.Duration(float64(time.Second) / perSecond)}
}

func (p *pace) wait(ctx context.Context) error {
	if p.every <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	p.due = later(p.due, now)
	wait := p.due.Sub(now)
	p.due = p.due.Add(p.every)
	return sleep(ctx, wait)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
