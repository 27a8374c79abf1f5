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
	"syscall"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// benchBody is a webhook of 1 KiB.
var benchBody = []byte(`{"action":"opened","text":"` + strings.Repeat("x", 1000) + `"}`)

// BenchmarkDeliver is deliveries per second, CPU time and allocations from a
// full queue on the in-memory embedded broker, beside a bare net/http client
// loop of the same concurrency against the same function. Broker, function and
// dispatcher share the process. With ordering partition at most 64 calls run
// at once, one in each partition.
func BenchmarkDeliver(b *testing.B) {
	for _, concurrency := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("bare/concurrency=%d", concurrency), func(b *testing.B) { benchBare(b, concurrency) })
		for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
			b.Run(fmt.Sprintf("%s/concurrency=%d", ordering, concurrency), func(b *testing.B) { benchDeliver(b, ordering, concurrency) })
		}
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

func benchBare(b *testing.B, concurrency int) {
	url, done := benchFunction(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	used := cpuTime(b)
	var wg sync.WaitGroup
	for range concurrency {
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
	reportCalls(b, used)
}

// reportCalls reports what the calls of a benchmark took, which began with so
// much CPU time used.
func reportCalls(b *testing.B, used time.Duration) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/float64(b.N), "cpu-µs/op")
}

// cpuTime is what this process has used of the CPUs.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchDeliver(b *testing.B, ordering bridge.Ordering, concurrency int) {
	url, done := benchFunction(b)
	var pops, settles atomic.Int64
	broker, err := devbroker.Open(devbroker.Config{Intercept: func(r *http.Request) devbroker.Fault {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/pop"):
			pops.Add(1)
		case strings.HasPrefix(r.URL.Path, "/api/v1/ack"), strings.HasPrefix(r.URL.Path, "/api/v1/transaction"):
			settles.Add(1)
		}
		return devbroker.Fault{}
	}})
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
	target.HTTP.URL, target.Concurrency = url, concurrency
	d, err := dispatch.New(dispatch.Config{
		Routes: []bridge.Route{r}, Targets: []bridge.Target{target}, Queen: client, Settings: bridge.DispatchConfig{MaxInFlight: concurrency},
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	b.ReportAllocs()
	b.ResetTimer()
	used := cpuTime(b)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	<-done
	b.StopTimer()
	reportCalls(b, used)
	b.ReportMetric(float64(pops.Load())/float64(b.N), "pops/op")
	b.ReportMetric(float64(settles.Load())/float64(b.N), "settles/op")
	stop()
	<-ended
	if n, err := client.Depth(context.WithoutCancel(ctx), "q", "r"); err != nil || n != 0 {
		b.Errorf("%d messages left, %v", n, err)
	}
}

// fill pushes n events of ours, over 64 partitions of a queue.
func fill(b *testing.B, client *queen.Client, queueName string, n int) {
	b.Helper()
	fillOver(b, client, queueName, 0, n, 64)
}

// fillOver pushes the events with the numbers from up to n.
func fillOver(b *testing.B, client *queen.Client, queueName string, from, n, partitions int) {
	b.Helper()
	for n > from {
		items := make([]queen.Item, min(n-from, 500))
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
			items[i] = queen.Item{Queue: queueName, Partition: fmt.Sprint("p", (n-i)%partitions), TransactionID: e.ID, Payload: e.AppendPayload(nil)}
		}
		if _, err := client.Push(b.Context(), items); err != nil {
			b.Fatal(err)
		}
		n -= len(items)
	}
}
