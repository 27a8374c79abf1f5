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
	req := &bridge.Request{
		DeliveryID:  bridge.DeliveryID(r.cfg.Name, it.d.Origin),
		Attempt:     it.d.Attempt + 1,
		Queue:       it.d.Origin.Queue,
		Partition:   it.d.Origin.Partition,
		Headers:     e.Headers,
		ContentType: e.ContentType,
		Body:        e.Body,
		Traceparent: e.Traceparent,
	}
	if r.replies() {
		req.Capture = maxReplyBody
	}
	return req
}

// attempt makes one call, whose permit learns how the target fares. A panic
// of the Sender is a failed call: it may have reached the function.
func (r *route) attempt(calling context.Context, p *permit, req *bridge.Request, deadline time.Time) (resp bridge.Response) {
	ctx, cancel := context.WithDeadline(calling, deadline)
	defer cancel()
	begun := time.Now()
	p.begun = begun
	r.m.inFlight.Inc()
	defer func() {
		r.m.inFlight.Dec()
		if v := recover(); v != nil {
			r.log.LogAttrs(ctx, slog.LevelError, "panic while attempting", slog.Any(keyError, v), stack())
			resp = bridge.Response{Err: fmt.Errorf("the bridge panicked: %v", v), Class: bridge.FailureFunctionError, Sent: true}
		}
		if resp.Elapsed <= 0 {
			resp.Elapsed = time.Since(begun)
		}
		p.end = r.judge(&resp, calling.Err() != nil)
	}()
	return r.target.send(ctx, req)
}

// decide judges an answer and lets the target feel it.
func (r *route) decide(it *item, resp *bridge.Response) bridge.Outcome {
	facts := bridge.Facts{Attempt: it.d.Attempt + 1, FirstFailed: it.d.FirstFailed, NeedsBody: r.needsBody(resp.Status)}
	now := time.Now()
	out := bridge.Decide(*resp, facts, r.policy, now, rand.Float64)
	if out.PauseTarget > 0 {
		r.d.limiter.hold(r.target.share, now.Add(out.PauseTarget))
	}
	if out.DisableTarget {
		r.d.pauseItself(pauseKey{kindTarget, r.target.name}, "it answered 410 Gone")
	}
	if out.Kind == bridge.Hold {
		r.holdLonger(&out, it, now)
	}
	r.m.attempted(resp, out, resp.Elapsed)
	return out
}

// undecodable is the outcome of what cannot be read.
func undecodable(err error) bridge.Outcome {
	return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{Class: bridge.FailureUndecodable, Error: err.Error()}}
}

// expired is the outcome of a delivery whose max_age ended while its target
// could not be called: the failure is the last one's.
func expired(d bridge.Delivery) bridge.Outcome {
	f := d.Last
	f.Class = bridge.FailureExpired
	if f.Error == "" {
		f.Error = "the target could not be called until max_age"
	}
	return bridge.Outcome{Kind: bridge.Dead, Failure: f}
}

// exhausted is the outcome of a popped delivery that has no call left: the
// failure is the last one's.
func exhausted(d bridge.Delivery) bridge.Outcome {
	f := d.Last
	f.Class = bridge.FailureExhausted
	return bridge.Outcome{Kind: bridge.Dead, Failure: f}
}
