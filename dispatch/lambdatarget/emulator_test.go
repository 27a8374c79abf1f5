package lambdatarget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget/lambdatest"
)

// seen is what testdata/sqsfunction tells of one call.
type seen struct {
	Records []events.SQSMessage
	Custom  map[string]string
}

// bodies are those of the call's records.
func (s seen) bodies() []string {
	var all []string
	for _, r := range s.Records {
		all = append(all, r.Body)
	}
	return all
}

// sqsFunction is a handler made for SQS, with AWS's library, under AWS's
// emulator of its runtime.
type sqsFunction struct {
	*lambdatest.Lambda
	calls <-chan seen
}

func startFunction(t *testing.T, bootstrap string) *sqsFunction {
	t.Helper()
	calls := make(chan seen, 100)
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var s seen
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			t.Errorf("the function posts: %v", err)
		}
		calls <- s
	}))
	t.Cleanup(sink.Close)
	e := lambdatest.Start(t, lambdatest.Options{Bootstrap: bootstrap, Timeout: 2 * time.Second, Env: []string{"SINK=" + sink.URL}})
	return &sqsFunction{lambdatest.Serve(t, e), calls}
}

func (f *sqsFunction) next(t *testing.T) seen {
	t.Helper()
	select {
	case s := <-f.calls:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("the function was not called")
		return seen{}
	}
}

// dispatchTo runs a dispatcher from the queue "orders" to the function until the
// test ends.
func dispatchTo(t *testing.T, f *sqsFunction, route func(*bridge.Route), tgt func(*bridge.LambdaTarget)) *queen.Client {
	t.Helper()
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	r := bridge.Route{
		Name: "orders-to-billing", Queue: "orders", Group: "orders-to-billing", Target: "thumbnailer", Subscribe: bridge.SubscribeAll,
		Ordering: bridge.OrderingNone, Batch: bridge.RouteBatch{Size: 1}, Format: bridge.FormatPassthrough,
		Retry:    bridge.RetryPolicy{MaxAttempts: 3, MaxAge: time.Hour, Backoff: []time.Duration{10 * time.Millisecond}, Jitter: bridge.JitterNone},
		Outcomes: bridge.Outcomes{Success: []string{"2xx"}},
	}
	if route != nil {
		route(&r)
	}
	lambdaTarget := target(f.URL, func(l *bridge.LambdaTarget) {
		l.Function, l.Region, l.Payload, l.Timeout = "arn:aws:lambda:eu-west-1:123456789012:function:billing", "", bridge.LambdaSQS, 10*time.Second
		if tgt != nil {
			tgt(l)
		}
	})
	d, err := dispatch.New(dispatch.Config{
		Queen: client, Routes: []bridge.Route{r}, Targets: []bridge.Target{lambdaTarget}, StopTimeout: 5 * time.Second,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) {
			return lambdatarget.New(context.Background(), t, lambdatarget.Options{Config: awsConfig})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		client.Close()
		_ = broker.Close()
	})
	return client
}

