package dispatch

import (
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// TestNoSpanCostsNothing: without a tracer a call allocates nothing for traces,
// and its request stays as it is.
func TestNoSpanCostsNothing(t *testing.T) {
	r := &route{d: &Dispatcher{}}
	event, d := &bridge.Event{Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, &bridge.Delivery{}
	req, resp, out := &bridge.Request{Traceparent: event.Traceparent}, &bridge.Response{Status: 500}, &bridge.Outcome{Kind: bridge.Retry}
	n := testing.AllocsPerRun(100, func() {
		r.beginSpan(req, format.Item{Event: event, Delivery: d}).end(resp, out)
	})
	if n != 0 || req.Traceparent != event.Traceparent {
		t.Errorf("%v allocations, traceparent %q; want none, %q", n, req.Traceparent, event.Traceparent)
	}
}
