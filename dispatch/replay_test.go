package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// bodiesFrom is what was called from a call on.
func (f *function) bodiesFrom(from int) []string {
	var all []string
	for _, c := range f.all()[from:] {
		all = append(all, c.body)
	}
	return all
}

// keeps makes the queue keep what was consumed, as the bridge's own do.
func (k *kit) keeps(queueName string, d time.Duration) {
	k.Helper()
	err := k.client.Configure(k.Context(), queen.QueueOptions{Queue: queueName, Lease: time.Minute, RetryLimit: 1000, Retention: d, CompletedRetention: d})
	if err != nil {
		k.Fatal(err)
	}
}

func (k *kit) replay(r bridge.Route, since time.Time) dispatch.ReplayResult {
	k.Helper()
	result, err := k.operator().Replay(k.Context(), r, since)
	if err != nil {
		k.Fatalf("Replay: %v", err)
	}
	return result
}

func pauseRoute(k *kit, p *process, name string) {
	k.Helper()
	if err := p.PauseRoute(k.Context(), name, pauseBy("me")); err != nil {
		k.Fatal(err)
	}
}

func resumeRoute(k *kit, p *process, name string) {
	k.Helper()
	if err := p.ResumeRoute(k.Context(), name); err != nil {
		k.Fatal(err)
	}
}

func TestReplayDeliversAgainFromATime(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			k.keeps("q", 24*time.Hour)
			r, other := routeOf(ordering), testRoute("other", "q")
			p := k.start(nil, r, other)
			k.push("q", "a", "1")
			k.wait(time.Hour)
			since := time.Now()
			k.push("q", "a", "2", "3")
			k.wait(time.Hour)
			k.push("q", "a", "4")
			k.wait(time.Minute)
			before := k.fn.all()
			if len(before) != 8 { // two routes
				t.Fatalf("%d calls, want 8", len(before))
			}
			pauseRoute(k, p, "r")
			k.push("q", "a", "5")
			k.wait(time.Minute)
			if got := k.replay(r, since); got != (dispatch.ReplayResult{Partitions: 1, Pending: 4}) {
				t.Errorf("Replay = %+v", got)
			}
			p.stop() // a restart in between
			p = k.start(nil, r, other)
			k.wait(time.Minute)
			if n := len(k.fn.all()); n != 9 {
				t.Errorf("%d calls while the route is paused, want that of the other route", n-8)
			}
			resumeRoute(k, p, "r")
			k.wait(time.Minute)
			again := k.fn.bodiesFrom(9)
			if ordering == bridge.OrderingNone {
				slices.Sort(again)
			}
			if d := cmp.Diff([]string{"2", "3", "4", "5"}, again); d != "" {
				t.Errorf("called again (-want +got):\n%s", d)
			}
			for _, c := range k.fn.all()[9:] {
				if first := k.fn.of(c.body)[0]; c.body != "5" && !slices.ContainsFunc(before, func(b call) bool { return b.body == c.body && b.DeliveryID == c.DeliveryID }) {
					t.Errorf("%s: webhook-id %s, before %s", c.body, c.DeliveryID, first.DeliveryID)
				}
			}
			k.settledAll(r)
			k.settledAll(other)
		})
	})
}

// A seek to the time would skip what was never delivered.
func TestReplayLosesNothingThatIsPending(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.keeps("q", 24*time.Hour)
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.push("q", "old", "1")
		k.push("q", "behind", "10")
		k.wait(time.Minute)
		pauseRoute(k, p, "r")
		k.wait(time.Minute)
		k.push("q", "behind", "11")
		k.push("q", "unseen", "20")
		k.wait(3 * time.Hour)
		k.push("q", "old", "2")
		k.push("q", "behind", "12")
		k.wait(time.Minute)
		calls := len(k.fn.all())
		if got := k.replay(r, time.Now().Add(-time.Hour)); got.Pending != 4 {
			t.Errorf("Replay = %+v, want the 4 that are pending", got)
		}
		if got := k.replay(r, time.Time{}); got.Pending != 6 {
			t.Errorf("Replay from the beginning = %+v, want 6 pending", got)
		}
		resumeRoute(k, p, "r")
		k.wait(time.Minute)
		got := k.fn.bodiesFrom(calls)
		slices.Sort(got)
		if d := cmp.Diff([]string{"1", "10", "11", "12", "2", "20"}, got); d != "" {
			t.Errorf("called (-want +got):\n%s", d)
		}
		k.settledAll(r)
	})
}

// Where the clocks may disagree about which is older, both are kept.
func TestReplayNearAPendingEventGoesBehindNeither(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-2 * time.Second, 2 * time.Second} {
		inBubble(t, nil, func(k *kit) {
			k.keeps("q", 24*time.Hour)
			r := testRoute("r", "q")
			p := k.start(nil, r)
			k.push("q", "a", "1")
			k.wait(10 * time.Minute)
			k.push("q", "a", "2")
			k.wait(2 * time.Second)
			pauseRoute(k, p, "r")
			k.wait(5 * time.Second)
			k.push("q", "a", "3")
			since := time.Now().Add(ahead)
			k.wait(time.Minute)
			calls := len(k.fn.all())
			for range 5 { // repeated, it does not go on to move back
				k.replay(r, since)
			}
			resumeRoute(k, p, "r")
			k.wait(time.Minute)
			if d := cmp.Diff([]string{"2", "3"}, k.fn.bodiesFrom(calls)); d != "" {
				t.Errorf("since %v (-want +got):\n%s", ahead, d)
			}
		})
	}
}

