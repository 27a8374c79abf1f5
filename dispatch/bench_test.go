package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

const benchConcurrency = 50

// benchBody is a webhook of 1 KiB.
var benchBody = []byte(`{"action":"opened","text":"` + strings.Repeat("x", 1000) + `"}`)

// BenchmarkDeliver is deliveries per second from a full queue on the in-memory
// embedded broker, beside a bare net/http client loop of the same concurrency
// against the same function.
func BenchmarkDeliver(b *testing.B) {
	b.Run("bare", benchBare)
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		b.Run(string(ordering), func(b *testing.B) { benchDeliver(b, ordering) })
	}
}

// benchFunction is a function that reads and answers; done is closed at the
// b.N-th call.
func benchFunction(b *testing.B) (url string, done <-chan struct{}) {
	b.Helper()
	var calls atomic.Int64
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == int64(b.N) {
			close(all)
		}
	}))
	b.Cleanup(server.Close)
	return server.URL, all
}

func benchBare(b *testing.B) {
	url, done := benchFunction(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchConcurrency}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range benchConcurrency {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				resp, err := client.Post(url, "application/json", bytes.NewReader(benchBody))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func benchDeliver(b *testing.B, ordering bridge.Ordering) {
	url, done := benchFunction(b)
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, client, "q", b.N)
	r := testRoute("r", "q")
	r.Ordering = ordering
	target := testTarget("fn")
	target.HTTP.URL, target.Concurrency = url, benchConcurrency
	d, err := dispatch.New(dispatch.Config{
		Routes: []bridge.Route{r}, Targets: []bridge.Target{target}, Queen: client,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	b.ReportAllocs()
	b.ResetTimer()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	<-done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	stop()
	<-ended
	if n, err := client.Depth(context.WithoutCancel(ctx), "q", "r"); err != nil || n != 0 {
		b.Errorf("%d messages left, %v", n, err)
	}
}

// fill pushes n events of ours, over 64 partitions of a queue.
func fill(b *testing.B, client *queen.Client, queueName string, n int) {
	b.Helper()
	for n > 0 {
		items := make([]queen.Item, min(n, 500))
		for i := range items {
			e := bridge.Event{
				ID: fmt.Sprint("github:", n-i), Source: "github", Type: "push", Received: time.Now(), Class: bridge.ClassVerified,
				Method: "POST", Path: "/in/github", ContentType: "application/json", Body: benchBody,
				Headers: []bridge.Header{
					{Name: "content-type", Value: "application/json"}, {Name: "user-agent", Value: "GitHub-Hookshot/044aadd"},
					{Name: "x-github-event", Value: "push"}, {Name: "x-github-delivery", Value: "72d3162e-cc78-11e3-81ab-4c9367dc0958"},
					{Name: "x-hub-signature-256", Value: "sha256=" + strings.Repeat("a", 64)},
				},
			}
			items[i] = queen.Item{Queue: queueName, Partition: fmt.Sprint("p", i%64), TransactionID: e.ID, Payload: e.AppendPayload(nil)}
		}
		if _, err := client.Push(b.Context(), items); err != nil {
			b.Fatal(err)
		}
		n -= len(items)
	}
}
