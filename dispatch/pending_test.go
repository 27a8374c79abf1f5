package dispatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// pendingOf is what a dispatcher says of a route's retries; -1: nothing yet.
func pendingOf(p *process, route string) int {
	for _, s := range p.Status() {
		if s.Route == route && s.Retries != nil {
			return *s.Retries
		}
	}
	return -1
}

func TestPendingRetriesAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		failing, idle := testRoute("r", "q"), testRoute("idle", "q2")
		failing.Retry.Backoff = []time.Duration{time.Hour}
		k.fn.statuses(500)
		p := k.start(nil, failing, idle)
		for i := range 7 {
			k.push("q", "p", fmt.Sprint(i))
		}
		k.wait(3 * time.Minute)
		if n := pendingOf(p, "r"); n != 7 || p.metric(t, "retries_pending", "route=r") != 7 {
			t.Errorf("%d retries pending, metric %v, want 7", n, p.metric(t, "retries_pending", "route=r"))
		}
		if n := pendingOf(p, "idle"); n != 0 {
			t.Errorf("%d retries pending of an idle route, want 0", n)
		}
		lists := 0
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/timers/") {
				lists++
				return devbroker.Fault{Status: 500}
			}
			return devbroker.Fault{}
		})
		k.wait(20 * time.Minute)
		if n := pendingOf(p, "r"); n != 7 {
			t.Errorf("%d retries pending while Queen does not list them, want the 7 of before", n)
		}
		if k.faults.set(nil); lists < 20 || lists > 120 { // each may be tried again
			t.Errorf("%d lists in 20 minutes of two routes", lists)
		}
		k.fn.statuses(200)
		k.wait(time.Hour)
		if n := pendingOf(p, "r"); n != 0 {
			t.Errorf("%d retries pending after the last was delivered, want 0", n)
		}
		if err := p.Update([]bridge.Route{idle}, []bridge.Target{testTarget("fn")}); err != nil {
			t.Fatal(err)
		}
		k.wait(5 * time.Minute)
		if !p.has("retries_pending", "idle") || p.has("retries_pending", "r") {
			t.Error("a route that is gone is still counted")
		}
	})
}

// has says whether a metric has a route.
func (p *process) has(name, route string) bool {
	families, _ := p.reg.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "queenbridge_dispatch_"+name && l.GetName() == "route" && l.GetValue() == route {
					return true
				}
			}
		}
	}
	return false
}

func TestPendingRetriesAreCountedUpToABound(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		const many = dispatch.MaxRetriesPending + 100
		for from := 0; from < many; from += 100 {
			timers := make([]queen.Timer, 100)
			for i := range timers {
				key := fmt.Sprint("k", from+i)
				timers[i] = queen.Timer{Queue: bridge.RetryQueue("r"), Key: key, Partition: "0", TransactionID: key, Delay: 24 * time.Hour, Payload: []byte("{}")}
			}
			if _, err := k.client.Schedule(k.Context(), timers); err != nil {
				t.Fatal(err)
			}
		}
		p := k.start(nil, r)
		k.wait(3 * time.Minute)
		if n := pendingOf(p, "r"); n != dispatch.MaxRetriesPending {
			t.Errorf("%d retries pending, want %d", n, dispatch.MaxRetriesPending)
		}
	})
}

func TestCountsOfManyRoutesAreSpread(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		var routes []bridge.Route
		for i := range 30 {
			routes = append(routes, testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i)))
		}
		perSecond := map[int64]int{}
		lists := 0
		p := k.start(nil, routes...)
		k.wait(2 * time.Minute)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/timers/") {
				lists++
				perSecond[time.Now().Unix()]++
			}
			return devbroker.Fault{}
		})
		k.wait(10 * time.Minute)
		k.faults.set(nil)
		if lists < 250 || lists > 350 {
			t.Errorf("%d lists of 30 routes in 10 minutes, want about 300", lists)
		}
		for at, n := range perSecond {
			if n > 3 {
				t.Errorf("%d lists in second %d", n, at)
			}
		}
		p.stop()
	})
}
