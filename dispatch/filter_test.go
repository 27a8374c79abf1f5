package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

// inBothOrderings runs test with a route of each ordering.
func inBothOrderings(t *testing.T, test func(*kit, bridge.Route)) {
	t.Helper()
	for ordering, route := range map[bridge.Ordering]func(name, queue string) bridge.Route{
		bridge.OrderingNone: testRoute, bridge.OrderingPartition: orderedRoute,
	} {
		t.Run(string(ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) { test(k, route("r", "q")) })
		})
	}
}

func TestFilterLetsOnlyWhatIsWantedThrough(t *testing.T) {
	t.Parallel()
	inBothOrderings(t, func(k *kit, r bridge.Route) {
		r.Filter = `event.body.n % 3 == 0`
		p := k.start(nil, r)
		for i := range 60 {
			k.push("q", fmt.Sprint("p", i%4), fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(10 * time.Second)
		calls := k.fn.all()
		for _, c := range calls {
			var n int
			if _, err := fmt.Sscanf(c.body, `{"n":%d}`, &n); err != nil || n%3 != 0 {
				k.Errorf("called with %s", c.body)
			}
		}
		if len(calls) != 20 {
			k.Errorf("%d calls, want 20", len(calls))
		}
		if n := p.metric(k, "filtered_total", "route=r"); n != 40 {
			k.Errorf("filtered_total = %v, want 40", n)
		}
		if n := p.metric(k, "attempts_total"); n != 20 {
			k.Errorf("attempts_total = %v, want 20", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestEventsAreFilteredByTheirFields(t *testing.T) {
	t.Parallel()
	inBothOrderings(t, func(k *kit, r bridge.Route) {
		r.Filter = `event.source == "github" && event.type == "push" && event.headers["x-tag"] == "1,2" && event.body.ref == "main"`
		p := k.start(nil, r)
		for i, kind := range []string{"push", "ping"} {
			e := bridge.Event{
				ID: fmt.Sprint("id", i), Source: "github", Type: kind, Received: time.Now().UTC(), Class: bridge.ClassVerified,
				Headers: []bridge.Header{{Name: "x-tag", Value: "1"}, {Name: "x-tag", Value: "2"}}, Body: []byte(`{"ref":"main"}`),
			}
			_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "p", TransactionID: e.ID, Payload: e.AppendPayload(nil)}})
			if err != nil {
				k.Fatal(err)
			}
		}
		k.wait(10 * time.Second)
		if calls := k.fn.all(); len(calls) != 1 || calls[0].body != `{"ref":"main"}` {
			k.Errorf("calls = %+v, want the push alone", calls)
		}
		if n := p.metric(k, "filtered_total"); n != 1 {
			k.Errorf("filtered_total = %v, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestFailingFilterEndsAsADeadLetter(t *testing.T) {
	t.Parallel()
	inBothOrderings(t, func(k *kit, r bridge.Route) {
		r.Filter = `event.body.ref == "s3cret"`
		p := k.start(nil, r)
		k.push("q", "p", `{"ref":"s3cret"}`, `{"other":"s3cret"}`, `{"ref":"x"}`, `{"ref":"s3cret","n":2}`)
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 2 {
			k.Errorf("%d calls, want 2", n)
		}
		graves := k.graves("r")
		if len(graves) != 1 {
			k.Fatalf("%d dead letters, want 1", len(graves))
		}
		g := graves[0]
		if g.reason.Class != bridge.FailureFilter || g.reason.Attempts != 0 || string(g.Payload) != `{"other":"s3cret"}` ||
			!strings.Contains(g.reason.Error, `no member "ref"`) || strings.Contains(g.reason.Error, "s3cret") {
			k.Errorf("dead letter = %+v of %s", g.reason, g.Payload)
		}
		if n := p.metric(k, "dead_letters_total", "class=filter_error"); n != 1 {
			k.Errorf("dead_letters_total = %v, want 1", n)
		}
		if n := p.metric(k, "filtered_total"); n != 1 {
			k.Errorf("filtered_total = %v, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// A retry passed the filter: it is called again also where the filter was
// changed since.
func TestRetryIsNotFilteredAgain(t *testing.T) {
	t.Parallel()
	inBothOrderings(t, func(k *kit, r bridge.Route) {
		r.Retry.Backoff = []time.Duration{40 * time.Second}
		r.Filter = `event.body.n == 1`
		k.fn.statuses(500)
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(5 * time.Second)
		p.stop()
		r.Filter = `event.body.n == 2`
		p = k.start(nil, r)
		k.push("q", "p", `{"n":1,"later":true}`)
		k.wait(5 * time.Minute)
		calls := k.fn.all()
		if len(calls) != 2 || calls[0].body != calls[1].body || calls[1].Attempt != 2 {
			k.Errorf("calls = %+v, want two of the first event", calls)
		}
		if n := p.metric(k, "filtered_total"); n != 1 {
			k.Errorf("filtered_total = %v, want 1: the later event", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// A redriven event that the filter failed on is asked about again; any other
// redriven event passed.
func TestRedrivenFilterErrorIsFilteredAgain(t *testing.T) {
	t.Parallel()
	inBothOrderings(t, func(k *kit, r bridge.Route) {
		r.Filter = `event.body.action == "opened"`
		k.fn.statuses(400)
		p := k.start(nil, r)
		k.push("q", "p", `{"state":"closed"}`, `{"state":"open"}`, `{"action":"opened"}`)
		k.wait(time.Minute)
		p.stop()
		r.Filter = `event.body.?state.orValue("") == "open"`
		p = k.start(nil, r)
		graves := k.graves("r")
		if len(graves) != 3 {
			k.Fatalf("%d dead letters, want 3", len(graves))
		}
		for _, g := range graves {
			d := g.Delivery
			d.Hop, d.Attempt, d.FirstFailed, d.Dead = d.Hop+1, 0, time.Time{}, nil
			_, err := k.client.Push(k.Context(), []queen.Item{{
				Queue: bridge.RetryQueue("r"), Partition: bridge.RetryLane(d.Lineage),
				TransactionID: bridge.RedriveTxn(g.row.TransactionID), Payload: d.AppendEnvelope(nil),
			}})
			if err != nil {
				k.Fatal(err)
			}
		}
		k.wait(time.Minute)
		if n := len(k.fn.of(`{"state":"open"}`)); n != 1 {
			k.Errorf("%d calls of the event the new filter wants, want 1", n)
		}
		if n := len(k.fn.of(`{"state":"closed"}`)); n != 0 {
			k.Errorf("%d calls of the event it does not want", n)
		}
		if n := len(k.fn.of(`{"action":"opened"}`)); n != 2 {
			k.Errorf("%d calls of the event that passed the old filter, want 2", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// Filtered events are acked with what is delivered and what fails beside them.
func TestFilteredEventsBesideFailingOnes(t *testing.T) {
	t.Parallel()
	inBothOrderings(t, func(k *kit, r bridge.Route) {
		r.Filter = `event.body.n > 2`
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: []int{500, 200}[min(c.n-1, 1)]}
		})
		p := k.start(nil, r)
		for i := range 6 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf(`{"n":%d,"again":1}`, i))
		}
		k.wait(5 * time.Minute)
		if n := len(k.fn.all()); n != 12 {
			k.Errorf("%d calls, want 12: two of each wanted event", n)
		}
		if n := p.metric(k, "filtered_total"); n != 6 {
			k.Errorf("filtered_total = %v, want 6", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestNewRefusesAFilterThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	r := testRoute("r", "q")
	r.Filter = `event.tpye == "push"`
	_, err := dispatch.New(dispatch.Config{
		Routes: []bridge.Route{r}, Targets: []bridge.Target{testTarget("fn")}, Queen: &queen.Client{},
		NewSender: func(bridge.Target) (dispatch.Sender, error) { return sender{}, nil },
	})
	if err == nil || !strings.Contains(err.Error(), "route r: filter: at column 7") || !strings.Contains(err.Error(), "did you mean event.type?") {
		t.Errorf("New: %v", err)
	}
}

func TestEventsThatDoNotMatchThePatternAreAcked(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Pattern = map[string]any{"body": map[string]any{"n": []any{map[string]any{"numeric": []any{">", 1}}}}}
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`, `{"n":2}`, `{"n":3}`)
		k.wait(time.Second)
		if n := len(k.fn.all()); n != 2 || len(k.fn.of(`{"n":1}`)) != 0 {
			t.Errorf("%d calls, want 2", n)
		}
		if n := p.metric(t, "filtered_total"); n != 1 {
			t.Errorf("filtered_total %v, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}
