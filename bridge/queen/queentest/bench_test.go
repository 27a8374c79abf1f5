package queentest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// BenchmarkBroker measures the embedded broker on disk, over a socket and with
// its answers durable, and beside it a real Queen where QUEEN_REAL_URL names
// one (bridge/queen/queentest/real.sh run go test -run '^$' -bench Broker …).
// Both are driven by the same client; a row of the real one is the baseline of
// the same row of the embedded one.
func BenchmarkBroker(b *testing.B) {
	b.Run("embedded", func(b *testing.B) {
		broker, err := devbroker.Open(devbroker.Config{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = broker.Close() }()
		server := httptest.NewServer(broker)
		defer server.Close()
		benchBroker(b, server.URL)
	})
	if url := os.Getenv("QUEEN_REAL_URL"); url != "" {
		b.Run("real", func(b *testing.B) { benchBroker(b, url) })
	}
}

// row is one shape of pushes (queen-contract.md §16). Each push touches
// partitions of them, out of as many as exist.
type row struct{ items, partitions, of, flights int }

var rows = []row{
	{1, 1, 1, 16}, {10, 1, 1, 16}, {100, 1, 1, 16}, {100, 16, 16, 16}, {100, 64, 64, 16}, {100, 100, 1000, 16},
	{64, 1, 1, 1}, {16, 1, 1, 4}, {4, 1, 1, 16},
}

func benchBroker(b *testing.B, url string) {
	client, err := queen.New(queen.Config{URLs: []string{url}})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for _, r := range rows {
		b.Run(fmt.Sprintf("push/items=%d/partitions=%d/of=%d/flights=%d", r.items, r.partitions, r.of, r.flights), func(b *testing.B) {
			benchPush(b, client, r)
		})
	}
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("consume/batch=%d/flights=16", batch), func(b *testing.B) { benchConsume(b, client, batch) })
	}
}

// payloads are envelopes of about 1 KiB as an ingress pushes them: the body is
// a string with words, numbers, ids and digests. A payload of one repeated
// letter would flatter whoever compresses.
var payloads = makePayloads(512)

func makePayloads(n int) [][]byte {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	all := make([][]byte, n)
	for i := range all {
		var body strings.Builder
		fmt.Fprintf(&body, `{"action":"opened","number":%d,"repository":{"id":%d,"full_name":"acme/%x"},"commits":[`, i, random.Uint64(), random.Uint32())
		for body.Len() < 700 {
			fmt.Fprintf(&body, `{"id":"%016x%016x%08x","message":"change %d of %x","added":[]},`,
				random.Uint64(), random.Uint64(), random.Uint32(), random.IntN(100), random.Uint32())
		}
		body.WriteString(`{}]}`)
		all[i] = fmt.Appendf(nil, `{"queenbridge":1,"id":"github:%016x","source":"github","type":"push","headers":[["x-github-event","push"]],"body":%q}`,
			random.Uint64(), body.String())
	}
	return all
}

// push makes the items of one push; n tells the pushes of a run apart.
func (r row) push(queueName string, n int64) []queen.Item {
	items := make([]queen.Item, r.items)
	first := int(n) * r.partitions
	for i := range items {
		items[i] = queen.Item{
			Queue: queueName, Partition: strconv.Itoa((first + i%max(r.partitions, 1)) % max(r.of, 1)),
			TransactionID: fmt.Sprintf("%d-%d", n, i), Payload: payloads[(int(n)*31+i)%len(payloads)],
		}
	}
	return items
}

func benchPush(b *testing.B, client *queen.Client, r row) {
	name := "bench-" + rand.Text()
	if r.partitions == 1 { // every flight has a partition of its own, as lanes do
		r.partitions = 0
	}
	r.create(b, client, name)
	var n atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	b.ResetTimer()
	inFlights(r.flights, func(flight int) {
		for {
			at := n.Add(1)
			if at > int64(b.N) {
				return
			}
			items := r.push(name, at)
			if r.partitions == 0 {
				for i := range items {
					items[i].Partition = strconv.Itoa(flight)
				}
			}
			begun := time.Now()
			verdicts, err := client.Push(b.Context(), items)
			if err != nil || verdicts[0].Status != queen.PushQueued {
				b.Errorf("push: %v %v", verdicts, err)
				return
			}
			mu.Lock()
			took = append(took, time.Since(begun))
			mu.Unlock()
		}
	})
	report(b, b.N*r.items, took)
}

// create makes the partitions of a row that has more than a push touches.
func (r row) create(b *testing.B, client *queen.Client, name string) {
	b.Helper()
	if r.of <= r.partitions {
		return
	}
	for first := 0; first < r.of; first += 100 {
		items := make([]queen.Item, min(100, r.of-first))
		for i := range items {
			items[i] = queen.Item{Queue: name, Partition: strconv.Itoa(first + i), TransactionID: "create", Payload: []byte(`{}`)}
		}
		if _, err := client.Push(b.Context(), items); err != nil {
			b.Fatal(err)
		}
	}
}

func benchConsume(b *testing.B, client *queen.Client, batch int) {
	name := "bench-" + rand.Text()
	total := b.N * batch
	fill(b, client, name, total)
	var left atomic.Int64
	left.Store(int64(total))
	var mu sync.Mutex
	var took []time.Duration
	ctx, all := context.WithCancel(b.Context()) // ends the polls that wait when nothing is left
	defer all()
	b.ResetTimer()
	inFlights(16, func(int) {
		for ctx.Err() == nil {
			begun := time.Now()
			popped, err := client.Pop(ctx, queen.PopRequest{
				Queue: name, Group: "g", Batch: batch, Partitions: 1, Lease: time.Minute, SubscriptionMode: "all", Wait: time.Second,
			})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				b.Error(err)
				return
			}
			if len(popped.Messages) == 0 {
				continue
			}
			acks := make([]queen.Ack, len(popped.Messages))
			for i, m := range popped.Messages {
				acks[i] = queen.Ack{TransactionID: m.TransactionID, PartitionID: m.PartitionID, Lease: popped.Lease, Status: queen.AckCompleted}
			}
			if _, err := client.AckBatch(b.Context(), acks); err != nil {
				b.Error(err)
				return
			}
			if left.Add(-int64(len(acks))) <= 0 {
				all()
			}
			mu.Lock()
			took = append(took, time.Since(begun))
			mu.Unlock()
		}
	})
	report(b, total, took)
}

// fill pushes total messages over 16 partitions.
func fill(b *testing.B, client *queen.Client, name string, total int) {
	b.Helper()
	for n := 0; n*100 < total; n++ {
		r := row{items: min(100, total-n*100), partitions: 16, of: 16}
		if _, err := client.Push(b.Context(), r.push(name, int64(n))); err != nil {
			b.Fatal(err)
		}
	}
}

func inFlights(n int, run func(flight int)) {
	var wg sync.WaitGroup
	for flight := range n {
		wg.Go(func() { run(flight) })
	}
	wg.Wait()
}

func report(b *testing.B, items int, took []time.Duration) {
	b.Helper()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(items)/b.Elapsed().Seconds(), "items/s")
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
}
