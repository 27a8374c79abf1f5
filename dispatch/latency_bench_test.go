package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// latencyRate is how many events begin each second: far from what can be done,
// so that nothing queues.
const latencyRate = 200

// BenchmarkLatency is how long an event takes from its producer to the
// function, at a rate where nothing queues: posted to it, and pushed to the
// in-memory embedded broker and delivered. What the bridge adds is the
// difference.
func BenchmarkLatency(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		l := newLatency(b)
		l.measure(b, func(body string) error {
			resp, err := http.Post(l.server.URL, "application/json", strings.NewReader(body))
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		})
	})
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		b.Run(string(ordering), func(b *testing.B) { benchLatency(b, ordering) })
	}
}

func benchLatency(b *testing.B, ordering bridge.Ordering) {
	l := newLatency(b)
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		b.Fatal(err)
	}
	r, target := testRoute("r", "q"), testTarget("fn")
	r.Ordering, target.HTTP.URL = ordering, l.server.URL
	d, err := dispatch.New(dispatch.Config{
		Routes: []bridge.Route{r}, Targets: []bridge.Target{target}, Queen: client,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	l.measure(b, func(body string) error {
		n, _, _ := strings.Cut(body, ".")
		_, err := client.Push(b.Context(), []queen.Item{{Queue: "q", Partition: "p" + n[len(n)-1:], TransactionID: body, Payload: []byte(body)}})
		return err
	})
	stop()
	<-ended
}

// latency is a function that notes how old what it gets is.
type latency struct {
	server *httptest.Server
	epoch  time.Time

	mu   sync.Mutex
	took []time.Duration
	one  chan struct{} // gets one for each call
}

func newLatency(b *testing.B) *latency {
	l := &latency{epoch: time.Now(), one: make(chan struct{}, 1<<20)}
	l.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived := time.Since(l.epoch)
		body, _ := io.ReadAll(r.Body)
		_, begun, _ := strings.Cut(string(body), ".")
		if at, err := strconv.ParseInt(begun, 10, 64); err == nil && at > 0 {
			l.mu.Lock()
			l.took = append(l.took, arrived-time.Duration(at))
			l.mu.Unlock()
		}
		l.one <- struct{}{}
	}))
	b.Cleanup(l.server.Close)
	return l
}

// measure sends b.N events, whose bodies are numbers: which, and when.
func (l *latency) measure(b *testing.B, send func(body string) error) {
	b.Helper()
	if err := send("1.0"); err != nil { // connections, the first pop
		b.Fatal(err)
	}
	<-l.one
	b.ResetTimer()
	tick := time.NewTicker(time.Second / latencyRate)
	defer tick.Stop()
	var wg sync.WaitGroup
	for i := range b.N {
		<-tick.C
		wg.Go(func() {
			// A digit in front of the time keeps its zeros.
			if err := send(fmt.Sprintf("1%d.%019d", i, time.Since(l.epoch))); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	for range b.N {
		<-l.one
	}
	slices.Sort(l.took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(l.took[(len(l.took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
