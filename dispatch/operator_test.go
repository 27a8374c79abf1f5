package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func (k *kit) operator() *dispatch.Operator {
	k.Helper()
	o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: k.client, Accepts: func(context.Context, string) error { return nil }})
	if err != nil {
		k.Fatal(err)
	}
	return o
}

// deadEvents lets n events of a route end as dead letters: every third with
// 422, the others with 400. Each waits a second for the one before.
func (k *kit) deadEvents(r bridge.Route, n int) {
	k.Helper()
	k.fn.answers(func(_ context.Context, c call) bridge.Response {
		var i int
		_, _ = fmt.Sscanf(c.body, "body %d", &i)
		return bridge.Response{Status: map[bool]int{true: 422, false: 400}[i%3 == 0], Body: []byte("no")}
	})
	p := k.start(nil, r)
	for i := range n {
		e := bridge.Event{ID: fmt.Sprint("e", i), Source: "shop", Type: "order", Received: time.Now(), ContentType: "text/plain", Body: fmt.Appendf(nil, "body %d", i)}
		_, err := k.client.Push(k.Context(), []queen.Item{{Queue: r.Queue, Partition: "p", TransactionID: e.ID, Payload: e.AppendPayload(nil)}})
		if err != nil {
			k.Fatal(err)
		}
		k.wait(time.Second)
	}
	p.stop()
	if got := len(k.graves(r.Name)); got != n {
		k.Fatalf("%d dead letters, want %d", got, n)
	}
}

func events(letters []dispatch.DeadLetter) []string {
	ids := make([]string, len(letters))
	for i, l := range letters {
		ids[i] = l.Origin.TransactionID
	}
	return ids
}

// user-problems.md: "dead letters without or with opaque reasons".
func TestDeadLettersAreListedWithTheirReasons(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.deadEvents(r, 7)
		o := k.operator()
		list := func(q dispatch.DeadLetterQuery) dispatch.DeadLetterPage {
			t.Helper()
			page, err := o.DeadLetters(k.Context(), "r", q)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		all := list(dispatch.DeadLetterQuery{})
		if d := cmp.Diff([]string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}, events(all.Letters)); d != "" || all.Next != 0 {
			t.Fatalf("dead letters, next %d (-want +got):\n%s", all.Next, d)
		}
		l := all.Letters[0]
		if l.Reason.Class != bridge.FailureHTTP4xx || l.Reason.Status != 422 || l.Reason.Attempts != 1 || l.Reason.Response != "" || l.Reason.First.IsZero() ||
			l.Delivery != k.fn.all()[6].DeliveryID || !l.Redrivable || l.Payload != nil || l.ID == "" || l.FailedAt.IsZero() {
			t.Errorf("dead letter = %+v", l)
		}
		if want := (dispatch.EventSummary{ID: "e6", Source: "shop", Type: "order", Received: l.Event.Received, ContentType: "text/plain", Bytes: 6}); l.Event != want {
			t.Errorf("event = %+v, want %+v", l.Event, want)
		}
		page := list(dispatch.DeadLetterQuery{Limit: 3})
		second := list(dispatch.DeadLetterQuery{Limit: 3, Offset: page.Next})
		third := list(dispatch.DeadLetterQuery{Limit: 3, Offset: second.Next})
		if d := cmp.Diff([]string{"e3", "e2", "e1", "e0"}, append(events(second.Letters), events(third.Letters)...)); d != "" || third.Next != 0 {
			t.Errorf("pages, next %d (-want +got):\n%s", third.Next, d)
		}
		for name, tt := range map[string]struct {
			q    dispatch.Selection
			want []string
		}{
			"by class":           {dispatch.Selection{Classes: []bridge.FailureClass{bridge.FailureExhausted}}, []string{}},
			"by event":           {dispatch.Selection{Event: "e4"}, []string{"e4"}},
			"since":              {dispatch.Selection{Since: all.Letters[1].FailedAt}, []string{"e6", "e5"}},
			"until":              {dispatch.Selection{Until: all.Letters[5].FailedAt}, []string{"e0"}},
			"by id":              {dispatch.Selection{IDs: []string{all.Letters[3].ID, "none"}}, []string{"e3"}},
			"by all of it":       {dispatch.Selection{Event: "e4", Until: all.Letters[5].FailedAt}, []string{}},
			"by several classes": {dispatch.Selection{Event: "e1", Classes: []bridge.FailureClass{bridge.FailureTimeout, bridge.FailureHTTP4xx}}, []string{"e1"}},
		} {
			if d := cmp.Diff(tt.want, events(list(dispatch.DeadLetterQuery{Selection: tt.q}).Letters)); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
		one, err := o.DeadLetter(k.Context(), "r", l.ID)
		if e, ours, _ := bridge.DecodeEvent(one.Payload); err != nil || !ours || string(e.Body) != "body 6" || one.Reason.Response != "no" {
			t.Errorf("DeadLetter = %q, %v", one.Payload, err)
		}
		if _, err := o.DeadLetter(k.Context(), "r", "none"); !errors.Is(err, dispatch.ErrNoDeadLetter) {
			t.Errorf("DeadLetter of none: %v", err)
		}
		if page, err := o.DeadLetters(k.Context(), "nobody", dispatch.DeadLetterQuery{}); err != nil || len(page.Letters) != 0 {
			t.Errorf("DeadLetters of no route = %+v, %v", page, err)
		}
	})
}