func push(t *testing.T, c *queen.Client, bodies ...string) {
	t.Helper()
	items := make([]queen.Item, len(bodies))
	for i, body := range bodies {
		items[i] = queen.Item{Queue: "orders", Partition: "customer-1", TransactionID: fmt.Sprint("order-", body), Payload: []byte(body)}
	}
	if _, err := c.Push(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}

// deadLetters waits for the dead letters of the route: n of them.
func deadLetters(t *testing.T, c *queen.Client, n int) []bridge.DeadReason {
	t.Helper()
	until := time.Now().Add(30 * time.Second)
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		list, err := c.DeadLetters(t.Context(), queen.DeadLetterQuery{Queue: bridge.DeadQueue("orders-to-billing"), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) >= n {
			reasons := make([]bridge.DeadReason, len(list))
			for i := range list {
				if err := json.Unmarshal([]byte(list[i].Error), &reasons[i]); err != nil {
					t.Fatalf("reason %q: %v", list[i].Error, err)
				}
			}
			return reasons
		}
		if time.Now().After(until) {
			t.Fatalf("%d dead letters, want %d", len(list), n)
		}
	}
}

// TestAHandlerMadeForSQSWorksUnmodified: from a Queen queue, with retries that
// say which one they are.
func TestAHandlerMadeForSQSWorksUnmodified(t *testing.T) {
	t.Parallel()
	bootstrap := lambdatest.Build(t, "./testdata/sqsfunction", "lambda.norpc")
	f := startFunction(t, bootstrap)
	c := dispatchTo(t, f, nil, nil)
	push(t, c, `{"n": 1e400, "text": "é\n\"}"}`)
	got := f.next(t)
	if diff := cmp.Diff([]string{`{"n": 1e400, "text": "é\n\"}"}`}, got.bodies()); diff != "" {
		t.Fatalf("bodies (-want +got):\n%s", diff)
	}
	r := got.Records[0]
	if r.EventSource != "aws:sqs" || r.EventSourceARN != "arn:aws:sqs:eu-west-1:123456789012:orders" || r.AWSRegion != "eu-west-1" ||
		r.Attributes["ApproximateReceiveCount"] != "1" || r.MessageId == "" || r.ReceiptHandle == "" || len(r.Md5OfBody) != 32 {
		t.Errorf("record %+v", r)
	}
	if got.Custom["queen-queue"] != "orders" || got.Custom["queen-partition"] != "customer-1" || got.Custom["queen-attempt"] != "1" || got.Custom["webhook-id"] == "" {
		t.Errorf("client context %v", got.Custom)
	}
	push(t, c, `{"kind":"error"}`)
	for attempt := range 3 {
		again := f.next(t)
		if n := again.Records[0].Attributes["ApproximateReceiveCount"]; n != fmt.Sprint(attempt+1) || again.Custom["queen-attempt"] != n {
			t.Errorf("attempt %d has receive count %s and context %v", attempt+1, n, again.Custom)
		}
	}
	dead := deadLetters(t, c, 1)[0]
	if dead.Class != bridge.FailureExhausted || dead.Attempts != 3 || dead.Error != "errorString: the function cannot do this" || dead.Status != 200 {
		t.Errorf("dead letter %+v", dead)
	}
}

// TestEveryEndOfAFunctionIsAFailedAttempt: it returns an error, panics, exits,
// takes too long.
func TestEveryEndOfAFunctionIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	bootstrap := lambdatest.Build(t, "./testdata/sqsfunction", "lambda.norpc")
	for kind, want := range map[string]string{
		"error": "errorString: the function cannot do this",
		"panic": "Runtime.ExitError", // so says the emulator; Lambda itself names the panic
		"exit":  "Runtime.ExitError", "sleep": "Task timed out after 2.00 seconds",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := startFunction(t, bootstrap)
			c := dispatchTo(t, f, func(r *bridge.Route) { r.Retry.MaxAttempts = 1 }, nil)
			push(t, c, fmt.Sprintf(`{"kind":%q}`, kind), `{"kind":"fine"}`)
			dead := deadLetters(t, c, 1)[0]
			if dead.Class != bridge.FailureExhausted || !strings.Contains(dead.Error, want) {
				t.Errorf("dead letter %+v, want %q", dead, want)
			}
			var bodies []string
			for range 2 {
				bodies = append(bodies, f.next(t).bodies()...)
			}
			slices.Sort(bodies)
			if diff := cmp.Diff([]string{`{"kind":"fine"}`, fmt.Sprintf(`{"kind":%q}`, kind)}, bodies, cmp.Transformer("sort", sorted)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// TestOnlyTheFailedItemsOfABatchComeAgain: the handler's batchItemFailures.
func TestOnlyTheFailedItemsOfABatchComeAgain(t *testing.T) {
	t.Parallel()
	f := startFunction(t, lambdatest.Build(t, "./testdata/sqsfunction", "lambda.norpc"))
	c := dispatchTo(t, f, func(r *bridge.Route) {
		r.Batch, r.ReportItemFailures = bridge.RouteBatch{Size: 10, Window: 200 * time.Millisecond}, true
		r.Retry.MaxAttempts = 2
	}, nil)
	push(t, c, `{"n":1}`, `{"n":2,"kind":"fail"}`, `{"n":3}`)
	if diff := cmp.Diff([]string{`{"n":1}`, `{"n":2,"kind":"fail"}`, `{"n":3}`}, f.next(t).bodies()); diff != "" {
		t.Errorf("the first call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{"n":2,"kind":"fail"}`}, f.next(t).bodies()); diff != "" {
		t.Errorf("the second call (-want +got):\n%s", diff)
	}
	deadLetters(t, c, 1)
	if n := f.Calls(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// TestABatchThatFailsIsHalvedUntilTheCulpritIsAlone: the others are delivered.
func TestABatchThatFailsIsHalvedUntilTheCulpritIsAlone(t *testing.T) {
	t.Parallel()
	f := startFunction(t, lambdatest.Build(t, "./testdata/sqsfunction", "lambda.norpc"))
	c := dispatchTo(t, f, func(r *bridge.Route) {
		r.Batch = bridge.RouteBatch{Size: 10, Window: 200 * time.Millisecond}
		r.Retry.MaxAttempts = 4
	}, nil)
	push(t, c, `{"n":1}`, `{"n":2}`, `{"n":3,"kind":"error"}`, `{"n":4}`)
	dead := deadLetters(t, c, 1)
	if len(dead) != 1 || dead[0].Error != "errorString: the function cannot do this" {
		t.Errorf("dead letters %+v, want the culprit's", dead)
	}
	ended := map[string]bool{} // bodies of calls without the culprit
	for range f.Calls() {
		if bodies := f.next(t).bodies(); !slices.Contains(bodies, `{"n":3,"kind":"error"}`) {
			for _, body := range bodies {
				if ended[body] {
					t.Errorf("%s was delivered twice", body)
				}
				ended[body] = true
			}
		}
	}
	if len(ended) != 3 {
		t.Errorf("delivered %v, want the three others", ended)
	}
}

// TestAHandOffIsDeliveredAtOnce: Lambda has it; its function's failure is not
// seen.
func TestAHandOffIsDeliveredAtOnce(t *testing.T) {
	t.Parallel()
	f := startFunction(t, lambdatest.Build(t, "./testdata/sqsfunction", "lambda.norpc"))
	c := dispatchTo(t, f, nil, func(l *bridge.LambdaTarget) { l.Invoke = bridge.InvokeEvent })
	push(t, c, `{"kind":"error"}`)
	f.next(t)
	push(t, c, `{"n":2}`)
	if diff := cmp.Diff([]string{`{"n":2}`}, f.next(t).bodies()); diff != "" {
		t.Errorf("the second call (-want +got):\n%s", diff)
	}
	if n := f.Calls(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}
