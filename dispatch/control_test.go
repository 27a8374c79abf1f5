package dispatch_test

import (
	"context"
	"errors"
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

func TestTestFireCallsAsADeliveryWouldAndTouchesNoQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Filter = `event.body.n != 7`
		p := k.start(nil, r)
		k.wait(time.Second)
		requests := 0
		k.faults.set(func(r *http.Request) devbroker.Fault {
			polls := strings.HasPrefix(r.URL.Path, "/api/v1/pop") || r.URL.Path == "/api/v1/kv" && strings.Contains(readBody(r), "getPrefix")
			if !polls {
				requests++
			}
			return devbroker.Fault{}
		})
		event := func(body string) bridge.Event {
			return bridge.Event{ID: "e", ContentType: "application/json", Body: []byte(body)}
		}
		for _, tt := range []struct {
			name, body string
			answer     bridge.Response
			want       dispatch.Result
		}{
			{"delivered", `{"n":1}`, bridge.Response{Status: 204}, dispatch.Result{Outcome: bridge.Delivered, Status: 204}},
			{"retried", `{"n":2}`, bridge.Response{Status: 500, Body: []byte("oops")},
				dispatch.Result{Outcome: bridge.Retry, Status: 500, Delay: 5 * time.Second, Class: bridge.FailureHTTP5xx, Error: "answered 500", Body: []byte("oops")}},
			{"gone", `{"n":3}`, bridge.Response{Status: 410}, dispatch.Result{Outcome: bridge.Dead, Status: 410, Class: bridge.FailureHTTP4xx, Error: "answered 410"}},
			{"unreachable", `{"n":4}`, bridge.Response{Err: errors.New("refused"), Class: bridge.FailureConnect},
				dispatch.Result{Outcome: bridge.Hold, Delay: 5 * time.Second, Class: bridge.FailureConnect, Error: "refused"}},
			{"filtered", `{"n":7}`, bridge.Response{}, dispatch.Result{Filtered: true}},
		} {
			k.fn.answers(func(ctx context.Context, _ call) bridge.Response { return after(ctx, 30*time.Millisecond, tt.answer) })
			got, err := p.TestFire(k.Context(), "r", event(tt.body))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if !got.Filtered && got.Elapsed != 30*time.Millisecond {
				t.Errorf("%s: elapsed %v", tt.name, got.Elapsed)
			}
			got.Elapsed = 0
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
				t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
			}
		}
		calls := k.fn.all()
		if len(calls) != 4 || calls[0].Attempt != 1 || calls[0].DeliveryID == calls[1].DeliveryID {
			t.Errorf("calls = %+v", calls)
		}
		if got, err := p.TestFire(k.Context(), "r", event(`"no object"`)); err != nil || got.Class != bridge.FailureFilter || got.Outcome != bridge.Dead {
			t.Errorf("an event the filter fails on: %+v, %v", got, err)
		}
		k.fn.answers(func(context.Context, call) bridge.Response {
			return bridge.Response{Status: 200, Body: []byte(strings.Repeat("x", 10_000))}
		})
		if got, _ := p.TestFire(k.Context(), "r", event(`{"n":1}`)); len(got.Body) != 4<<10 || !got.Truncated {
			t.Errorf("%d bytes of a long answer, truncated %v", len(got.Body), got.Truncated)
		}
		if requests != 0 || k.timers("r") != 0 {
			t.Errorf("%d requests to Queen beside pops, want none", requests)
		}
		k.states(dispatch.StatePopping, p) // the 410 paused nothing
		if _, err := p.TestFire(k.Context(), "x", event(`1`)); !errors.Is(err, dispatch.ErrUnknown) {
			t.Errorf("an unknown route: %v", err)
		}
		p.stop()
	})
}

