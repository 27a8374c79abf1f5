package ingress_test

import (
	"bufio"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
)

func benchSource() bridge.Source {
	return bridge.Source{Name: "hook", Scheme: "github", Secrets: []bridge.Secret{benchSecret}}
}

// BenchmarkOpenLoop sends 10,000 requests a second whether or not earlier ones
// were answered, as the world does, and measures from the moment each was due.
func BenchmarkOpenLoop(b *testing.B) {
	const interval, connections = 100 * time.Microsecond, 256
	addr := benchServer(b, ingress.Config{Sources: []bridge.Source{benchSource()}, Queen: benchQueen(b)})
	due := make(chan int64, b.N)
	took := make([]time.Duration, b.N)
	var senders sync.WaitGroup
	start := time.Now()
	at := func(n int64) time.Time { return start.Add(time.Duration(n) * interval) }
	for range connections {
		senders.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			w, r := githubLoad(), bufio.NewReader(c)
			for n := range due {
				if _, err := c.Write(w.next(n)); err != nil {
					b.Error(err)
					return
				}
				if status, err := readAnswer(r); err != nil || status != 200 {
					b.Errorf("answer %d, %v; want 200", status, err)
					return
				}
				took[n] = time.Since(at(n))
			}
		})
	}
	b.ResetTimer()
	start = time.Now()
	for n := range int64(b.N) {
		for time.Now().Before(at(n)) {
			time.Sleep(time.Until(at(n)))
		}
		due <- n
	}
	close(due)
	senders.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// BenchmarkIdleConnections holds 5,000 connections between two requests and
// 500 in the middle of a body (both ends are this process, which may have
// 20,000 files open), and reports what all of it costs in memory,
// per connection and both ends together, while requests go on.
func BenchmarkIdleConnections(b *testing.B) {
	const idle, slow = 5_000, 500
	addr := benchServer(b, ingress.Config{Sources: []bridge.Source{benchSource()}, Queen: benchQueen(b)})
	before := inUse()
	var conns []net.Conn
	b.Cleanup(func() {
		for _, c := range conns {
			_ = c.Close()
		}
	})
	w := githubLoad()
	for n := range int64(idle + slow) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		conns = append(conns, c)
		wire := w.next(n)
		if n >= idle {
			wire = wire[:len(wire)-100]
		}
		if _, err := c.Write(wire); err != nil {
			b.Fatal(err)
		}
		if n >= idle {
			continue
		}
		if status, err := readAnswer(bufio.NewReader(c)); err != nil || status != 200 {
			b.Fatalf("answer %d, %v", status, err)
		}
	}
	held := float64(inUse()-before) / (idle + slow) / 1024
	var n atomic.Int64
	n.Store(idle + slow)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	conns = append(conns, c)
	r := bufio.NewReader(c)
	for b.Loop() {
		if _, err := c.Write(w.next(n.Add(1))); err != nil {
			b.Fatal(err)
		}
		if status, err := readAnswer(r); err != nil || status != 200 {
			b.Fatalf("answer %d, %v; want 200", status, err)
		}
	}
	b.ReportMetric(held, "KiB/conn")
}

// inUse is the memory of heap and stacks in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse) //nolint:gosec // far below 2^63
}
