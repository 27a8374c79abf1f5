package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// request is what a Sender gets for an item, and what its answer is judged with.
func (r *route) request(it *item, e *bridge.Event) (req *bridge.Request, by asked) {
	if !r.encoder.Plain() {
		return r.requestOf([]format.Item{{Event: e, Delivery: &it.d}})
	}
	id := bridge.DeliveryID(r.cfg.Name, it.d.Origin)
	req = &bridge.Request{
		DeliveryID:  id,
		Attempt:     it.d.Attempt + 1,
		Queue:       it.d.Origin.Queue,
		Partition:   it.d.Origin.Partition,
		Headers:     e.Headers,
		ContentType: e.ContentType,
		Body:        e.Body,
		Traceparent: e.Traceparent,
	}
	if req.Capture = r.capture(); r.cfg.ReportItemFailures {
		by.ids = []string{id}
	}
	by.span = r.beginSpan(req, format.Item{Event: e, Delivery: &it.d})
	return req, by
}

// capture is how much of an answer's body is needed.
func (r *route) capture() (n int64) {
	if r.replies() {
		n = maxReplyBody
	}
	if r.cfg.ReportItemFailures {
		n = max(n, format.MaxReport)
	}
	return n
}

// requestOf is one request of several events, and what its answer is judged
// with. It names a partition where all are of one, and without spans of our own
// it continues a trace where it has one event.
func (r *route) requestOf(events []format.Item) (*bridge.Request, asked) {
	deliveries, origin := make([]string, len(events)), events[0].Delivery.Origin
	req := &bridge.Request{Queue: origin.Queue, Partition: origin.Partition, Capture: r.capture()}
	for i := range events {
		d := events[i].Delivery
		deliveries[i] = bridge.DeliveryID(r.cfg.Name, d.Origin)
		req.Attempt = max(req.Attempt, d.Attempt+1)
		if d.Origin.Partition != req.Partition {
			req.Partition = ""
		}
	}
	m := r.encoder.Encode(events, time.Now())
	req.Body, req.ContentType, req.Headers = m.Body, m.ContentType, m.Headers
	req.DeliveryID = deliveries[0]
	if len(events) > 1 {
		req.DeliveryID = bridge.BatchID(deliveries)
	} else {
		req.Traceparent = events[0].Event.Traceparent
	}
	return req, asked{m.IDs, r.beginSpan(req, events...)}
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

// decideOne judges the answer to a call of one item.
func (r *route) decideOne(it *item, resp *bridge.Response, by asked) bridge.Outcome {
	if !r.cfg.ReportItemFailures {
		out := r.decide(it, resp)
		r.m.attempted(resp, &out)
		by.span.end(resp, &out)
		return out
	}
	return r.judgeAnswer([]*item{it}, resp, by).outs[0]
}

// panicked is the outcome of a call that ended in a panic of our own.
func panicked(v any) bridge.Outcome {
	return bridge.Outcome{Kind: bridge.Retry, Delay: time.Minute, Failure: bridge.Failure{
		Class: bridge.FailureFunctionError, Error: fmt.Sprintf("the bridge panicked: %v", v),
	}}
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
