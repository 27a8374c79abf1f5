package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Bounds of the delivery log in Queen. 1.3.0 does not limit the rate of traces,
// each is a transaction of its database, and none is ever deleted (read in its
// source): so they are off unless asked for, and a process writes one at a time,
// at most 20 a second.
const (
	traceQueue = 1024 // that wait; more are dropped
	traceGap   = 50 * time.Millisecond
	traceLimit = 5 * time.Second // for one
	traceRest  = 5 * time.Second // after one that Queen did not answer
)

// tracer writes what was not delivered to Queen's traces, beside the deliveries:
// it never makes one wait, and drops what is too much.
type tracer struct {
	queue   chan queen.Trace
	dropped prometheus.Counter
	ended   atomic.Bool // nothing is written any more
}

// traceData is what a trace says; no body, header, URL or text of an answer.
type traceData struct {
	Route    string              `json:"route"`
	Target   string              `json:"target"`
	Delivery string              `json:"delivery"`
	Outcome  bridge.OutcomeKind  `json:"outcome"`
	Class    bridge.FailureClass `json:"class"`
	Status   int                 `json:"status"` // 0: there was no answer
	Attempt  int                 `json:"attempt"`
	// Next is when it is tried again; none of a dead letter.
	Next *time.Time `json:"next,omitempty"`
}

// trace takes a note of an event. A nil tracer takes none.
func (t *tracer) trace(group string, o bridge.Origin, data traceData) {
	if t == nil {
		return
	}
	data.Delivery = bridge.DeliveryID(data.Route, o)
	text, _ := json.Marshal(data) // words, numbers and a time
	note := queen.Trace{TransactionID: o.TransactionID, PartitionID: o.PartitionID, Group: group, Event: string(data.Outcome), Names: []string{data.Delivery}, Data: text}
	if t.ended.Load() {
		t.dropped.Inc()
		return
	}
	select {
	case t.queue <- note:
	default:
		t.dropped.Inc()
	}
}

// run writes notes until no more events are taken; what waits then is dropped.
func (t *tracer) run(ctx context.Context, d *Dispatcher) {
	defer func() {
		t.ended.Store(true)
		t.dropped.Add(float64(len(t.queue)))
	}()
	for {
		select {
		case note := <-t.queue:
			if sleep(ctx, t.write(ctx, d, note)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// write writes one note, and says how long to rest.
func (t *tracer) write(ctx context.Context, d *Dispatcher, note queen.Trace) time.Duration {
	within, cancel := context.WithTimeout(ctx, traceLimit)
	defer cancel()
	err := d.queen.Trace(within, note)
	if err == nil {
		return traceGap
	}
	t.dropped.Inc()
	d.log.LogAttrs(ctx, slog.LevelDebug, "a trace was not stored", slog.String(keyEvent, note.TransactionID), slog.Any(keyError, err))
	if noAnswer(err) || queen.RetryAfter(err) > 0 {
		return max(traceRest, queen.RetryAfter(err))
	}
	return traceGap
}

// traceAttempt notes an attempt that did not deliver.
func (r *route) traceAttempt(a *attempted) {
	data := traceData{Route: r.cfg.Name, Target: r.cfg.Target, Outcome: a.out.Kind, Class: a.out.Failure.Class, Status: a.resp.Status, Attempt: a.it.d.Attempt + 1}
	if a.out.Kind == bridge.Retry || a.out.Kind == bridge.Hold {
		next := time.Now().Add(a.out.Delay).UTC().Truncate(time.Millisecond)
		data.Next = &next
	}
	r.d.tracer.trace(r.group, a.it.d.Origin, data)
}

// traceDead notes a dead letter that is stored.
func (r *route) traceDead(d *bridge.Delivery) {
	r.d.tracer.trace(r.group, d.Origin, traceData{Route: r.cfg.Name, Target: r.cfg.Target, Outcome: OutcomeDeadLetter, Class: d.Dead.Class, Status: d.Dead.Status, Attempt: d.Attempt})
}
