package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// pops counts the pops of queues of the bridge's own.
func (k *kit) pops() *atomic.Int64 {
	var n atomic.Int64
	k.faults.set(func(r *http.Request) devbroker.Fault {
		if strings.HasPrefix(r.URL.Path, "/api/v1/pop/queue/queenbridge-") {
			n.Add(1)
		}
		return devbroker.Fault{}
	})
	return &n
}

// A thousand routes with nothing to do look for retries and dead letters
// rarely: their long polls alone kept a Queen 1.3.0 busy until pops failed.
func TestIdleRoutesAskRarelyForWhatTheyDoNotExpect(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		var routes []bridge.Route
		for i := range 100 {
			routes = append(routes, testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i)))
		}
		n := k.pops()
		p := k.start(func(c *dispatch.Config) { c.Park(50) }, routes...)
		k.wait(time.Minute)
		before := n.Load()
		k.wait(10 * time.Minute)
		if each := float64(n.Load()-before) / 100 / 2; each > 122 || each < 100 {
			t.Errorf("%v pops of each seldom queue in 10 minutes, want one in 5 s", each)
		}
		p.stop()
	})
}

// Retries and dead letters of this process are due when they are due, though
// nobody polls for them otherwise.
func TestExpectedRetriesAndDeadLettersComeOnTime(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.Backoff = []time.Duration{5 * time.Second, 10 * time.Minute}
		r.Retry.MaxAttempts = 3
		k.fn.statuses(500, 500, 500)
		routes := []bridge.Route{r}
		for i := range 3000 { // a look each minute
			routes = append(routes, testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i)))
		}
		for i := range routes[1:] {
			routes[1+i].Paused = true
		}
		p := k.start(nil, routes...)
		k.wait(2 * time.Minute)
		k.push("q", "p", `{"a":1}`)
		k.wait(11 * time.Minute)
		calls := k.fn.all()
		if len(calls) != 3 {
			t.Fatalf("%d calls, want 3", len(calls))
		}
		for i, want := range r.Retry.Backoff {
			if late := calls[i+1].at.Sub(calls[i].at) - want; late < 0 || late > 2*time.Second {
				t.Errorf("retry %d was %s late", i+1, late)
			}
		}
		if len(k.graves("r")) != 1 {
			t.Error("no dead letter 50 s after the last attempt")
		}
		p.stop()
	})
}

// What a process left that died is found by others.
func TestRetriesOfADeadProcessAreFoundByALook(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 500} })
		park := func(c *dispatch.Config) { c.Park(0) }
		first := k.start(park, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		first.stop()
		k.fn.statuses()
		second := k.start(park, r)
		k.wait(10 * time.Second)
		k.settledAll(r)
		second.stop()
	})
}

// A changed route still expects what the route before it scheduled.
func TestChangedRouteExpectsItsRetries(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		routes := []bridge.Route{r}
		for i := range 3000 {
			other := testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i))
			other.Paused = true
			routes = append(routes, other)
		}
		k.fn.statuses(500)
		p := k.start(nil, routes...)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		routes[0].Concurrency = 7
		if err := p.Update(routes, []bridge.Target{testTarget("fn")}); err != nil {
			t.Fatal(err)
		}
		k.wait(7 * time.Second)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls 7 s after a failure to be retried after 5 s, want 2", n)
		}
		p.stop()
	})
}