func TestReplayIsRefusedWhileEventsAreUnderWay(t *testing.T) {
	t.Parallel()
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		inBubble(t, nil, func(k *kit) {
			r := routeOf(ordering)
			r.DetachAfter = time.Minute
			k.fn.answers(func(ctx context.Context, c call) bridge.Response {
				if c.n == 1 {
					return after(ctx, 25*time.Second, bridge.Response{Status: 200})
				}
				return bridge.Response{Status: 200}
			})
			p := k.start(nil, r)
			k.push("q", "a", "1")
			k.wait(time.Second)
			_, err := k.operator().Replay(k.Context(), r, time.Time{})
			if !errors.Is(err, dispatch.ErrReplayRefused) || !strings.Contains(err.Error(), "pause it first") {
				t.Errorf("%s: Replay of a running route: %v", ordering, err)
			}
			pauseRoute(k, p, "r")
			_, err = k.operator().Replay(k.Context(), r, time.Time{})
			if !errors.Is(err, dispatch.ErrReplayRefused) || !strings.Contains(err.Error(), "events of 1 partitions are under way") {
				t.Errorf("%s: Replay during a call: %v", ordering, err)
			}
			if got := k.replay(r, time.Time{}); got.Pending != 1 { // waits for the call
				t.Errorf("%s: Replay = %+v", ordering, got)
			}
			if n := len(k.fn.all()); n != 1 {
				t.Errorf("%s: %d calls, want 1", ordering, n)
			}
			resumeRoute(k, p, "r")
			k.wait(time.Minute)
			if n := len(k.fn.all()); n != 2 {
				t.Errorf("%s: %d calls after the replay, want 2", ordering, n)
			}
			k.settledAll(r)
		})
	}
}

// The count of ordering partition is that of the event that failed last.
func TestReplayBeginsTheAttemptsAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedRoute("r", "q")
		r.Retry.MaxAttempts = 2
		var well bool
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if well && c.n > 3 {
				return bridge.Response{Status: 200}
			}
			return bridge.Response{Status: 500}
		})
		p := k.start(nil, r)
		k.push("q", "a", "1")
		k.wait(time.Minute)
		if len(k.fn.all()) != 2 || len(k.graves("r")) != 1 {
			t.Fatalf("%d calls, %d dead letters, want 2 and 1", len(k.fn.all()), len(k.graves("r")))
		}
		well = true
		pauseRoute(k, p, "r")
		k.replay(r, time.Time{})
		resumeRoute(k, p, "r")
		k.wait(time.Minute)
		if len(k.fn.all()) != 4 || len(k.graves("r")) != 1 {
			t.Errorf("%d calls, %d dead letters, want 4 and 1", len(k.fn.all()), len(k.graves("r")))
		}
		k.settledAll(r)
	})
}

func TestReplayOfWhatRetentionHasCut(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.keeps("q", time.Hour)
		r := testRoute("r", "q")
		if got := k.paused(r).replayed(time.Time{}); got != (dispatch.ReplayResult{}) {
			t.Errorf("Replay of an empty queue = %+v", got)
		}
		p := k.start(nil, r)
		resumeRoute(k, p, "r")
		k.push("q", "a", "1")
		k.push("q", "gone", "10")
		k.wait(3 * time.Hour)
		k.push("q", "a", "2")
		k.wait(30 * time.Minute)
		calls := len(k.fn.all())
		pauseRoute(k, p, "r")
		if got := k.replay(r, time.Time{}); got.Pending != 1 {
			t.Errorf("Replay = %+v, want the one that is left", got)
		}
		resumeRoute(k, p, "r")
		k.wait(time.Minute)
		if d := cmp.Diff([]string{"2"}, k.fn.bodiesFrom(calls)); d != "" {
			t.Errorf("called (-want +got):\n%s", d)
		}
		k.settledAll(r)
	})
}

// pausedRoute is a route that nobody dispatches.
type pausedRoute struct {
	*kit
	r bridge.Route
}

func (k *kit) paused(r bridge.Route) pausedRoute {
	k.Helper()
	if err := dispatch.NewPauses(k.client).PauseRoute(k.Context(), r.Name, pauseBy("me")); err != nil {
		k.Fatal(err)
	}
	return pausedRoute{k, r}
}

func (p pausedRoute) replayed(since time.Time) dispatch.ReplayResult {
	p.Helper()
	return p.replay(p.r, since)
}

// A lost answer: the seek is made again, and the replay may be repeated.
func TestReplayThatBreaksOffIsRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.keeps("q", 24*time.Hour)
		r := testRoute("r", "q")
		p := k.start(nil, r)
		for i := range 20 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprint(i))
		}
		k.wait(time.Minute)
		pauseRoute(k, p, "r")
		k.wait(time.Minute)
		k.push("q", "unseen", "99") // so each partition is moved by itself
		calls := len(k.fn.all())
		k.faults.times("/api/v1/consumer-groups/r/queues/q/partitions/p7/seek", 1000, devbroker.Fault{LoseAnswer: true})
		if _, err := k.operator().Replay(k.Context(), r, time.Now().Add(-time.Hour)); err == nil {
			t.Error("Replay through faults: no error")
		}
		k.faults.set(nil)
		if got := k.replay(r, time.Now().Add(-time.Hour)); got.Pending != 21 {
			t.Errorf("Replay = %+v, want 21 pending", got)
		}
		resumeRoute(k, p, "r")
		k.wait(time.Minute)
		if n := len(k.fn.all()) - calls; n != 21 {
			t.Errorf("%d calls, want 21", n)
		}
		k.settledAll(r)
	})
}
