package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// A route from a queue to a function: the event another client pushed fails
// once and comes back.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	calls := 0
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		fmt.Println("attempt", r.Header.Get("Queen-Attempt"), r.Header.Get("Content-Type"))
		if calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		stop()
	}))
	defer function.Close()

	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = broker.Close() }()
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.Push(ctx, []queen.Item{{Queue: "orders", Partition: "1", TransactionID: "order-17", Payload: []byte(`{"n":17}`)}}); err != nil {
		fmt.Println(err)
		return
	}

	d, err := dispatch.New(dispatch.Config{
		Queen: client,
		Targets: []bridge.Target{{
			Name: "billing", HTTP: &bridge.HTTPTarget{URL: function.URL, Timeout: time.Second},
		}},
		Routes: []bridge.Route{{
			Name: "orders-to-billing", Queue: "orders", Target: "billing", Ordering: bridge.OrderingNone,
			Retry: bridge.RetryPolicy{MaxAttempts: 3, MaxAge: time.Hour, Backoff: []time.Duration{10 * time.Millisecond}, Jitter: "none"},
		}},
		NewSender: func(t bridge.Target) (dispatch.Sender, error) {
			return httptarget.New(t, httptarget.Options{})
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := d.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// attempt 1 application/json
	// attempt 2 application/json
}
