package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func orderedBatch(size int) bridge.Route {
	r := orderedRoute("r", "q")
	r.Batch.Size = size
	r.Retry.MaxAttempts = 20
	return r
}

// bodies are the events of all calls to a target, in order.
func (f *function) bodies() (bodies []string) {
	for _, c := range f.all() {
		bodies = append(bodies, c.body)
	}
	return bodies
}

// pushRow pushes {"n":0} … {"n":n-1} to one partition.
func (k *kit) pushRow(partition string, n int) {
	k.Helper()
	payloads := make([]string, n)
	for i := range payloads {
		payloads[i] = fmt.Sprintf(`{"%s":%d}`, partition, i)
	}
	k.push("q", partition, payloads...)
}

func TestOrderedBatchIsAPrefixOfOnePartition(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedBatch(4)
		for _, partition := range []string{"a", "b", "c"} {
			k.pushRow(partition, 6)
		}
		p := k.start(nil, r)
		k.wait(5 * time.Second)
		perPartition := map[string][]string{}
		for _, c := range k.fn.all() {
			for _, e := range c.events(t) {
				if !strings.HasPrefix(e, `{"`+c.Partition+`"`) {
					t.Errorf("%s in a call of partition %q", e, c.Partition)
				}
			}
			perPartition[c.Partition] = append(perPartition[c.Partition], c.body)
		}
		for partition, bodies := range perPartition {
			want := []string{strings.ReplaceAll(`[{"x":0},{"x":1},{"x":2},{"x":3}]`, "x", partition), strings.ReplaceAll(`[{"x":4},{"x":5}]`, "x", partition)}
			if diff := cmp.Diff(want, bodies); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

// user-problems: "FIFO partial batch: later items processed, then replayed; or
// other groups failed needlessly" and "FIFO out of order after a failure".
func TestFirstReportedFailureHoldsThePartitionAndOnlyIt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedBatch(6)
		r.ReportItemFailures = true
		failures := 2
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			events := c.events(t)
			i := slices.Index(events, `{"a":2}`)
			if i < 0 || failures == 0 {
				return bridge.Response{Status: 200}
			}
			failures--
			ids := []string{}
			for ; i < len(events); i++ { // the first failure and all behind it: what batch processors for FIFO report
				ids = append(ids, fmt.Sprintf(`{"itemIdentifier":"%d"}`, i))
			}
			return bridge.Response{Status: 200, Body: []byte(`{"batchItemFailures":[` + strings.Join(ids, ",") + `]}`)}
		})
		k.pushRow("a", 5)
		k.pushRow("b", 5)
		p := k.start(nil, r)
		k.wait(time.Minute)
		seen := k.fn.seen(t)
		for _, e := range []string{`{"a":0}`, `{"a":1}`, `{"b":0}`, `{"b":4}`} {
			if seen[e] != 1 {
				t.Errorf("%s was in %d calls, want 1: it was delivered before", e, seen[e])
			}
		}
		if seen[`{"a":2}`] != 3 {
			t.Errorf("the failing one was in %d calls, want 3", seen[`{"a":2}`])
		}
		checkOrder(t, k.fn.all())
		k.settledAll(r)
		p.stop()
	})
}

// checkOrder fails where an event is called first after one that stands
// behind it, or after the success of one behind it.
func checkOrder(t *testing.T, calls []call) {
	t.Helper()
	last := map[string]int{}
	for _, c := range calls {
		for _, e := range c.events(t) {
			var partition string
			var n int
			if _, err := fmt.Sscanf(strings.NewReplacer(`{"`, "", `":`, " ", `}`, "").Replace(e), "%s %d", &partition, &n); err != nil {
				t.Fatalf("event %q: %v", e, err)
			}
			if n > last[partition]+1 {
				t.Errorf("%s was called before %d of its partition", e, last[partition]+1)
			}
			last[partition] = max(last[partition], n)
		}
	}
}

func TestOrderedBatchIsBisectedInOrder(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := orderedBatch(8)
				r.Retry.MaxAttempts = 6
				k.fn.answers(poisoned(t, status, `{"a":5}`))
				k.pushRow("a", 8)
				p := k.start(nil, r)
				k.wait(30 * time.Minute)
				graves := k.graves("r")
				if len(graves) != 1 || string(graves[0].Payload) != `{"a":5}` {
					t.Fatalf("dead letters %+v", graves)
				}
				checkOrder(t, k.fn.all())
				first := k.fn.bodies()[:4]
				want := []string{
					`[{"a":0},{"a":1},{"a":2},{"a":3},{"a":4},{"a":5},{"a":6},{"a":7}]`, `[{"a":0},{"a":1},{"a":2},{"a":3}]`,
					`[{"a":4},{"a":5}]`, `[{"a":4}]`,
				}
				if diff := cmp.Diff(want, first); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if last := k.fn.bodies()[len(k.fn.bodies())-1]; last != `[{"a":6},{"a":7}]` {
					t.Errorf("the last call was %s", last)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// The count of a head that fails in a batch survives the process.
func TestAttemptsOfAnOrderedBatchSurviveAProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedBatch(4)
		r.Retry.MaxAttempts = 7
		k.fn.answers(poisoned(t, 500, `{"a":0}`))
		k.pushRow("a", 4)
		total := 0
		for range 8 {
			p := k.start(nil, r)
			k.wait(20 * time.Second)
			p.stop()
			total = k.fn.seen(t)[`{"a":0}`]
		}
		p := k.start(nil, r)
		k.wait(10 * time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || string(graves[0].Payload) != `{"a":0}` || graves[0].reason.Class != bridge.FailureExhausted {
			t.Fatalf("dead letters %+v after %d calls", graves, total)
		}
		if n := k.fn.seen(t)[`{"a":0}`]; n != 7 {
			t.Errorf("%d calls of the poison, want max_attempts 7", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestHeldOrderedBatchWaitsWhole(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedBatch(4)
		first := true
		k.fn.answers(func(context.Context, call) bridge.Response {
			if first {
				first = false
				return bridge.Response{Status: 429, Header: http.Header{"Retry-After": {"5"}}}
			}
			return bridge.Response{Status: 200}
		})
		k.pushRow("a", 4)
		p := k.start(nil, r)
		k.wait(2 * time.Minute)
		whole := `[{"a":0},{"a":1},{"a":2},{"a":3}]`
		if diff := cmp.Diff([]string{whole, whole}, k.fn.bodies()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestStopWhileAnOrderedBatchIsBisected(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := orderedBatch(8)
		bad := poisoned(t, 500, `{"a":5}`)
		k.fn.answers(func(ctx context.Context, c call) bridge.Response { return after(ctx, time.Second, bad(ctx, c)) })
		k.pushRow("a", 8)
		p := k.start(nil, r)
		k.wait(2500 * time.Millisecond)
		p.stop()
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
		next := k.start(nil, r)
		k.wait(time.Minute)
		seen := k.fn.seen(t)
		if len(seen) != 8 {
			t.Errorf("%d events called", len(seen))
		}
		checkOrder(t, k.fn.all())
		k.settledAll(r)
		next.stop()
	})
}
