package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

func batchRoute(size int, window time.Duration) bridge.Route {
	r := testRoute("r", "q")
	r.Batch = bridge.RouteBatch{Size: size, Window: window}
	return r
}

// events are the bodies of a batch, compact.
func (c call) events(t testing.TB) []string {
	t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(c.body), &list); err != nil {
		t.Errorf("body %q is no array: %v", c.body, err)
	}
	events := make([]string, len(list))
	for i, e := range list {
		events[i] = string(e)
	}
	return events
}

// sizes are how many events each call had.
func (f *function) sizes(t testing.TB) []int {
	t.Helper()
	var sizes []int
	for _, c := range f.all() {
		sizes = append(sizes, len(c.events(t)))
	}
	return sizes
}

// seen counts the calls each event was in.
func (f *function) seen(t testing.TB) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for _, c := range f.all() {
		for _, e := range c.events(t) {
			seen[e]++
		}
	}
	return seen
}

// pushSpread pushes n events over some partitions.
func (k *kit) pushSpread(n, partitions int) {
	k.Helper()
	for i := range n {
		k.push("q", fmt.Sprint("p", i%partitions), fmt.Sprintf(`{"n":%d}`, i))
	}
}

func TestBatchIsOneCallOverPartitions(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(10, 0)
		k.pushSpread(25, 5)
		p := k.start(nil, r)
		k.wait(time.Second)
		if diff := cmp.Diff([]int{5, 10, 10}, slices.Sorted(slices.Values(k.fn.sizes(t)))); diff != "" {
			t.Errorf("sizes of the calls (-want +got):\n%s", diff)
		}
		ids := map[string]bool{}
		for _, c := range k.fn.all() {
			ids[c.DeliveryID] = true
			if len(c.Headers) != 1 || c.Headers[0].Name != "queen-batch-size" || c.Queue != "q" || c.Attempt != 1 || !strings.HasPrefix(c.DeliveryID, "bat_") {
				t.Errorf("request %+v", c.Request)
			}
		}
		if seen := k.fn.seen(t); len(seen) != 25 || len(ids) != 3 {
			t.Errorf("%d events in calls %v", len(seen), ids)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestBatchWaitsForItsWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(10, 5*time.Second)
		p := k.start(nil, r)
		begun := time.Now()
		for i := range 3 {
			k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"n":%d}`, i))
			k.wait(time.Second)
		}
		if n := len(k.fn.all()); n != 0 {
			t.Errorf("%d calls within the window", n)
		}
		k.wait(3 * time.Second)
		calls := k.fn.all()
		if len(calls) != 1 || len(calls[0].events(t)) != 3 {
			t.Fatalf("sizes %v, want one call of 3", k.fn.sizes(t))
		}
		if after := calls[0].at.Sub(begun); after < 5*time.Second || after > 6*time.Second {
			t.Errorf("called after %v", after)
		}
		k.settledAll(r)
		p.stop()
	})
}

// A window longer than the lease holds: leases are kept while events gather.
func TestBatchKeepsItsLeasesWhileItGathers(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(10, 4*time.Minute)
		k.pushSpread(3, 3)
		p := k.start(nil, r)
		k.wait(5 * time.Minute)
		if diff := cmp.Diff([]int{3}, k.fn.sizes(t)); diff != "" {
			t.Errorf("sizes of the calls (-want +got):\n%s", diff)
		}
		k.settledAll(r)
		p.stop()
	})
}

// Neither does a batch begin on an ageing lease: its events wait for the renewal.
func TestBatchDoesNotBeginOnAnAgeingLease(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(2, 50*time.Second)
		k.faults.set(func(req *http.Request) devbroker.Fault {
			if strings.HasPrefix(req.URL.Path, "/api/v1/lease") {
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(54 * time.Second)
		if n := len(k.fn.all()); n != 0 {
			t.Errorf("%d calls while 6s of the lease were left", n)
		}
		k.faults.set(nil)
		k.wait(6 * time.Second)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls once it was renewed, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestFullBatchDoesNotWait(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(4, time.Minute)
		k.pushSpread(4, 2)
		p := k.start(nil, r)
		k.wait(time.Second)
		if diff := cmp.Diff([]int{4}, k.fn.sizes(t)); diff != "" {
			t.Errorf("sizes of the calls (-want +got):\n%s", diff)
		}
		p.stop()
	})
}

func TestBatchOfOneIsAnArrayToo(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(4, 0)
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(time.Second)
		calls := k.fn.all()
		want := bridge.DeliveryID("r", bridge.Origin{Queue: "q", Partition: "p", TransactionID: `t:{"n":1}`})
		if len(calls) != 1 || calls[0].body != `[{"n":1}]` || calls[0].DeliveryID != want || calls[0].Partition != "p" {
			t.Errorf("calls %+v", calls)
		}
		p.stop()
	})
}

// A call never exceeds the bound of its body, whatever the events' size.
func TestBatchIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(100, time.Second)
		p := k.start(nil, r)
		for i := range 10 {
			body := fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 1<<20))
			if _, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "p", TransactionID: fmt.Sprint(i), Payload: json.RawMessage(body)}}); err != nil {
				t.Fatal(err)
			}
		}
		k.wait(10 * time.Second)
		for _, c := range k.fn.all() {
			if len(c.body) > 4<<20 {
				t.Errorf("a body of %d bytes", len(c.body))
			}
		}
		if n := len(k.fn.seen(t)); n != 10 {
			t.Errorf("%d events called", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// On a stop what was gathered and not called is given back, at once.
func TestStopGivesBackWhatIsGathered(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(10, 4*time.Minute)
		k.pushSpread(3, 3)
		p := k.start(nil, r)
		k.wait(time.Second)
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		if n := len(k.fn.all()); n != 0 {
			t.Errorf("%d calls", n)
		}
		r.Batch.Window = 0
		next := k.start(nil, r)
		k.wait(time.Second)
		if n := len(k.fn.seen(t)); n != 3 {
			t.Errorf("%d events called by the next process, want 3", n)
		}
		k.settledAll(r)
		next.stop()
	})
}

// poisoned answers a status where a call has one of the events, else 200.
func poisoned(t testing.TB, status int, events ...string) func(context.Context, call) bridge.Response {
	return func(_ context.Context, c call) bridge.Response {
		for _, e := range c.events(t) {
			if slices.Contains(events, e) {
				return bridge.Response{Status: status, Header: http.Header{}}
			}
		}
		return bridge.Response{Status: 200}
	}
}

// user-problems: "after max retries nothing in the error topic", for batches;
// and never the whole batch for one poison item.
func TestOnePoisonEventOfABatchIsTheOnlyDeadLetter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 413, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := batchRoute(16, time.Second)
				k.fn.answers(poisoned(t, status, `{"n":5}`))
				k.pushSpread(16, 4)
				p := k.start(nil, r)
				k.wait(10 * time.Minute)
				graves := k.graves("r")
				if len(graves) != 1 || string(graves[0].Payload) != `{"n":5}` {
					t.Fatalf("dead letters %+v", graves)
				}
				if g := graves[0]; g.reason.Attempts > r.Retry.MaxAttempts || g.reason.Status != status {
					t.Errorf("reason %+v", g.reason)
				}
				for e, n := range k.fn.seen(t) {
					if n > r.Retry.MaxAttempts {
						t.Errorf("%s was in %d calls, more than max_attempts", e, n)
					}
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// The innocent are delivered at once, not after a backoff.
func TestHalvesOfAFailedBatchAreCalledAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(8, time.Second)
		r.Retry.MaxAttempts = 12
		k.fn.answers(poisoned(t, 500, `{"n":5}`))
		k.pushSpread(8, 1)
		p := k.start(nil, r)
		k.wait(2 * time.Second)
		delivered := map[string]bool{}
		for _, c := range k.fn.all() {
			if events := c.events(t); !slices.Contains(events, `{"n":5}`) {
				for _, e := range events {
					delivered[e] = true
				}
			}
		}
		if len(delivered) != 7 {
			t.Errorf("delivered %v, want all but the culprit", delivered)
		}
		if n := k.timers("r"); n != 1 {
			t.Errorf("%d timers, want the culprit's", n)
		}
		if diff := cmp.Diff([]int{8, 4, 4, 2, 2, 1, 1}, k.fn.sizes(t)); diff != "" {
			t.Errorf("sizes of the calls (-want +got):\n%s", diff)
		}
		p.stop()
	})
}

// A function that is down is not called for each half of each half, and the
// events come again by their timers, with attempts left.
func TestDownFunctionIsNotCalledForEveryEvent(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(64, time.Second)
		r.Retry.MaxAttempts = 12
		until := time.Now().Add(20 * time.Second)
		k.fn.answers(func(context.Context, call) bridge.Response {
			if time.Now().Before(until) {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		k.pushSpread(64, 8)
		p := k.start(nil, r)
		k.wait(4 * time.Second)
		if n := len(k.fn.all()); n != 3 {
			t.Errorf("%d calls, want the batch and its halves: %v", n, k.fn.sizes(t))
		}
		k.wait(5 * time.Minute)
		if n := len(k.fn.seen(t)); n != 64 {
			t.Errorf("%d events", n)
		}
		if graves := k.graves("r"); len(graves) != 0 {
			t.Errorf("%d dead letters", len(graves))
		}
		k.settledAll(r)
		p.stop()
	})
}

// What is the target's fault is nobody's in the batch, also where the attempt
// counts.
func TestFailureOfTheTargetBisectsNoBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(8, time.Second)
		k.fn.answers(func(context.Context, call) bridge.Response {
			return bridge.Response{Status: 502, Judged: &bridge.Judgement{Scope: bridge.ScopeTarget}}
		})
		k.pushSpread(8, 2)
		p := k.start(nil, r)
		k.wait(4 * time.Second)
		if diff := cmp.Diff([]int{8}, k.fn.sizes(t)); diff != "" {
			t.Errorf("sizes of the calls (-want +got):\n%s", diff)
		}
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
		k.wait(time.Minute)
		if c := k.fn.all()[1]; c.Attempt != 2 {
			t.Errorf("attempt %d, want 2: the first one counted", c.Attempt)
		}
		k.settledAll(r)
		p.stop()
	})
}

// What is the target's fault is nobody's in the batch.
func TestHeldBatchIsNotBisected(t *testing.T) {
	t.Parallel()
	for name, resp := range map[string]bridge.Response{
		"429":             {Status: 429, Header: http.Header{"Retry-After": {"7"}}},
		"503 retry-after": {Status: 503, Header: http.Header{"Retry-After": {"7"}}},
		"connect":         {Err: context.DeadlineExceeded, Class: bridge.FailureConnect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := batchRoute(8, time.Second)
				first := true
				k.fn.answers(func(context.Context, call) bridge.Response {
					if first {
						first = false
						return resp
					}
					return bridge.Response{Status: 200}
				})
				k.pushSpread(8, 2)
				p := k.start(nil, r)
				k.wait(2 * time.Second)
				if diff := cmp.Diff([]int{8}, k.fn.sizes(t)); diff != "" {
					t.Errorf("sizes of the calls (-want +got):\n%s", diff)
				}
				k.wait(2 * time.Minute)
				for _, c := range k.fn.all()[1:] {
					if c.Attempt != 1 {
						t.Errorf("attempt %d: a hold was counted", c.Attempt)
					}
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// A batch slower than detach_after holds no partition; its success cancels all
// retries.
func TestSlowBatchIsDetached(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(4, time.Second)
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			if strings.Contains(c.body, `{"n":0}`) {
				return after(ctx, 10*time.Second, bridge.Response{Status: 200})
			}
			return bridge.Response{Status: 200}
		})
		k.pushSpread(4, 2)
		p := k.start(nil, r)
		k.wait(5 * time.Second)
		if n, timers := k.depth("q", "r"), k.timers("r"); n != 0 || timers != 4 {
			t.Errorf("%d leased, %d timers; want the partitions free and a retry each", n, timers)
		}
		k.push("q", "p0", `{"n":9}`)
		k.wait(2 * time.Second)
		if k.fn.seen(t)[`{"n":9}`] != 1 {
			t.Error("a partition was held")
		}
		k.wait(10 * time.Minute)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// A slow function that fails for one poison event: no bisecting in one go, the
// retries come in smaller batches until it is alone.
func TestSlowFailingBatchIsTakenApartByRetries(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(16, 5*time.Second)
		r.Retry.MaxAttempts = 6
		bad := poisoned(t, 500, `{"n":3}`)
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, 5*time.Second, bad(ctx, c))
		})
		k.pushSpread(16, 2)
		p := k.start(nil, r)
		k.wait(time.Hour)
		graves := k.graves("r")
		if len(graves) != 1 || string(graves[0].Payload) != `{"n":3}` {
			t.Errorf("dead letters %+v", graves)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestRouteOfBatchesSettlesByTheFunctionsReport(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(4, time.Second)
		r.ReportItemFailures = true
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.Capture <= 0 {
				t.Error("the answer is not asked for")
			}
			i := slices.Index(c.events(t), `{"n":2}`)
			if i < 0 || c.Attempt > 2 {
				return bridge.Response{Status: 200}
			}
			return bridge.Response{Status: 200, Body: fmt.Appendf(nil, `{"batchItemFailures":[{"itemIdentifier":"%d"}]}`, i)}
		})
		k.pushSpread(4, 2)
		p := k.start(nil, r)
		k.wait(5 * time.Minute)
		if diff := cmp.Diff(map[string]int{`{"n":0}`: 1, `{"n":1}`: 1, `{"n":2}`: 3, `{"n":3}`: 1}, k.fn.seen(t)); diff != "" {
			t.Errorf("calls of each event (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{4, 1, 1}, k.fn.sizes(t)); diff != "" {
			t.Errorf("sizes of the calls (-want +got):\n%s", diff)
		}
		failed := p.metric(t, "attempts_total", "outcome=retry", "class=function_error", "code=200")
		if well := p.metric(t, "attempts_total", "outcome=delivered", "code=200"); failed != 2 || well != 1 {
			t.Errorf("attempts_total: %v calls failed in part and %v were delivered, want 2 and 1", failed, well)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestReportCountsOnlyWhereTheRouteAsksForIt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(4, time.Second)
		k.fn.answers(func(context.Context, call) bridge.Response {
			return bridge.Response{Status: 200, Body: []byte(`{"batchItemFailures":[{"itemIdentifier":"0"}]}`)}
		})
		k.pushSpread(4, 2)
		p := k.start(nil, r)
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// A report that was cut off may have named any item: nothing is taken for done.
func TestCutReportLeavesNothingDone(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bridge.Response{
		"cut": {Status: 200, Cut: true}, "truncated": {Status: 200, Truncated: true, Body: []byte(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := batchRoute(4, time.Second)
				r.ReportItemFailures = true
				first := true
				k.fn.answers(func(context.Context, call) bridge.Response {
					if first {
						first = false
						return cut
					}
					return bridge.Response{Status: 200}
				})
				k.pushSpread(4, 2)
				p := k.start(nil, r)
				k.wait(time.Minute)
				for e, n := range k.fn.seen(t) {
					if n != 2 {
						t.Errorf("%s was in %d calls, want 2", e, n)
					}
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// A report nobody understands is a failed batch, which is bisected.
func TestReportOfNothingSureFailsTheBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(4, time.Second)
		r.ReportItemFailures = true
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if strings.Contains(c.body, `{"n":1}`) {
				return bridge.Response{Status: 200, Body: []byte(`{"batchItemFailures":[{"itemIdentifier":""}]}`)}
			}
			return bridge.Response{Status: 200}
		})
		k.pushSpread(4, 1)
		p := k.start(nil, r)
		k.wait(10 * time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || string(graves[0].Payload) != `{"n":1}` || graves[0].reason.Class != bridge.FailureExhausted {
			t.Errorf("dead letters %+v", graves)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestReportOfASingleEvent(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.ReportItemFailures = true
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.n > 1 {
				return bridge.Response{Status: 200}
			}
			return bridge.Response{Status: 200, Body: fmt.Appendf(nil, `{"batchItemFailures":[{"itemIdentifier":%q}]}`, c.DeliveryID)}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(time.Minute)
		if calls := k.fn.all(); len(calls) != 2 || calls[1].Attempt != 2 || calls[0].body != `{"n":1}` {
			t.Errorf("calls %+v", calls)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestFormatOfASingleEvent(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := testRoute("r", "q")
			r.Format, r.Ordering = "cloudevents-structured", ordering
			p := k.start(nil, r)
			k.push("q", "p", `{"n": 1}`)
			k.wait(time.Second)
			calls := k.fn.all()
			if len(calls) != 1 || !strings.Contains(calls[0].body, `"data":{"n": 1}`) || !strings.HasPrefix(calls[0].ContentType, "application/cloudevents+json") {
				t.Errorf("calls %+v", calls)
			}
			p.stop()
		})
	})
}

func TestFilteredEventsAreNotInTheBatch(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := batchRoute(4, 0)
			r.Filter, r.Ordering = "event.body.n != 1", ordering
			k.push("q", "p", `{"n":0}`, `{"n":1}`, `{"n":2}`)
			p := k.start(nil, r)
			k.wait(time.Second)
			if calls := k.fn.all(); len(calls) != 1 || calls[0].body != `[{"n":0},{"n":2}]` {
				t.Errorf("calls %+v", calls)
			}
			if n := p.metric(t, "filtered_total"); n != 1 {
				t.Errorf("filtered_total %v, want 1", n)
			}
			k.settledAll(r)
			p.stop()
		})
	})
}

// A stop ends the search for the culprit: nobody is blamed.
func TestStopWhileABatchIsBisectedBuriesNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(8, time.Second)
		bad := poisoned(t, 400, `{"n":5}`)
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, 500*time.Millisecond, bad(ctx, c))
		})
		k.pushSpread(8, 2)
		p := k.start(nil, r)
		k.wait(1700 * time.Millisecond)
		p.stop()
		if n := len(k.fn.all()); n == 0 || n > 4 {
			t.Fatalf("%d calls before the stop", n)
		}
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
		next := k.start(nil, r)
		k.wait(10 * time.Minute)
		if graves := k.graves("r"); len(graves) != 0 {
			t.Errorf("%d dead letters", len(graves))
		}
		if n := len(k.fn.seen(t)); n != 8 {
			t.Errorf("%d events called", n)
		}
		k.settledAll(r)
		next.stop()
	})
}

// A lost lease takes its events out of the search, and the others go on.
func TestLostLeaseEndsItsPartOfABatch(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := batchRoute(8, 4*time.Minute)
		k.pushSpread(4, 4)
		p := k.start(nil, r)
		k.wait(time.Second)
		k.faults.set(func(req *http.Request) devbroker.Fault { // no lease is renewed
			if strings.HasSuffix(req.URL.Path, "/extend") {
				return devbroker.Fault{Status: 503}
			}
			return devbroker.Fault{}
		})
		k.wait(90 * time.Second)
		k.faults.set(nil)
		k.wait(10 * time.Minute)
		seen := k.fn.seen(t)
		if len(seen) != 4 {
			t.Errorf("%d events called", len(seen))
		}
		k.settledAll(r)
		p.stop()
	})
}
