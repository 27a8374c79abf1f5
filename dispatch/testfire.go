package dispatch

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Bounds of test-fires.
const (
	maxTestFires  = 8       // at once
	maxTestAnswer = 4 << 10 // bytes of an answer that are shown
)

// errBusy answers a test-fire while maxTestFires others run.
var errBusy = fmt.Errorf("%d test-fires are running: wait for one", maxTestFires)

// Result is what a test-fire came to.
type Result struct {
	// Filtered: the route's filter does not want the event; nothing was called.
	Filtered bool
	// Outcome is what would become of a first delivery; "" where Filtered.
	Outcome bridge.OutcomeKind
	// Delay is when it would be tried again (outcomes retry and hold).
	Delay time.Duration
	// Status is the answer's; 0: there was none.
	Status  int
	Elapsed time.Duration
	// Class and Error say how it failed; never a secret.
	Class bridge.FailureClass
	Error string
	// Body is the head of the answer, at most 4 KiB; Truncated says that there
	// was more. It is for eyes that may see what the function says.
	Body      []byte
	Truncated bool
}

// TestFire calls a route's target with an event as a first delivery would: with
// its filter, what it makes of the event, and the real Sender with its guards,
// signatures and timeout. It touches no queue, counts for no limit, breaker or
// pause, and is not retried. A failed call is no error; the error is an unknown
// route (ErrUnknown), too many test-fires at once, or the end of ctx.
func (d *Dispatcher) TestFire(ctx context.Context, route string, event bridge.Event) (Result, error) {
	r, err := d.wantedRoute(route)
	if err != nil {
		return Result{}, fmt.Errorf("test-fire: %w", err)
	}
	defer r.target.use(-1)
	select {
	case d.testing <- struct{}{}:
		defer func() { <-d.testing }()
	default:
		return Result{}, fmt.Errorf("test-fire: %w", errBusy)
	}
	if r.filter != nil {
		switch wanted, err := r.filter.Match(ctx, &event); {
		case ctx.Err() != nil:
			return Result{}, fmt.Errorf("test-fire: %w", context.Cause(ctx))
		case err != nil:
			return failedResult(unfilterable(err)), nil
		case !wanted:
			return Result{Filtered: true}, nil
		}
	}
	return r.fire(ctx, &event)
}

// wantedRoute is the route of a name as it is configured now.
func (d *Dispatcher) wantedRoute(name string) (*route, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s := d.slots[name]; {
	case d.stopped.Load():
		return nil, errStopped
	case s == nil || s.wanted == nil:
		return nil, fmt.Errorf("route %q: %w", name, ErrUnknown)
	default:
		s.wanted.target.use(1) // its Sender is not closed under us
		return s.wanted, nil
	}
}

func (r *route) fire(ctx context.Context, event *bridge.Event) (Result, error) {
	id := "test:" + rand.Text()
	origin := bridge.Origin{Queue: r.cfg.Queue, Partition: "test", TransactionID: id, MessageID: id, CreatedAt: time.Now()}
	it := &item{d: bridge.NewDelivery(r.cfg.Name, origin, nil)}
	sent, err := r.transformed(ctx, event)
	if err != nil {
		return failedResult(untransformable(err)), nil
	}
	req, by := r.request(it, sent)
	resp := r.attempt(ctx, &permit{}, req, time.Now().Add(r.target.timeout()))
	facts := bridge.Facts{Attempt: 1, NeedsBody: r.needsBody(resp.Status)}
	out := bridge.Decide(resp, facts, r.policy, time.Now(), mathrand.Float64)
	by.span.end(&resp, &out)
	if ctx.Err() != nil && resp.Err != nil {
		return Result{}, fmt.Errorf("test-fire: %w", context.Cause(ctx))
	}
	res := failedResult(out)
	res.Status, res.Elapsed = resp.Status, resp.Elapsed
	res.Body, res.Truncated = resp.Body, resp.Truncated
	if len(res.Body) > maxTestAnswer {
		res.Body, res.Truncated = res.Body[:maxTestAnswer:maxTestAnswer], true
	}
	return res, nil
}

func failedResult(out bridge.Outcome) Result {
	return Result{Outcome: out.Kind, Delay: out.Delay, Class: out.Failure.Class, Error: strings.ToValidUTF8(out.Failure.Error, "\uFFFD")}
}

// RetryNow ends, on an operator's word, what keeps a route's target from being
// called: a hold (Retry-After), and the wait of an open breaker, whose next
// call then decides. A pause stays: see ResumeTarget. Events already scheduled
// for later are timers in Queen, and not touched (Operator.RetryNow). The error
// is ErrUnknown.
func (d *Dispatcher) RetryNow(route string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[route]
	if s == nil || s.wanted == nil {
		return fmt.Errorf("retry now: route %q: %w", route, ErrUnknown)
	}
	d.limiter.endHold(s.wanted.target.share)
	s.wanted.retries.seldom.expect(time.Now())
	return nil
}
