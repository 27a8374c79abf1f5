package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// request is what a Sender gets for an item.
func (r *route) request(it *item, e *bridge.Event) *bridge.Request {
	return &bridge.Request{
		DeliveryID:  bridge.DeliveryID(r.cfg.Name, it.d.Origin),
		Attempt:     it.d.Attempt + 1,
		Queue:       it.d.Origin.Queue,
		Partition:   it.d.Origin.Partition,
		Headers:     e.Headers,
		ContentType: e.ContentType,
		Body:        e.Body,
		Traceparent: e.Traceparent,
	}
}

// attempt makes one call. A panic of the Sender is a failed call: it may have
// reached the function.
func (r *route) attempt(ctx context.Context, req *bridge.Request, deadline time.Time) (resp bridge.Response) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	begun := time.Now()
	r.m.inFlight.Inc()
	defer func() {
		r.m.inFlight.Dec()
		if p := recover(); p != nil {
			r.log.LogAttrs(ctx, slog.LevelError, "panic while attempting", slog.Any(keyError, p), stack())
			resp = bridge.Response{Err: fmt.Errorf("the bridge panicked: %v", p), Class: bridge.FailureFunctionError, Sent: true}
		}
		if resp.Elapsed <= 0 {
			resp.Elapsed = time.Since(begun)
		}
	}()
	return r.target.send(ctx, req)
}

// decide judges an answer and lets the target feel it.
func (r *route) decide(it *item, resp *bridge.Response) bridge.Outcome {
	facts := bridge.Facts{Attempt: it.d.Attempt + 1, FirstFailed: it.d.FirstFailed}
	now := time.Now()
	out := bridge.Decide(*resp, facts, r.policy, now, rand.Float64)
	if out.PauseTarget > 0 {
		r.d.limiter.hold(r.target.share, now.Add(out.PauseTarget))
	}
	if out.DisableTarget && r.d.limiter.disable(r.target.share) {
		r.log.LogAttrs(context.Background(), slog.LevelError,
			"target paused until restart: it answered 410 Gone", slog.Int(keyStatus, resp.Status))
	}
	r.m.attempted(resp, out, resp.Elapsed)
	return out
}

// undecodable is the outcome of what cannot be read.
func undecodable(err error) bridge.Outcome {
	return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{Class: bridge.FailureUndecodable, Error: err.Error()}}
}

// exhausted is the outcome of a popped delivery that has no call left: the
// failure is the last one's.
func exhausted(d bridge.Delivery) bridge.Outcome {
	f := d.Last
	f.Class = bridge.FailureExhausted
	return bridge.Outcome{Kind: bridge.Dead, Failure: f}
}