// user-problems.md: "DLQ replay fans out to every subscriber".
func TestRedriveReachesItsRouteOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r, other := testRoute("r", "q"), testRoute("other", "q")
		other.Target = "else"
		k.deadEvents(r, 4)
		k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
		p := k.start(nil, r, other)
		k.wait(time.Minute)
		before := len(k.fn.all())
		o := k.operator()
		dry, err := o.Redrive(k.Context(), "r", dispatch.Order{DryRun: true})
		if err != nil || dry.Done != 4 || len(k.graves("r")) != 4 {
			t.Errorf("dry run = %+v, %v", dry, err)
		}
		result, err := o.Redrive(k.Context(), "r", dispatch.Order{})
		if d := cmp.Diff(dispatch.OrderResult{Done: 4}, result); d != "" || err != nil {
			t.Errorf("Redrive: %v (-want +got):\n%s", err, d)
		}
		k.wait(time.Minute)
		calls := k.fn.all()[before:]
		ids := map[string]bool{}
		for _, c := range k.fn.all()[:before] {
			if c.target == "fn" {
				ids[c.DeliveryID] = true
			}
		}
		for _, c := range calls {
			if c.target != "fn" || c.Attempt != 1 || !ids[c.DeliveryID] {
				t.Errorf("call of %s, attempt %d, %s", c.target, c.Attempt, c.DeliveryID)
			}
		}
		if len(calls) != 4 || len(k.graves("r")) != 0 {
			t.Errorf("%d calls, %d dead letters left", len(calls), len(k.graves("r")))
		}
		k.settledAll(r)
		p.stop()
	})
}

// What fails again at once is not redriven for ever.
func TestRedriveOfWhatFailsAgainEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.deadEvents(r, 120)
		p := k.start(nil, r)
		result, err := k.operator().Redrive(k.Context(), "r", dispatch.Order{PerSecond: 10})
		if err != nil || result.Done != 120 {
			t.Errorf("Redrive = %+v, %v", result, err)
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 240 || len(k.graves("r")) != 120 {
			t.Errorf("%d calls, %d dead letters; want 240 and 120", n, len(k.graves("r")))
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestRedriveIsPaced(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.deadEvents(testRoute("r", "q"), 10)
		begun := time.Now()
		result, err := k.operator().Redrive(k.Context(), "r", dispatch.Order{PerSecond: 2, Limit: 7})
		if took := time.Since(begun); err != nil || result.Done != 7 || took < 3*time.Second || took > 4*time.Second || len(k.graves("r")) != 3 {
			t.Errorf("Redrive = %+v, %v in %v", result, err, took)
		}
		ctx, cancel := context.WithTimeout(k.Context(), time.Second)
		defer cancel()
		result, err = k.operator().Redrive(ctx, "r", dispatch.Order{PerSecond: 0.6})
		if !errors.Is(err, context.DeadlineExceeded) || result.Done != 1 {
			t.Errorf("Redrive that is broken off = %+v, %v", result, err)
		}
	})
}

