package ingress_test

import (
	"bufio"
	"net"
	"slices"
	"sync"
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
