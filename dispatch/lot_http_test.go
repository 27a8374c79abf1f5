package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// batchProcessor is a function over HTTP that handles SQS events as the batch
// processors of Lambda do: it fails some records once and says which.
type batchProcessor struct {
	mu      sync.Mutex
	receive map[string][]string // ApproximateReceiveCount of each body
	handled map[string]int
	all     chan struct{} // closed when want are handled
	want    int
}

func (b *batchProcessor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var e lambdaevents.SQSEvent
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := lambdaevents.SQSEventResponse{BatchItemFailures: []lambdaevents.SQSBatchItemFailure{}}
	for _, m := range e.Records {
		b.receive[m.Body] = append(b.receive[m.Body], m.Attributes["ApproximateReceiveCount"])
		if len(b.receive[m.Body]) == 1 && m.Body[len(m.Body)-2] == '3' { // {"n":3}, {"n":13}, …
			answer.BatchItemFailures = append(answer.BatchItemFailures, lambdaevents.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			continue
		}
		b.handled[m.Body]++
	}
	if len(b.handled) == b.want {
		b.want = -1
		close(b.all)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestBatchProcessorOfLambdaOverHTTP(t *testing.T) {
	t.Parallel()
	const n = 40
	fn := &batchProcessor{receive: map[string][]string{}, handled: map[string]int{}, all: make(chan struct{}), want: n}
	server := httptest.NewServer(fn)
	t.Cleanup(server.Close)
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	items := make([]queen.Item, n)
	for i := range items {
		items[i] = queen.Item{Queue: "q", Partition: fmt.Sprint("p", i%4), TransactionID: fmt.Sprint(i), Payload: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	if _, err := client.Push(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	r := batchRoute(10, 0)
	r.Format, r.ReportItemFailures, r.Retry.Backoff = "sqs", true, []time.Duration{10 * time.Millisecond}
	target := testTarget("fn")
	target.HTTP.URL = server.URL
	d, err := dispatch.New(dispatch.Config{
		Routes: []bridge.Route{r}, Targets: []bridge.Target{target}, Queen: client,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-fn.all:
	case <-time.After(30 * time.Second):
		t.Error("not everything was handled")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	fn.mu.Lock()
	defer fn.mu.Unlock()
	for body, times := range fn.handled {
		received := fmt.Sprint(fn.receive[body])
		if body[len(body)-2] == '3' && received != "[1 2]" || body[len(body)-2] != '3' && received != "[1]" || times != 1 {
			t.Errorf("%s was received as %s and handled %d times", body, received, times)
		}
	}
}
