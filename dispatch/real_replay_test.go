package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

func (k *realKit) operator() *dispatch.Operator {
	k.Helper()
	o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: k.client, Accepts: func(context.Context, string) error { return nil }})
	if err != nil {
		k.Fatal(err)
	}
	return o
}

// The same on a real Queen, which has a cache of what is pending where: with
// many partitions, a restart in between, and one that is behind.
func TestRealReplay(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		k := newRealKit(t)
		r := k.route(ordering)
		pauses, o := dispatch.NewPauses(k.client), k.operator()
		stop := k.start(k.client, r)
		const partitions = 30
		for i := range partitions {
			k.push(r.Queue, fmt.Sprint("p", i), fmt.Sprintf(`{"first":%d}`, i))
		}
		k.until("the first are delivered", 60*time.Second, func() bool { return len(k.fn.all()) == partitions && k.empty(r) })
		time.Sleep(2 * time.Second) //nolint:forbidigo // what Queen stored is told apart by its clock
		since := time.Now().Add(-time.Second)
		for i := range partitions {
			k.push(r.Queue, fmt.Sprint("p", i), fmt.Sprintf(`{"second":%d}`, i), fmt.Sprintf(`{"third":%d}`, i))
		}
		k.until("all are delivered", 60*time.Second, func() bool { return len(k.fn.all()) == 3*partitions && k.empty(r) })
		if _, err := o.Replay(t.Context(), r, since); !errors.Is(err, dispatch.ErrReplayRefused) {
			t.Errorf("Replay of a running route: %v", err)
		}
		if err := pauses.PauseRoute(t.Context(), r.Name, dispatch.PauseInfo{By: "me"}); err != nil {
			t.Fatal(err)
		}
		got, err := o.Replay(t.Context(), r, since)
		if want := (dispatch.ReplayResult{Partitions: partitions, Pending: 2 * partitions}); err != nil || got != want {
			t.Fatalf("Replay = %+v, %v, want %+v", got, err, want)
		}
		k.push(r.Queue, "unseen", `{"unseen":0}`) // now each partition is moved by itself
		if got, err := o.Replay(t.Context(), r, time.Time{}); err != nil || got.Pending != 3*partitions+1 {
			t.Fatalf("Replay from the beginning = %+v, %v, want %d pending", got, err, 3*partitions+1)
		}
		stop()
		k.start(k.client, r)
		if err := pauses.ResumeRoute(t.Context(), r.Name); err != nil {
			t.Fatal(err)
		}
		k.until("all are delivered again", 90*time.Second, func() bool { return len(k.fn.all()) >= 6*partitions+1 && k.empty(r) })
		for i := range partitions {
			k.sameTwice(fmt.Sprintf(`{"first":%d}`, i), fmt.Sprintf(`{"second":%d}`, i), fmt.Sprintf(`{"third":%d}`, i))
		}
		if ordering == bridge.OrderingPartition {
			var p3 []string
			for _, body := range k.fn.bodiesFrom(3 * partitions) {
				if slices.Contains([]string{`{"first":3}`, `{"second":3}`, `{"third":3}`}, body) {
					p3 = append(p3, body)
				}
			}
			if d := cmp.Diff([]string{`{"first":3}`, `{"second":3}`, `{"third":3}`}, p3); d != "" {
				t.Errorf("order in a partition (-want +got):\n%s", d)
			}
		}
	})
}

// sameTwice fails unless each body was called twice under one id.
func (k *realKit) sameTwice(bodies ...string) {
	k.Helper()
	for _, body := range bodies {
		calls := k.fn.of(body)
		if len(calls) != 2 || calls[0].DeliveryID != calls[1].DeliveryID {
			k.Errorf("%s: %d calls, want 2 with one webhook-id", body, len(calls))
		}
	}
}

// A failing event under way when its leases are taken is not lost: the settle
// is refused and it comes again.
func TestRealSeekDuringACall(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	r.DetachAfter = time.Minute
	k.fn.answers(func(ctx context.Context, c call) bridge.Response {
		if c.n == 1 {
			return after(ctx, 5*time.Second, bridge.Response{Status: 500})
		}
		return bridge.Response{Status: 200}
	})
	k.start(k.client, r)
	k.push(r.Queue, "p", `{"a":1}`)
	k.until("the call begins", 30*time.Second, func() bool { return len(k.fn.all()) == 1 })
	if err := k.seek(r); err != nil {
		t.Fatal(err)
	}
	k.until("it is called again", 60*time.Second, func() bool { return len(k.fn.all()) >= 2 && k.empty(r) })
}

// seek takes every lease of a route's queue, as another client may.
func (k *realKit) seek(r bridge.Route) error {
	return k.client.Seek(k.Context(), queen.SeekRequest{Queue: r.Queue, Group: r.Group, At: time.Unix(0, 0)})
}
