package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Messages and keys of the dispatcher's log: operators search for them, so
// they do not change. No record holds a body, a header or a secret.
const (
	msgAttempted = "delivery attempted"
	msgDead      = "delivery dead"
	msgFiltered  = "delivery filtered"

	keyRoute     = "route"
	keyTarget    = "target"
	keyQueue     = "queue"
	keyPartition = "partition"
	keyDelivery  = "delivery"
	keyEvent     = "event"
	keyHop       = "hop"
	keyAttempt   = "attempt"
	keyOutcome   = "outcome"
	keyStatus    = "status"
	keyClass     = "class"
	keyError     = "error"
	keyElapsed   = "elapsed"
	keyDelay     = "delay"
	keyDetached  = "detached"
	keyUnknown   = "unknown"
	keyCount     = "count"
)

// attempted is a call and what became of one of its events.
type attempted struct {
	it       *item
	resp     *bridge.Response
	out      bridge.Outcome
	detached bool // its settle did not wait for it
	batch    int  // events of the call
}

// record writes the one record of an attempt, and remembers it. A delivered one
// is Info, a retried or held one Warn (it heals itself), a dead one Error
// (someone must act).
func (r *route) record(a attempted) {
	it, resp, out := a.it, a.resp, &a.out
	r.remember(&a)
	if out.Kind != bridge.Delivered {
		r.traceAttempt(&a)
	}
	level := attemptLevel(out.Kind)
	ctx := context.Background()
	if !r.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String(keyDelivery, bridge.DeliveryID(r.cfg.Name, it.d.Origin)),
		slog.String(keyEvent, it.d.Origin.TransactionID),
		slog.String(keyQueue, it.d.Origin.Queue),
		slog.String(keyPartition, it.d.Origin.Partition),
		slog.Int(keyHop, it.d.Hop),
		slog.Int(keyAttempt, it.d.Attempt+1),
		slog.String(keyOutcome, string(out.Kind)),
		slog.Int(keyStatus, resp.Status),
		slog.Duration(keyElapsed, resp.Elapsed.Round(time.Microsecond)))
	if out.Kind != bridge.Delivered {
		attrs = append(attrs, slog.String(keyClass, string(out.Failure.Class)),
			slog.String(keyError, out.Failure.Error))
	}
	if out.Kind == bridge.Retry || out.Kind == bridge.Hold {
		attrs = append(attrs, slog.Duration(keyDelay, out.Delay))
	}
	if mayHaveRun(resp, out) {
		attrs = append(attrs, slog.Bool(keyUnknown, true))
	}
	if a.detached {
		attrs = append(attrs, slog.Bool(keyDetached, true))
	}
	r.log.LogAttrs(ctx, level, msgAttempted, attrs...)
}

// mayHaveRun says of a call without the answer it needed that its function may
// have done its work: the event may be delivered twice (dispatch.md §2.3).
func mayHaveRun(resp *bridge.Response, out *bridge.Outcome) bool {
	if resp.Err != nil {
		return resp.Sent
	}
	return resp.Cut && out.Kind == bridge.Retry && resp.Status >= 200 && resp.Status <= 299
}

// remember keeps the attempt for Deliveries.
func (r *route) remember(a *attempted) {
	record := DeliveryRecord{
		Time: time.Now(), Route: r.cfg.Name, Target: r.cfg.Target,
		Event: a.it.d.Origin.TransactionID, Queue: a.it.d.Origin.Queue, Partition: a.it.d.Origin.Partition,
		Hop: a.it.d.Hop, Attempt: a.it.d.Attempt + 1, Outcome: a.out.Kind, Status: a.resp.Status,
		Elapsed: a.resp.Elapsed, Detached: a.detached, Batch: a.batch,
	}
	if a.out.Kind != bridge.Delivered {
		record.Class, record.Error = a.out.Failure.Class, a.out.Failure.Error
	}
	if a.out.Kind == bridge.Retry || a.out.Kind == bridge.Hold {
		record.Delay = a.out.Delay
	}
	r.d.recent.add(record)
}

// rememberDead keeps a stored dead letter for Deliveries.
func (r *route) rememberDead(d *bridge.Delivery) {
	r.d.recent.add(DeliveryRecord{
		Time: time.Now(), Route: r.cfg.Name, Target: r.cfg.Target,
		Event: d.Origin.TransactionID, Queue: d.Origin.Queue, Partition: d.Origin.Partition,
		Hop: d.Hop, Attempt: d.Attempt, Outcome: OutcomeDeadLetter,
		Status: d.Dead.Status, Class: d.Dead.Class, Error: d.Dead.Error,
	})
}

func attemptLevel(k bridge.OutcomeKind) slog.Level {
	switch k {
	case bridge.Delivered:
		return slog.LevelInfo
	case bridge.Dead:
		return slog.LevelError
	}
	return slog.LevelWarn
}