// The process dies between push and delete, answers are lost, two operators
// press the button at once: each event is called once more, not twice.
func TestRedriveRepeatedIsOneRedrive(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"push": "POST", "delete": "DELETE"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				k.deadEvents(r, 3)
				o := k.operator()
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if r.Method == path && (path == "POST") == (r.URL.Path == "/api/v1/push") {
						return devbroker.Fault{LoseAnswer: true}
					}
					return devbroker.Fault{}
				})
				first, err := o.Redrive(k.Context(), "r", dispatch.Order{})
				if err != nil || first.Done != 0 || first.Failed != 3 || len(first.Problems) != 3 {
					t.Errorf("Redrive without answers = %+v, %v", first, err)
				}
				k.faults.set(nil)
				second, err := o.Redrive(k.Context(), "r", dispatch.Order{})
				want := map[string]int{"push": 3, "delete": 0}[name] // a delete whose answer is lost was one
				if err != nil || second.Done != want || second.Failed != 0 {
					t.Errorf("Redrive again = %+v, %v", second, err)
				}
				before := len(k.fn.all())
				p := k.start(nil, r)
				k.fn.answers(func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} })
				k.wait(time.Minute)
				if n := len(k.fn.all()) - before; n != 3 || len(k.graves("r")) != 0 {
					t.Errorf("%d calls after it, %d dead letters; want 3 and none", n, len(k.graves("r")))
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// `buffered` is not stored: the row stays.
func TestRedriveThatIsBufferedKeepsItsRow(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.deadEvents(testRoute("r", "q"), 1)
		k.faults.once("/api/v1/push", devbroker.Fault{Status: 201, Body: `[{"index":0,"message_id":"01a22b82-abb1-7002-b11b-9cba783c5750","queueName":"queenbridge-retry.r","status":"buffered"}]`})
		result, err := k.operator().Redrive(k.Context(), "r", dispatch.Order{})
		if err != nil || result.Done != 0 || result.Failed != 1 || !strings.Contains(result.Problems[0], "buffered") || len(k.graves("r")) != 1 {
			t.Errorf("Redrive = %+v, %v; %d dead letters", result, err, len(k.graves("r")))
		}
	})
}

func TestRedriveOfARouteThatGoesIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.deadEvents(testRoute("r", "q"), 1)
		draining := errors.New("route r is draining")
		o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: k.client, Accepts: func(context.Context, string) error { return draining }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Redrive(k.Context(), "r", dispatch.Order{}); !errors.Is(err, dispatch.ErrRedriveRefused) || !errors.Is(err, draining) {
			t.Errorf("Redrive = %v", err)
		}
		page, err := o.DeadLetters(k.Context(), "r", dispatch.DeadLetterQuery{})
		if err != nil || len(page.Letters) != 1 {
			t.Fatalf("DeadLetters = %+v, %v", page, err)
		}
		if err := o.DeleteDeadLetter(k.Context(), "r", page.Letters[0].ID); err != nil || len(k.graves("r")) != 0 {
			t.Errorf("DeleteDeadLetter = %v, %d left", err, len(k.graves("r")))
		}
		if err := o.DeleteDeadLetter(k.Context(), "r", page.Letters[0].ID); !errors.Is(err, dispatch.ErrNoDeadLetter) {
			t.Errorf("DeleteDeadLetter again = %v", err)
		}
	})
}

func TestForeignDeadLetterIsShownAndNotRedriven(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.push(bridge.DeadQueue("r"), "p", `{"who":"knows"}`)
		k.wait(time.Minute)
		p.stop()
		o := k.operator()
		page, err := o.DeadLetters(k.Context(), "r", dispatch.DeadLetterQuery{WithPayload: true})
		if err != nil || len(page.Letters) != 1 || page.Letters[0].Redrivable || page.Letters[0].Reason.Class != bridge.FailureUndecodable || string(page.Letters[0].Payload) != `{"who":"knows"}` {
			t.Fatalf("DeadLetters = %+v, %v", page, err)
		}
		if result, err := o.Redrive(k.Context(), "r", dispatch.Order{}); err != nil || result.Skipped != 1 || result.Done != 0 {
			t.Errorf("Redrive = %+v, %v", result, err)
		}
		if err := o.RedriveOne(k.Context(), "r", page.Letters[0].ID); err == nil {
			t.Error("RedriveOne succeeds")
		}
	})
}

