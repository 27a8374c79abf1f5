package devbroker_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// sink is a ResponseWriter that keeps the body of the last answer.
type sink struct {
	header http.Header
	status int
	body   []byte
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { s.body = append(s.body[:0], p...); return len(p), nil }

// post makes a request that can be sent again and again.
type poster struct {
	req  *http.Request
	body bytes.Reader
	sink sink
}

func newPoster(b *testing.B, method, path string) *poster {
	req, err := http.NewRequestWithContext(b.Context(), method, path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	return &poster{req: req, sink: sink{header: http.Header{}}}
}

func (p *poster) send(broker *devbroker.Broker, body []byte) int {
	p.body.Reset(body)
	p.req.Body, p.req.ContentLength = io.NopCloser(&p.body), int64(len(body))
	broker.ServeHTTP(&p.sink, p.req)
	return p.sink.status
}

var payload1K = `{"queenbridge":1,"body":"` + strings.Repeat(`{\"a\":\"0123456789\",\"b\":[1,2,3]}`, 30) + `"}`

// pushBody builds a push of n items over some partitions; the ids are made
// unique by a prefix of ten digits at each mark.
func pushBody(n, partitions int) (body []byte, marks []int) {
	var out bytes.Buffer
	out.WriteString(`{"items":[`)
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"queue":"q","partition":"p%d","transactionId":"`, i%partitions)
		marks = append(marks, out.Len())
		fmt.Fprintf(&out, `0000000000-%d","payload":%s}`, i, payload1K)
	}
	out.WriteString(`]}`)
	return out.Bytes(), marks
}

func number(body []byte, marks []int, n int64) {
	digits := strconv.FormatInt(1e9+n, 10)
	for _, at := range marks {
		copy(body[at:], digits)
	}
}

func stores(b *testing.B, run func(b *testing.B, cfg devbroker.Config)) {
	b.Run("memory", func(b *testing.B) { run(b, devbroker.Config{}) })
	b.Run("sqlite", func(b *testing.B) { run(b, devbroker.Config{Dir: b.TempDir()}) })
}

func reportItems(b *testing.B, items int) {
	total := float64(b.N) * float64(items)
	b.ReportMetric(total/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/item")
}

// BenchmarkPush pushes from 16 producers at once.
func BenchmarkPush(b *testing.B) {
	for _, size := range []struct{ items, partitions int }{{1, 1}, {10, 1}, {100, 1}, {100, 16}, {100, 64}} {
		b.Run(fmt.Sprintf("items=%d/partitions=%d", size.items, size.partitions), func(b *testing.B) {
			stores(b, func(b *testing.B, cfg devbroker.Config) {
				a := open(b, cfg)
				a.configure("q", obj{"retentionEnabled": true, "retentionSeconds": 1})
				var n atomic.Int64
				b.SetParallelism(8)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					p := newPoster(b, "POST", "/api/v1/push")
					body, marks := pushBody(size.items, size.partitions)
					for pb.Next() {
						number(body, marks, n.Add(1))
						if p.send(a.broker, body) != http.StatusCreated {
							b.Fatalf("push: %s", p.sink.body)
						}
					}
				})
				reportItems(b, size.items)
			})
		})
	}
}

// BenchmarkPopAck pops full batches and completes them.
func BenchmarkPopAck(b *testing.B) {
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			stores(b, func(b *testing.B, cfg devbroker.Config) {
				a := open(b, cfg)
				fill := newPoster(b, "POST", "/api/v1/push")
				body, marks := pushBody(100, 16)
				pop := newPoster(b, "GET", "/api/v1/pop/queue/q?consumerGroup=g&subscriptionMode=all&partitions=10&leaseSeconds=60&batch="+strconv.Itoa(batch))
				ack := newPoster(b, "POST", "/api/v1/ack/batch")
				stock, pushed, items := 0, int64(0), 0
				var acks []byte
				b.ReportAllocs()
				for b.Loop() {
					if stock < batch {
						b.StopTimer()
						for range 20 {
							pushed++
							number(body, marks, pushed)
							fill.send(a.broker, body)
						}
						stock += 2000
						b.StartTimer()
					}
					if pop.send(a.broker, nil) != http.StatusOK {
						b.Fatalf("pop: %d %s", pop.sink.status, pop.sink.body)
					}
					var n int
					acks, n = acksOf(acks[:0], pop.sink.body)
					if ack.send(a.broker, acks) != http.StatusOK || bytes.Contains(ack.sink.body, []byte(`"success":false`)) {
						b.Fatalf("ack: %s", ack.sink.body)
					}
					stock -= n
					items += n
				}
				b.ReportMetric(float64(items)/b.Elapsed().Seconds(), "items/s")
			})
		})
	}
}

// acksOf builds the ack of everything in a pop, without decoding it.
func acksOf(dst, body []byte) ([]byte, int) {
	n := 0
	dst = append(dst, `{"consumerGroup":"g","acknowledgments":[`...)
	at := bytes.Index(body, []byte(`"messages":[`))
	for rest := body[at:]; ; n++ {
		i := bytes.Index(rest, []byte(`{"id":"`))
		if i < 0 {
			break
		}
		rest = rest[i:]
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `{"transactionId":"`...), between(rest, `"transactionId":"`)...)
		rest = rest[bytes.Index(rest, []byte(`"producerSub"`)):]
		dst = append(append(dst, `","partitionId":"`...), between(rest, `"partitionId":"`)...)
		dst = append(append(dst, `","leaseId":"`...), between(rest, `"leaseId":"`)...)
		dst = append(dst, `","status":"completed"}`...)
	}
	return append(dst, `]}`...), n
}

func between(b []byte, mark string) []byte {
	b = b[bytes.Index(b, []byte(mark))+len(mark):]
	return b[:bytes.IndexByte(b, '"')]
}

// BenchmarkPushBesideFolds is how long a push of one item takes while others
// push so much that the journal is folded again and again.
func BenchmarkPushBesideFolds(b *testing.B) {
	a := open(b, devbroker.Config{Dir: b.TempDir()})
	a.configure("q", obj{"retentionEnabled": true, "retentionSeconds": 1})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		p := newPoster(b, "POST", "/api/v1/push")
		body, marks := pushBody(100, 64)
		for n := int64(1e6); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			number(body, marks, n)
			p.send(a.broker, body)
		}
	})
	p := newPoster(b, "POST", "/api/v1/push")
	body, marks := pushBody(1, 1)
	var took []time.Duration
	for b.Loop() {
		number(body, marks, int64(len(took)))
		start := time.Now()
		if p.send(a.broker, body) != http.StatusCreated {
			b.Fatalf("push: %s", p.sink.body)
		}
		took = append(took, time.Since(start))
	}
	close(stop)
	wg.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1e3, "max-ms")
}
