package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/dispatch"
)

// deliveries are what the running dispatcher remembers, in the words of the
// API. Before it runs there are none.
type deliveries struct {
	d *atomic.Pointer[dispatch.Dispatcher]
}

var _ admin.Deliveries = deliveries{}

func (v deliveries) Recent(_ context.Context, q adminapi.DeliveryQuery, size int, before int64) ([]adminapi.Delivery, int64) {
	d := v.d.Load()
	if d == nil {
		return nil, 0
	}
	after, _ := strconv.ParseInt(q.After, 10, 64) // package admin lets no other text pass
	found := d.Deliveries(dispatch.DeliveryQuery{Route: q.Route, Target: q.Target, Event: q.Event, Delivery: q.Delivery,
		Outcome: bridge.OutcomeKind(q.Outcome), Since: q.Since, After: after, Before: before, Limit: size + 1})
	var next int64
	if len(found) > size {
		found = found[:size]
		next = found[size-1].Seq
	}
	items := make([]adminapi.Delivery, len(found))
	for i := range found {
		items[i] = deliveryView(&found[i])
	}
	return items, next
}

func deliveryView(r *dispatch.DeliveryRecord) adminapi.Delivery {
	view := adminapi.Delivery{
		ID: strconv.FormatInt(r.Seq, 10), Time: r.Time.UTC(), Route: r.Route, Target: r.Target, Delivery: r.Delivery,
		Event: r.Event, Queue: r.Queue, Partition: r.Partition, Hop: r.Hop, Attempt: r.Attempt, Outcome: string(r.Outcome),
		Status: r.Status, Class: string(r.Class), Error: r.Error, Detached: r.Detached, Batch: r.Batch,
	}
	if r.Outcome != dispatch.OutcomeDeadLetter {
		view.Elapsed = r.Elapsed.Round(time.Microsecond).String()
	}
	if r.Delay > 0 {
		view.Delay = bridge.FormatDuration(r.Delay.Round(time.Millisecond))
	}
	return view
}

// states adds what routes and targets do to a status.
func states(d *dispatch.Dispatcher, s *adminapi.Status) {
	if d == nil {
		return
	}
	for _, r := range d.Status() {
		s.Routes = append(s.Routes, adminapi.RouteStatus{Route: r.Route, Target: r.Target, State: string(r.State), Since: r.Since, Detail: r.Detail, RetriesPending: r.Retries})
	}
	for _, t := range d.Targets() {
		s.Targets = append(s.Targets, adminapi.TargetStatus{
			Target: t.Target, State: string(t.State), Since: t.Since, Detail: t.Detail, InFlight: t.InFlight, Waiting: t.Waiting,
			Limit: t.Limit, Ceiling: t.Ceiling, Breaker: t.Breaker, Until: t.Until, FailingSince: t.FailingSince, Rate: t.Rate, Tokens: t.Tokens,
		})
	}
}
