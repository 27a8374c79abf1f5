package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// update fails the test where the change is refused.
func (p *process) update(t testing.TB, routes []bridge.Route, targets ...string) {
	t.Helper()
	all := make([]bridge.Target, len(targets))
	for i, name := range targets {
		all[i] = testTarget(name)
	}
	if err := p.Update(routes, all); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

// labelled are the metrics that have a label of this value.
func (p *process) labelled(t testing.TB, name, value string) (names []string) {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == name && l.GetValue() == value {
					names = append(names, f.GetName())
				}
			}
		}
	}
	return names
}

// slowly answers 200 after d.
func slowly(d time.Duration) func(context.Context, call) bridge.Response {
	return func(ctx context.Context, _ call) bridge.Response { return after(ctx, d, bridge.Response{Status: 200}) }
}

// user-problems.md: "reload loses messages / restarts all".
func TestUpdateLosesNothingAndRestartsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		same, changes, goes := testRoute("same", "q1"), testRoute("changes", "q2"), testRoute("goes", "q3")
		same.DetachAfter, changes.DetachAfter, goes.DetachAfter = 0, 0, 0
		k.fn.answers(slowly(10 * time.Second))
		same.Concurrency, changes.Concurrency, goes.Concurrency = 2, 2, 2
		changes.Target, goes.Target = "two", "three"
		p := k.start(nil, same, changes, goes)
		var pops atomic.Int32
		for _, q := range []string{"q1", "q2", "q3"} {
			k.push(q, "p", fmt.Sprintf(`{"%s":1}`, q), fmt.Sprintf(`{"%s":2}`, q), fmt.Sprintf(`{"%s":3}`, q))
		}
		k.wait(2 * time.Second)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasPrefix(r.URL.Path, "/api/v1/pop/queue/q1") {
				pops.Add(1)
			}
			return devbroker.Fault{}
		})
		begun := len(k.fn.all())
		changes.Target = "other"
		p.update(t, []bridge.Route{same, changes}, "fn", "other")
		if s := p.Status(); len(s) != 2 || s[1].State != dispatch.StateStarting || s[0].State != dispatch.StatePopping {
			t.Errorf("status right after the update = %+v", s)
		}
		k.wait(time.Second)
		if n := pops.Load(); n != 0 {
			t.Errorf("the route that did not change popped %d times anew", n)
		}
		if n := len(k.fn.all()); n != begun {
			t.Errorf("%d calls, want the %d of before to go on", n, begun)
		}
		k.wait(5 * time.Minute)
		for _, q := range []string{"q1", "q2"} {
			for n := 1; n <= 3; n++ {
				if calls := k.fn.of(fmt.Sprintf(`{"%s":%d}`, q, n)); len(calls) != 1 || calls[0].Attempt != 1 {
					t.Errorf("%s %d: calls %+v, want one", q, n, calls)
				}
			}
		}
		k.settledAll(same)
		k.settledAll(changes)
		called := 0
		for n := 1; n <= 3; n++ {
			called += len(k.fn.of(fmt.Sprintf(`{"q3":%d}`, n)))
		}
		waits := k.depth("q3", "goes") + k.timers("goes") + k.depth(bridge.RetryQueue("goes"), "goes")
		if called+waits != 3 {
			t.Errorf("the route that went called %d of 3 events and left %d", called, waits)
		}
		if got := p.labelled(t, "route", "goes"); len(got) > 0 || p.metric(t, "popped_total", "route=same") == 0 {
			t.Errorf("metrics of the route that went are still there: %v; or another's went", got)
		}
		k.push("q2", "p", `{"later":1}`)
		k.wait(time.Minute)
		if calls := k.fn.of(`{"later":1}`); len(calls) != 1 || calls[0].target != "other" {
			t.Errorf("calls = %+v, want one of the new target", calls)
		}
		p.stop()
	})
}

// closing is a Sender that tells when it is closed.
type closing struct {
	sender
	closed chan struct{}
}

func (c closing) Close() { close(c.closed) } // panics when closed twice

func TestReplacedSenderIsClosedAfterItsLastCall(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		var made []closing
		k.fn.answers(slowly(20 * time.Second))
		p := k.start(func(c *dispatch.Config) {
			c.NewSender = func(t bridge.Target) (dispatch.Sender, error) {
				s := closing{sender{k.fn, t.HTTP.URL}, make(chan struct{})}
				made = append(made, s)
				return s, nil
			}
		}, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		next := testTarget("fn")
		next.HTTP = &bridge.HTTPTarget{URL: "http://new", Timeout: 30 * time.Second}
		if err := p.Update([]bridge.Route{r}, []bridge.Target{next}); err != nil {
			t.Fatal(err)
		}
		k.push("q", "other", `{"b":1}`)
		k.wait(time.Second)
		if calls := k.fn.of(`{"b":1}`); len(calls) != 1 || calls[0].target != "http://new" {
			t.Errorf("calls = %+v, want one of the new sender at once", calls)
		}
		isClosed := func(n int) bool {
			select {
			case <-made[n].closed:
				return true
			default:
				return false
			}
		}
		if isClosed(0) {
			t.Error("the old sender was closed under its call")
		}
		k.wait(time.Minute)
		if !isClosed(0) || isClosed(1) {
			t.Errorf("closed: old %v, new %v; want the old one", isClosed(0), isClosed(1))
		}
		if err := p.Update(nil, nil); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Minute)
		if !isClosed(1) {
			t.Error("the sender of a target that is gone was not closed")
		}
		p.update(t, []bridge.Route{r}, "fn")
		p.stop()
		if len(made) != 3 || !isClosed(2) {
			t.Errorf("%d senders, want 3, all closed by the stop", len(made))
		}
	})
}

