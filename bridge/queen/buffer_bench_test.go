package queen_test

import (
	"context"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func BenchmarkBufferAdd(b *testing.B) {
	buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: queued{}, Queue: "q", Linger: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = buffer.Close(b.Context()) }()
	it := item("id", "p")
	b.ReportAllocs()
	for b.Loop() {
		if err := buffer.Add(b.Context(), it); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBufferSubmit(b *testing.B) {
	buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: queued{}, Queue: "q", Linger: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = buffer.Close(b.Context()) }()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		g := queen.NewBundle()
		for pb.Next() {
			it := g.Add()
			it.Queue, it.Partition, it.TransactionID = "q", "p", "id"
			it.Payload = append(it.Payload, "{}"...)
			if r := buffer.Submit(g, time.Now().Add(time.Minute)); r != queen.BundleStored {
				b.Fatalf("result %d", r)
			}
			g.Reset()
		}
	})
}

// queued is a Pusher that stores nothing and says it did.
type queued struct{}

func (queued) Push(_ context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	verdicts := make([]queen.PushVerdict, len(items))
	for i := range verdicts {
		verdicts[i].Status = queen.PushQueued
	}
	return verdicts, nil
}