func TestTestFiresAreFewAtOnceAndEndWithTheirContext(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.fn.answers(slowly(time.Hour))
		p := k.start(nil, testRoute("r", "q"))
		k.wait(time.Second)
		ctx, cancel := context.WithCancel(k.Context())
		ended := make(chan error, 20)
		for range 20 {
			go func() {
				_, err := p.TestFire(ctx, "r", bridge.Event{Body: []byte("x")})
				ended <- err
			}()
		}
		k.wait(time.Second)
		if len(ended) != 12 || len(k.fn.all()) != 8 {
			t.Errorf("%d were refused, %d called; want 12 and 8", len(ended), len(k.fn.all()))
		}
		cancel()
		k.wait(time.Second)
		if len(ended) != 20 {
			t.Errorf("%d ended with their context", len(ended)-12)
		}
		for range 20 {
			if err := <-ended; err == nil {
				t.Error("no error")
			}
		}
		p.stop()
		if _, err := p.TestFire(k.Context(), "r", bridge.Event{}); err == nil {
			t.Error("a stopped dispatcher fires")
		}
	})
}

func TestRetryNowEndsTheHoldOfATarget(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.body == `{"a":1}` {
				return bridge.Response{Status: 429, Header: http.Header{"Retry-After": {"3000"}}}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		k.push("q", "p", `{"b":1}`)
		k.wait(5 * time.Minute)
		k.states(dispatch.StateHeld, p)
		if err := p.RetryNow("r"); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Second)
		if len(k.fn.of(`{"b":1}`)) != 1 {
			t.Error("the waiting event was not called after retry now")
		}
		if err := p.RetryNow("x"); !errors.Is(err, dispatch.ErrUnknown) {
			t.Errorf("RetryNow(x) = %v", err)
		}
		p.stop()
	})
}

func TestRetryNowLetsABrokenTargetBeTried(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		back := false
		k.fn.answers(func(context.Context, call) bridge.Response {
			if back {
				return bridge.Response{Status: 200}
			}
			return bridge.Response{Err: errors.New("refused"), Class: bridge.FailureConnect}
		})
		p := k.start(func(c *dispatch.Config) {
			c.Targets[0].Breaker = bridge.Breaker{Enabled: true, Failures: 2, Open: time.Hour, MaxOpen: 2 * time.Hour}
		}, r)
		for i := range 4 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"n":%d}`, i))
			k.wait(time.Second)
		}
		k.states(dispatch.StateBroken, p)
		back = true
		if err := p.RetryNow("r"); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Minute)
		k.states(dispatch.StatePopping, p)
		p.stop()
	})
}

func TestDrainingRouteRunsItsRetriesOnAndTakesNothingNew(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			switch {
			case c.body == `{"dead":1}`:
				return bridge.Response{Status: 422}
			case c.body == `{"slow":1}`:
				return after(ctx, 20*time.Second, bridge.Response{Status: 200})
			case c.n < 3:
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		if done, _, err := p.Drained(k.Context(), "x"); done || !errors.Is(err, dispatch.ErrUnknown) {
			t.Errorf("Drained(x) = %v, %v", done, err)
		}
		k.push("q", "p", `{"a":1}`, `{"dead":1}`, `{"slow":1}`)
		k.wait(time.Second)
		if err := p.Drain("r"); err != nil {
			t.Fatal(err)
		}
		k.push("q", "p", `{"later":1}`)
		k.wait(time.Second)
		k.states(dispatch.StateDraining, p)
		var said []string
		for range 300 {
			done, detail, err := p.Drained(k.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if done {
				break
			}
			if len(said) == 0 || said[len(said)-1] != detail {
				said = append(said, detail)
			}
			// The state outlives a change of the route.
			r.Concurrency = 3 + len(said)
			p.update(t, []bridge.Route{r}, "fn")
			k.wait(5 * time.Second)
		}
		if done, detail, _ := p.Drained(k.Context(), "r"); !done {
			t.Fatalf("not drained: %s", detail)
		}
		if len(said) < 1 {
			t.Errorf("it said %q on the way", said)
		}
		if n := len(k.fn.of(`{"a":1}`)); n != 3 {
			t.Errorf("%d calls of the failing event, want its retries too", n)
		}
		if n := len(k.fn.of(`{"later":1}`)); n != 0 || k.depth("q", "r") != 1 || len(k.graves("r")) != 1 {
			t.Errorf("the event that came later was called %d times, %d left, %d dead letters", n, k.depth("q", "r"), len(k.graves("r")))
		}
		if err := p.Update(nil, nil); err != nil {
			t.Fatal(err)
		}
		p.stop()
	})
}

// An ordered batch is let go when the route is deleted: no lease of the source
// lives on.
func TestDrainingRouteLetsItsOrderedBatchGo(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(slowly(25 * time.Second))
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`, `{"n":2}`)
		k.wait(time.Second)
		if err := p.Drain("r"); err != nil {
			t.Fatal(err)
		}
		extends := 0
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasSuffix(r.URL.Path, "/extend") {
				extends++
			}
			return devbroker.Fault{}
		})
		k.wait(2 * time.Minute)
		if n := len(k.fn.all()); n != 1 || extends != 0 {
			t.Errorf("%d calls, %d renewals; want the running call alone", n, extends)
		}
		if done, detail, err := p.Drained(k.Context(), "r"); !done || err != nil {
			t.Errorf("Drained = %q, %v", detail, err)
		}
		p.stop()
	})
}

func TestWhatADeletedRouteLeftIsListedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r, other := testRoute("gone", "q"), testRoute("other", "q9")
		k.fn.statuses(500, 500)
		configure := func(name string) {
			for _, q := range (bridge.Config{Routes: []bridge.Route{testRoute(name, "q")}}).ManagedQueues() {
				if err := k.client.Configure(k.Context(), queen.QueueOptions{Queue: q.Name, Namespace: q.Namespace, Task: q.Task, Lease: q.Lease}); err != nil {
					t.Fatal(err)
				}
			}
		}
		configure("gone")
		configure("other")
		p := k.start(nil, r, other)
		k.push("q", "p", `{"a":1}`, `{"b":1}`)
		k.wait(time.Second)
		p.update(t, []bridge.Route{other}, "fn")
		k.wait(2 * time.Hour)
		if !k.logs.has("deliveries that no route owns") || p.metric(t, "orphaned", "kind=retry") != 2 {
			t.Errorf("log or metric lack the orphans: %v", p.metric(t, "orphaned"))
		}
		got, err := dispatch.Orphans(k.Context(), k.client, []string{"other"})
		if err != nil || len(got) != 1 || got[0] != (dispatch.Orphan{Route: "gone", Retries: 2}) {
			t.Errorf("Orphans = %+v, %v", got, err)
		}
		p.update(t, []bridge.Route{other, r}, "fn")
		k.wait(2 * time.Hour)
		if n := len(k.fn.all()); n != 6 || p.metric(t, "orphaned", "kind=retry") != 0 {
			t.Errorf("%d calls, want the retries to go on; %v orphans", n, p.metric(t, "orphaned"))
		}
		k.settledAll(r)
		p.stop()
	})
}

// user-problems.md: "task dies, queue stops; DLQ never written".
func TestDyingRouteStopsNeitherItselfNorAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := testRoute("a", "qa"), testRoute("b", "qb")
		a.Target, a.Retry.MaxAttempts = "dies", 2
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.target == "dies" && !strings.Contains(c.body, "fine") {
				panic("the task dies")
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, a, b)
		k.push("qa", "p", `{"n":1}`, `{"fine":1}`)
		k.push("qb", "p", `{"n":2}`)
		k.wait(5 * time.Minute)
		k.push("qa", "p", `{"fine":2}`)
		k.wait(time.Minute)
		if len(k.fn.of(`{"fine":1}`)) != 1 || len(k.fn.of(`{"fine":2}`)) != 1 || len(k.fn.of(`{"n":2}`)) != 1 {
			t.Errorf("calls = %+v, want every event that does not kill", k.fn.all())
		}
		if g := k.graves("a"); len(g) != 1 || g[0].reason.Attempts != 2 {
			t.Errorf("dead letters = %+v, want the killing event after two attempts", g)
		}
		k.settledAll(a)
		k.settledAll(b)
		p.stop()
	})
}