func TestUpdateRefusesWithEveryProblemAndChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(func(c *dispatch.Config) {
			c.NewSender = func(t bridge.Target) (dispatch.Sender, error) {
				if t.Name == "broken" {
					return nil, fmt.Errorf("cannot be made")
				}
				return sender{k.fn, t.Name}, nil
			}
		}, r)
		twin, lost, bad := testRoute("twin", "q"), testRoute("lost", "q4"), testRoute("bad", "q5")
		twin.Group, lost.Target, bad.Filter = "r", "nobody", "event.("
		err := p.Update([]bridge.Route{r, twin, lost, bad, r}, []bridge.Target{testTarget("fn"), testTarget("broken"), testTarget("fn")})
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{"target broken: cannot be made", "target fn: there is another", "route twin: route r reads", `route lost: there is no target "nobody"`, "route bad: filter", "route r: there is another"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error lacks %q:\n%v", want, err)
			}
		}
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		if s := p.Status(); len(s) != 1 || s[0].State != dispatch.StatePopping || len(k.fn.all()) != 1 {
			t.Errorf("status %+v, %d calls", s, len(k.fn.all()))
		}
		p.stop()
		if err := p.Update(nil, nil); err == nil {
			t.Error("a stopped dispatcher took an update")
		}
	})
}

func TestLastOfManyUpdatesWins(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q0")
		k.fn.answers(slowly(100 * time.Millisecond))
		p := k.start(nil, r)
		var wg sync.WaitGroup
		for i := range 20 {
			k.push(fmt.Sprint("q", i%4), fmt.Sprint("p", i), fmt.Sprintf(`{"n":%d}`, i))
			wg.Go(func() {
				r := r
				r.Queue, r.Target = fmt.Sprint("q", i%4), fmt.Sprint("t", i%3)
				p.update(t, []bridge.Route{r}, "t0", "t1", "t2")
			})
		}
		wg.Wait()
		for i := range 4 { // all are read in the end
			r.Queue, r.Target = fmt.Sprint("q", i), "last"
			p.update(t, []bridge.Route{r}, "last")
			k.wait(2 * time.Minute)
		}
		seen := map[string]int{}
		for _, c := range k.fn.all() {
			seen[c.body]++
		}
		for i := range 20 {
			if n := seen[fmt.Sprintf(`{"n":%d}`, i)]; n != 1 {
				t.Errorf("event %d was called %d times, want once", i, n)
			}
		}
		if s := p.Status(); len(s) != 1 || s[0].Target != "last" || s[0].State != dispatch.StatePopping {
			t.Errorf("status = %+v", s)
		}
		p.stop()
	})
}

// A new route's queues are set up before its first pop; the process may end
// meanwhile.
func TestAddedRouteBeginsOnceItIsSetUp(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r, more := testRoute("r", "q"), testRoute("more", "q")
		allow := make(chan struct{})
		var setUp []string
		p := k.start(func(c *dispatch.Config) {
			c.Setup = func(ctx context.Context, r bridge.Route) error {
				setUp = append(setUp, r.Name)
				select {
				case <-allow:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		p.update(t, []bridge.Route{r, more}, "fn")
		k.wait(time.Minute)
		if n := len(k.fn.of(`{"a":1}`)); n != 1 || p.Status()[1].State != dispatch.StateStarting {
			t.Errorf("%d calls, status %+v; want the old route's alone", n, p.Status()[1])
		}
		close(allow)
		k.wait(time.Minute)
		if n := len(k.fn.of(`{"a":1}`)); n != 2 || len(setUp) != 1 || setUp[0] != "more" {
			t.Errorf("%d calls, set up %v", n, setUp)
		}
		allow = make(chan struct{})
		p.update(t, []bridge.Route{r, more, testRoute("third", "q")}, "fn")
		synctest.Wait()
		p.stop()
	})
}

// A route that is added before the dispatcher runs is set up, too: whoever made
// the dispatcher knew only the routes it was made with.
func TestRouteAddedBeforeRunIsSetUp(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r, more := testRoute("r", "q"), testRoute("more", "q")
		var setUp []string
		targets := []bridge.Target{testTarget("fn")}
		d, err := dispatch.New(dispatch.Config{
			Routes: []bridge.Route{r}, Targets: targets, Queen: k.client,
			NewSender: func(t bridge.Target) (dispatch.Sender, error) { return sender{k.fn, t.Name}, nil },
			Setup: func(_ context.Context, r bridge.Route) error {
				setUp = append(setUp, r.Name)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Update([]bridge.Route{r, more}, targets); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(k.Context()))
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		k.wait(time.Minute)
		stop()
		if err := <-done; err != nil || len(setUp) != 1 || setUp[0] != "more" {
			t.Errorf("Run = %v, set up %v, want more", err, setUp)
		}
	})
}

// Nothing begins after a stop, also where slots are free.
func TestStopEndsAnOrderedBatchBetweenTwoCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		k.fn.answers(slowly(2 * time.Second))
		p := k.start(nil, r)
		for i := range 10 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(5 * time.Second)
		begun := len(k.fn.all())
		p.stop()
		if n := len(k.fn.all()); n != begun {
			t.Errorf("%d calls began after the stop", n-begun)
		}
		k.start(nil, r)
		k.wait(time.Minute)
		for i := range 10 {
			if n := len(k.fn.of(fmt.Sprintf(`{"n":%d}`, i))); n != 1 {
				t.Errorf("event %d was called %d times, want once", i, n)
			}
		}
	})
}
