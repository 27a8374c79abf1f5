package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
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
			if n := p.metric(t, "duplicates_suspected_total", "route=r"); (n == 1) != (status == 200) {
				t.Errorf("status %d: duplicates_suspected_total = %v, want one where the event was delivered", status, n)
			}
			k.settledAll(r)
			p.stop()
		})
	}
}

// What may be called a second time although it was delivered is counted, and
// nothing else.
func TestSuspectedDuplicatesAreCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		route bridge.Route
		took  time.Duration // of the first call
		path  string
		fault devbroker.Fault
		want  float64
	}{
		{"nothing goes wrong", testRoute("r", "q"), 20 * time.Second, "", devbroker.Fault{}, 0},
		{"lost lease in order", orderedRoute("r", "q"), 4 * time.Second, "/api/v1/pop/queue/q", devbroker.Fault{Lease: 3 * time.Second}, 1},
		{"cancel of the retry refused", testRoute("r", "q"), 20 * time.Second, "/api/v1/timers/queenbridge-retry.r/", devbroker.Fault{Status: 400, Body: "{}"}, 1},
		{"lost answer of the ack", testRoute("r", "q"), 20 * time.Second, "/api/v1/ack/batch", devbroker.Fault{LoseAnswer: true}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					if c.n == 1 {
						return after(ctx, tt.took, bridge.Response{Status: 200})
					}
					return bridge.Response{Status: 200}
				})
				left := 1
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if left > 0 && (r.URL.Path == tt.path || strings.HasSuffix(tt.path, "/") && strings.HasPrefix(r.URL.Path, tt.path)) {
						left--
						return tt.fault
					}
					return devbroker.Fault{}
				})
				p := k.start(nil, tt.route)
				k.push("q", "p", `{"a":1}`)
				k.wait(5 * time.Minute)
				if n := p.metric(t, "duplicates_suspected_total", "route=r"); n != tt.want {
					t.Errorf("duplicates_suspected_total = %v after %d calls, want %v", n, len(k.fn.all()), tt.want)
				}
				k.settledAll(tt.route)
				p.stop()
			})
		})
	}
}

// A call begins only while more than two renewals are left of its lease: one
// that waited for its slot while Queen did not answer could run beside the call
// of the next holder.
func TestNoCallBeginsOnAnAgeingLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		const quick, events = 50, 66
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			if len(k.fn.all()) <= quick { // so that more are popped ahead
				return after(ctx, time.Millisecond, bridge.Response{Status: 200})
			}
			return after(ctx, 15*time.Second, bridge.Response{Status: 200})
		})
		k.faults.set(func(req *http.Request) devbroker.Fault {
			if strings.HasPrefix(req.URL.Path, "/api/v1/lease") {
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		for n := range events {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, n))
		}
		p := k.start(func(c *dispatch.Config) { c.Targets[0].Concurrency = 1 }, r)
		k.wait(50 * time.Second)
		slow := k.fn.all()[quick:]
		if n := p.metric(t, "target_waiting", "target=fn"); n < 3 || len(slow) < 2 {
			t.Fatalf("%d slow calls, %v events wait: want some that do", len(slow), n)
		}
		for _, c := range slow {
			if at := c.at.Sub(slow[0].at); at >= 20*time.Second {
				t.Errorf("called after %v: less than 40s of the lease were left", at)
			}
		}
		k.faults.set(nil)
		k.wait(time.Hour)
		if n := len(k.fn.all()); n != events {
			t.Errorf("%d calls of %d events", n, events)
		}
		k.settledAll(r)
		p.stop()
	})
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
