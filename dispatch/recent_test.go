package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

func TestDeliveriesTellWhyAndThatItWasDelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(503, 503)
		p := k.start(nil, r)
		begun := time.Now()
		k.push("q", "p", `{"a": 1}`)
		k.wait(time.Minute)
		all := p.Deliveries(dispatch.DeliveryQuery{})
		of := func(attempt, status int, outcome bridge.OutcomeKind) dispatch.DeliveryRecord {
			return dispatch.DeliveryRecord{
				Route: "r", Target: r.Target, Queue: "q", Partition: "p", Event: `t:{"a": 1}`, Delivery: k.fn.all()[0].DeliveryID,
				Hop: attempt - 1, Attempt: attempt, Outcome: outcome, Status: status, Batch: 1,
			}
		}
		failed := func(attempt int) dispatch.DeliveryRecord {
			d := of(attempt, 503, bridge.Retry)
			d.Class, d.Error = bridge.FailureHTTP5xx, "answered 503"
			return d
		}
		want := []dispatch.DeliveryRecord{of(3, 200, bridge.Delivered), failed(2), failed(1)}
		if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(dispatch.DeliveryRecord{}, "Seq", "Time", "Elapsed", "Delay")); diff != "" {
			t.Fatal(diff)
		}
		if all[1].Delay <= 0 || all[0].Delay != 0 || all[2].Time.Before(begun) || all[0].Seq != all[2].Seq+2 {
			t.Errorf("deliveries = %+v", all)
		}
		p.stop()
	})
}

func TestDeliveriesHoldDeadLettersThatWereNeverCalled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		called, uncalled := testRoute("called", "q"), testRoute("uncalled", "q")
		uncalled.Filter = "event.body.missing.field == 1"
		k.fn.statuses(400)
		p := k.start(nil, called, uncalled)
		k.push("q", "p", `{"a": 1}`)
		k.wait(time.Minute)
		var got []string
		for _, d := range p.Deliveries(dispatch.DeliveryQuery{}) {
			got = append(got, fmt.Sprint(d.Route, " ", d.Outcome, " ", d.Status, " ", d.Class))
		}
		for _, want := range []string{"called dead 400 http_4xx", "called dead_letter 400 http_4xx", "uncalled dead_letter 0 filter_error"} {
			if strings.Count(strings.Join(got, "\n"), want) != 1 {
				t.Errorf("deliveries = %q, want one %q", got, want)
			}
		}
		p.stop()
	})
}

func TestDeliveriesAreChosen(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := testRoute("a", "q"), testRoute("b", "q")
		p := k.start(nil, a, b)
		for n := range 3 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, n))
			k.wait(time.Second)
		}
		all := p.Deliveries(dispatch.DeliveryQuery{})
		for name, tt := range map[string]struct {
			q    dispatch.DeliveryQuery
			want int
		}{
			"all":        {dispatch.DeliveryQuery{}, 6},
			"route":      {dispatch.DeliveryQuery{Route: "a"}, 3},
			"target":     {dispatch.DeliveryQuery{Target: a.Target}, 6},
			"no target":  {dispatch.DeliveryQuery{Target: "none"}, 0},
			"event":      {dispatch.DeliveryQuery{Event: `t:{"n":1}`}, 2},
			"delivery":   {dispatch.DeliveryQuery{Delivery: all[2].Delivery}, 1},
			"outcome":    {dispatch.DeliveryQuery{Outcome: bridge.Delivered}, 6},
			"no outcome": {dispatch.DeliveryQuery{Outcome: bridge.Dead}, 0},
			"since":      {dispatch.DeliveryQuery{Since: all[1].Time}, 2},
			"after":      {dispatch.DeliveryQuery{After: all[4].Seq}, 4},
			"before":     {dispatch.DeliveryQuery{Before: all[4].Seq}, 1},
			"between":    {dispatch.DeliveryQuery{After: all[4].Seq, Before: all[1].Seq}, 2},
			"limit":      {dispatch.DeliveryQuery{Route: "b", Limit: 2}, 2},
			"both":       {dispatch.DeliveryQuery{Route: "b", Delivery: all[2].Delivery, Event: all[2].Event, Limit: 2}, btoi(all[2].Route == "b")},
		} {
			got := p.Deliveries(tt.q)
			if len(got) != tt.want {
				t.Errorf("%s: %d deliveries, want %d", name, len(got), tt.want)
			}
			for i := 1; i < len(got); i++ {
				if got[i].Seq >= got[i-1].Seq {
					t.Errorf("%s: not the newest first", name)
				}
			}
		}
		p.stop()
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestDeliveriesAreBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.pushMany("q", 5000)
		k.wait(10 * time.Second)
		all := p.Deliveries(dispatch.DeliveryQuery{Limit: 10000})
		if len(all) != 4096 || all[0].Seq-all[4095].Seq != 4095 {
			t.Fatalf("%d deliveries", len(all))
		}
		long := strings.Repeat("é", 400)
		if _, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "p", TransactionID: long, Payload: []byte(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Second)
		got := p.Deliveries(dispatch.DeliveryQuery{Limit: 1})[0]
		want := bridge.DeliveryID("r", bridge.Origin{Queue: "q", Partition: "p", TransactionID: long})
		if len(got.Event) > 512 || !strings.HasPrefix(long, got.Event) || got.Delivery != want {
			t.Errorf("event of %d bytes, delivery %s, want %s", len(got.Event), got.Delivery, want)
		}
		if n := len(p.Deliveries(dispatch.DeliveryQuery{Event: long})); n != 1 {
			t.Errorf("%d deliveries of the long event", n)
		}
		p.stop()
	})
}
