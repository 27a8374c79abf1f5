package queen_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// answers makes a stand-in for a broker: one answer per path.
func answers(byPath map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(byPath[r.URL.Path]))
	}))
}

func ExampleClient_Push() {
	broker := answers(map[string]string{"/api/v1/push": `[{"index":0,"message_id":"01a2","transaction_id":"github:1","status":"queued"},
		{"index":1,"message_id":"01a1","transaction_id":"github:0","status":"duplicate"}]`})
	defer broker.Close()
	client, err := queen.New(queen.Config{URLs: []string{broker.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	verdicts, err := client.Push(context.Background(), []queen.Item{
		{Queue: "github-events", Partition: "github.7", TransactionID: "github:1", Payload: []byte(`{"ref":"main"}`)},
		{Queue: "github-events", Partition: "github.7", TransactionID: "github:0", Payload: []byte(`{"ref":"dev"}`)},
	})
	if err != nil {
		fmt.Println(err, "- send the same items again:", queen.Temporary(err))
		return
	}
	for _, v := range verdicts {
		fmt.Println(v.Status, v.MessageID)
	}
	// Output:
	// queued 01a2
	// duplicate 01a1
}

// A settle acknowledges a batch and schedules the retries in one transaction.
// It is encoded once and sent again, byte for byte, until the answer is
// definite.
func ExampleClient_Commit() {
	broker := answers(map[string]string{"/api/v1/transaction": `{"success":false,"reason":"ack_rejected","error":"invalid or expired lease","results":[]}`})
	defer broker.Close()
	client, err := queen.New(queen.Config{URLs: []string{broker.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	settle, err := queen.Transaction{
		Acks: []queen.Ack{{TransactionID: "github:1", PartitionID: "3e56", Lease: queen.Lease{ID: "01a2", Group: "ci"}, Status: queen.AckCompleted}},
		Timers: []queen.Timer{{Queue: "queenbridge-retry.ci", Key: "4f1d/1", Partition: "9", Delay: 30 * time.Second,
			TransactionID: "4f1d/1/nonce", Payload: []byte(`{"queenbridge":1}`)}},
	}.Prepare()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Commit(context.Background(), settle)
	var refused *queen.RollbackError
	switch {
	case errors.As(err, &refused):
		fmt.Println("nothing was committed:", refused.Reason)
	case queen.Temporary(err):
		fmt.Println("send the same again")
	}
	// Output:
	// nothing was committed: ack_rejected
}

// A buffer stores what is added in the background, in batches; Close waits
// for it.
func ExampleBuffer_Add() {
	broker := answers(map[string]string{"/api/v1/push": `[{"status":"queued"},{"status":"queued"}]`})
	defer broker.Close()
	client, err := queen.New(queen.Config{URLs: []string{broker.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: client, Queue: "orders", Observer: queen.BufferObserver{
		Pushed:  func(items int, _ time.Duration) { fmt.Println("pushed", items) },
		Refused: func(it *queen.Item, err error) { fmt.Println("dropped", it.TransactionID, err) },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, id := range []string{"order:1", "order:2"} {
		if err := buffer.Add(ctx, queen.Item{Queue: "orders", Partition: "eu", TransactionID: id, Payload: []byte(`{}`)}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("closed:", buffer.Close(ctx))
	// Output:
	// pushed 2
	// closed: <nil>
}

// Items that belong together are submitted as one bundle: one push, one
// result, in time for whoever waits.
func ExampleBuffer_Submit() {
	broker := answers(map[string]string{"/api/v1/push": `[{"status":"queued"},{"status":"duplicate"}]`})
	defer broker.Close()
	client, err := queen.New(queen.Config{URLs: []string{broker.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: client, Queue: "orders", Linger: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = buffer.Close(context.Background()) }()
	bundle := queen.NewBundle()
	for _, id := range []string{"order:1", "order:2"} {
		*bundle.Add() = queen.Item{Queue: "orders", Partition: "eu", TransactionID: id, Payload: []byte(`{}`)}
	}
	result := buffer.Submit(bundle, time.Now().Add(5*time.Second))
	fmt.Println("stored:", result == queen.BundleStored, "known before:", bundle.Count(queen.PushDuplicate))
	// Output:
	// stored: true known before: 1
}
