package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func TestLostAnswerOfASettleIsAskedAgainAndCallsNobody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path string
		status     int
		fault      devbroker.Fault
	}{
		{"plain ack, answer lost", "/api/v1/ack/batch", 200, devbroker.Fault{LoseAnswer: true}},
		{"plain ack, answer cut", "/api/v1/ack/batch", 200, devbroker.Fault{CutAnswer: 5}},
		{"plain ack, request lost", "/api/v1/ack/batch", 200, devbroker.Fault{Status: 503}},
		{"transaction, answer lost", "/api/v1/transaction", 500, devbroker.Fault{LoseAnswer: true}},
		{"transaction, answer cut", "/api/v1/transaction", 500, devbroker.Fault{CutAnswer: 20}},
		{"transaction, request lost", "/api/v1/transaction", 500, devbroker.Fault{Status: 500, Body: `{"error":"pool"}`}},
		{"transaction, rate limited", "/api/v1/transaction", 500, devbroker.Fault{Status: 429, Body: `{"success":false,"reason":"rate_limited","error":"rate_limited","results":[]}`}},
		{"transaction, database error", "/api/v1/transaction", 500, devbroker.Fault{Status: 200, Body: `{"success":false,"reason":"db_error","error":"db error","results":[]}`}},
		{"dead letter, answer lost", "/api/v1/transaction", 400, devbroker.Fault{LoseAnswer: true}},
		{"dead letter, answer lost thrice", "/api/v1/transaction", 400, devbroker.Fault{LoseAnswer: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.fn.statuses(tt.status)
				n := 1
				if strings.HasSuffix(tt.name, "thrice") {
					n = 3
				}
				k.faults.times(tt.path, n, tt.fault)
				p := k.start(nil, r)
				k.push("q", "p", `{"a":1}`)
				k.wait(4 * time.Second)
				if n := len(k.fn.all()); n != 1 {
					t.Errorf("%d calls before the retry is due, want 1", n)
				}
				k.wait(2 * time.Minute)
				want := map[int]int{200: 1, 400: 1, 500: 2}[tt.status]
				if n := len(k.fn.all()); n != want {
					t.Errorf("%d calls, want %d", n, want)
				}
				if n := len(k.graves("r")); n != map[int]int{400: 1}[tt.status] {
					t.Errorf("%d dead letters", n)
				}
				// 2.x says of the repeat that its lease is gone, not that it is
				// a duplicate: nobody knows who filed it, and nobody counts it.
				known := generation != 2 || !tt.fault.LoseAnswer
				if n := p.metric(t, "dead_letters_total"); known && n != float64(len(k.graves("r"))) {
					t.Errorf("dead_letters_total = %v, %d filed", n, len(k.graves("r")))
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// The broker lets the lease end early: another pop gets the event while the
// first call runs. What the first holder knows must not be settled.
func TestLostLeaseSettlesNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500, 400} {
		inBubble(t, nil, func(k *kit) {
			r := testRoute("r", "q")
			r.DetachAfter = 0
			k.faults.once("/api/v1/pop/queue/q", devbroker.Fault{Lease: 5 * time.Second})
			k.fn.answers(func(ctx context.Context, c call) bridge.Response {
				if c.n == 1 {
					return after(ctx, 25*time.Second, bridge.Response{Status: status})
				}
				return bridge.Response{Status: 200}
			})
			p := k.start(nil, r)
			k.push("q", "p", `{"a":1}`)
			k.wait(3 * time.Minute)
			if n := len(k.fn.all()); n != 2 {
				t.Errorf("status %d: %d calls, want 2: the lost one and its successor's", status, n)
			}
			if n := len(k.graves("r")); n != 0 {
				t.Errorf("status %d: %d dead letters of a lost lease", status, n)
			}
			if p.metric(t, "leases_lost_total") != 1 {
				t.Errorf("leases_lost_total = %v, want 1", p.metric(t, "leases_lost_total"))
			}
			k.settledAll(r)
			p.stop()
		})
	}
}

func TestSlowCallKeepsItsLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 9*time.Minute, bridge.Response{Status: 200})
		})
		p := k.start(func(c *dispatch.Config) { c.Targets[0].HTTP.Timeout = 10 * time.Minute }, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(12 * time.Minute)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}
