package dispatch_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// brokerChild makes the test binary an embedded broker over a folder, or in
// memory where it is empty.
const brokerChild = "QUEENBRIDGE_TEST_BROKER"

// serveBroker serves until its input ends, after it printed its URL.
func serveBroker(dir string) {
	broker, err := devbroker.Open(devbroker.Config{Dir: dir})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = broker.Close()
		os.Exit(0)
	}()
	panic(http.Serve(l, broker)) //nolint:gosec // G114: it ends with the benchmark
}

// scale is a dispatcher whose broker is a process of its own, so that memory
// and CPU time are the dispatcher's and its function's.
type scale struct {
	*testing.B
	client *queen.Client
	server *httptest.Server
	calls  atomic.Int64
	status atomic.Int64
	target bridge.Target
}

func newScale(b *testing.B) *scale {
	b.Helper()
	child := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0]) // ends with its input
	child.Env, child.Stderr = append(os.Environ(), brokerChild+"="), os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	s := &scale{B: b, target: testTarget("fn")}
	if s.client, err = queen.New(queen.Config{URLs: []string{strings.TrimSpace(url)}}); err != nil {
		b.Fatal(err)
	}
	s.status.Store(http.StatusOK)
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.calls.Add(1)
		w.WriteHeader(int(s.status.Load()))
	}))
	b.Cleanup(s.server.Close)
	s.target.HTTP.URL = s.server.URL
	return s
}

// run dispatches until the benchmark ends.
func (s *scale) run(routes ...bridge.Route) {
	s.Helper()
	d, err := dispatch.New(dispatch.Config{
		Routes: routes, Targets: []bridge.Target{s.target}, Queen: s.client,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) },
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	s.Cleanup(func() {
		stop()
		<-ended
	})
}

// until waits for a count to reach n.
func (s *scale) until(n int64, count func() int64) {
	s.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for count() < n {
		<-tick.C
	}
}

// idle reports memory, goroutines and what of a CPU is used while nothing
// happens.
func (s *scale) idle() {
	s.Helper()
	runtime.GC()
	s.ReportMetric(float64(heap())/(1<<20), "heap-MiB")
	s.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	const span = 3 * time.Second
	used := cpuTime(s.B)
	<-time.After(span)
	s.ReportMetric(100*float64(cpuTime(s.B)-used)/float64(span), "idle-cpu-%")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRoutes is deliveries per second over many routes of a target, and
// what they cost while there is nothing to do.
func BenchmarkRoutes(b *testing.B) {
	for _, routes := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			s := newScale(b)
			list := make([]bridge.Route, routes)
			for i := range list {
				list[i] = testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i))
				fill(b, s.client, list[i].Queue, b.N/routes+1)
			}
			b.ResetTimer()
			s.run(list...)
			n := int64(b.N/routes+1) * int64(routes)
			s.until(n, s.calls.Load)
			b.StopTimer()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
			s.idle()
		})
	}
}

// BenchmarkPartitions is deliveries per second from a queue of many
// partitions.
func BenchmarkPartitions(b *testing.B) {
	for _, partitions := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			s := newScale(b)
			n := max(b.N, partitions)
			fillOver(b, s.client, "q", 0, n, partitions)
			b.ResetTimer()
			s.run(testRoute("r", "q"))
			s.until(int64(n), s.calls.Load)
			b.StopTimer()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
			s.idle()
		})
	}
}

// BenchmarkPendingRetries is the memory of a dispatcher while ever more retries
// wait: QUEENBRIDGE_BENCH_RETRIES of them, 50 000 without it. They are Queen's,
// so it must not grow.
func BenchmarkPendingRetries(b *testing.B) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("QUEENBRIDGE_BENCH_RETRIES"), "50000"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := newScale(b)
		s.status.Store(http.StatusInternalServerError)
		r := testRoute("r", "q")
		r.Retry.Backoff = []time.Duration{24 * time.Hour}
		s.run(r)
		var heaps []uint64
		begun := time.Now()
		for part := range 5 {
			fillOver(b, s.client, "q", part*(n/5), (part+1)*(n/5), 64)
			s.until(int64((part+1)*(n/5)), func() int64 {
				pending, err := s.client.CountTimers(b.Context(), bridge.RetryQueue("r"), n)
				if err != nil {
					b.Fatal(err)
				}
				return int64(pending)
			})
			runtime.GC()
			heaps = append(heaps, heap())
		}
		b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "retries/s")
		b.ReportMetric(float64(heaps[0])/(1<<20), "heap-at-a-fifth-MiB")
		b.ReportMetric(float64(heaps[4])/(1<<20), "heap-MiB")
		b.ReportMetric(max(0, float64(heaps[4])-float64(heaps[0]))/float64(n-n/5), "bytes/retry")
	}
}