// The large queue forgets by age: a redriven event travels whole, and its
// retries are stored anew.
func TestLargeDeadLetterIsRedriven(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.MaxAttempts = 2
		k.fn.statuses(500, 500, 500)
		p := k.start(nil, r)
		payload, body := k.pushLarge("p", "id", 1<<20)
		k.wait(time.Hour)
		k.raw("DELETE", "/api/v1/resources/queues/queenbridge-large.r", "")
		o := k.operator()
		page, err := o.DeadLetters(k.Context(), "r", dispatch.DeadLetterQuery{WithPayload: true})
		if err != nil || len(page.Letters) != 1 || !bytes.Equal(page.Letters[0].Payload, payload) {
			t.Fatalf("DeadLetters = %d, %v", len(page.Letters), err)
		}
		if err := o.RedriveOne(k.Context(), "r", page.Letters[0].ID); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Hour)
		calls := k.fn.of(body)
		if len(calls) != 4 || calls[2].Attempt != 1 || calls[3].Attempt != 2 || len(k.graves("r")) != 0 {
			t.Errorf("%d calls, %d dead letters; want two more, and none", len(calls), len(k.graves("r")))
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestDeletesTheDeadLettersThatFit(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.deadEvents(testRoute("r", "q"), 5)
		o := k.operator()
		result, err := o.DeleteDeadLetters(k.Context(), "r", dispatch.Order{Selection: dispatch.Selection{Event: "e2"}})
		if err != nil || result.Done != 1 || len(k.graves("r")) != 4 {
			t.Errorf("DeleteDeadLetters = %+v, %v, %d left", result, err, len(k.graves("r")))
		}
		result, err = o.DeleteDeadLetters(k.Context(), "r", dispatch.Order{})
		if err != nil || result.Done != 4 || len(k.graves("r")) != 0 {
			t.Errorf("DeleteDeadLetters = %+v, %v, %d left", result, err, len(k.graves("r")))
		}
	})
}

func TestPendingRetriesAreListedAndHastened(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.Backoff = []time.Duration{time.Hour}
		k.fn.statuses(500)
		p := k.start(nil, r)
		for i := range 3 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(time.Minute)
		o := k.operator()
		page, err := o.Retries(k.Context(), "r", dispatch.RetryQuery{Limit: 2, Details: true})
		if err != nil || len(page.Retries) != 2 || page.Next == "" {
			t.Fatalf("Retries = %+v, %v", page, err)
		}
		rest, err := o.Retries(k.Context(), "r", dispatch.RetryQuery{After: page.Next})
		if err != nil || len(rest.Retries) != 1 || rest.Next != "" || rest.Retries[0].Hop != 1 || time.Until(rest.Retries[0].Due) < 50*time.Minute {
			t.Errorf("Retries = %+v, %v", rest, err)
		}
		got := page.Retries[0]
		if got.Attempt != 1 || got.Last.Status != 500 || got.FirstFailed.IsZero() || got.Origin.Queue != "q" || got.Delivery == "" || got.Event.Bytes != 7 || got.Hop != 1 {
			t.Errorf("retry = %+v", got)
		}
		if err := o.RetryNow(k.Context(), "r", got.Key); err != nil {
			t.Fatal(err)
		}
		k.wait(2 * time.Second)
		calls := k.fn.all()
		if len(calls) != 4 || calls[3].DeliveryID != got.Delivery || calls[3].Attempt != 2 {
			t.Errorf("%d calls, want the hastened one as the second attempt", len(calls))
		}
		if err := o.RetryNow(k.Context(), "r", got.Key); !errors.Is(err, dispatch.ErrNoRetry) {
			t.Errorf("RetryNow again = %v", err)
		}
		k.wait(2 * time.Hour)
		if n := len(k.fn.all()); n != 6 {
			t.Errorf("%d calls, want 6", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// slow is a Queen to which schedules take two seconds.
type slow struct{ dispatch.OperatorQueen }

func (q slow) Schedule(ctx context.Context, timers []queen.Timer) ([]queen.TimerStatus, error) {
	time.Sleep(2 * time.Second) // of the bubble
	return q.OperatorQueen.Schedule(ctx, timers)
}

// The timer fires between the look and the change: no copy of it is left.
func TestHastenedRetryThatJustFiredIsNotCopied(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(4900 * time.Millisecond)
		o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: slow{k.client}, Accepts: func(context.Context, string) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		page, err := o.Retries(k.Context(), "r", dispatch.RetryQuery{})
		if err != nil || len(page.Retries) != 1 {
			t.Fatalf("Retries = %+v, %v", page, err)
		}
		if err := o.RetryNow(k.Context(), "r", page.Retries[0].Key); !errors.Is(err, dispatch.ErrNoRetry) {
			t.Errorf("RetryNow = %v", err)
		}
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestNewOperatorNeedsItsParts(t *testing.T) {
	t.Parallel()
	for _, cfg := range []dispatch.OperatorConfig{{}, {Queen: &queen.Client{}}, {Accepts: func(context.Context, string) error { return nil }}} {
		if _, err := dispatch.NewOperator(cfg); err == nil {
			t.Errorf("NewOperator(%+v) succeeds", cfg)
		}
	}
}
