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
	keyCount     = "count"
)

// record writes the one record of an attempt. A delivered one is Info, a retried
// or held one Warn (it heals itself), a dead one Error (someone must act).
func (r *route) record(it *item, resp *bridge.Response, out bridge.Outcome, detached bool) {
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
	if detached {
		attrs = append(attrs, slog.Bool(keyDetached, true))
	}
	r.log.LogAttrs(ctx, level, msgAttempted, attrs...)
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
