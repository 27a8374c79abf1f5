package ingress

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Pusher stores items in Queen; a *queen.Client is one.
type Pusher = queen.Pusher

// batcher is a group commit in front of Queen (design.md, "Batcher"): one
// buffer per queue.
type batcher struct {
	buffers map[string]*queen.Buffer // never changed after newBatcher
	// acceptBuffered takes Queen's own local spool for durable. It is not
	// synced to disk, and what it holds under some names is lost for good
	// (measured 1.3.0).
	acceptBuffered bool
}

// retryMax is the longest pause after failed pushes. The requests' own
// deadlines end the retries.
const retryMax = 4 * time.Second

func newBatcher(p Pusher, c bridge.IngressConfig, queues []string, logger *slog.Logger, m *metrics) (*batcher, error) {
	b := &batcher{buffers: make(map[string]*queen.Buffer), acceptBuffered: c.AcceptBuffered}
	for _, name := range queues {
		if b.buffers[name] != nil {
			continue
		}
		buffer, err := queen.NewBuffer(queen.BufferConfig{
			Pusher: p, Queue: name, MaxItems: c.Batch.MaxItems, MaxBytes: int(c.Batch.MaxBytes),
			MaxPending: orDefault(c.Batch.MaxPending, 400), Linger: orDefault(c.Batch.Linger, -1),
			RetryMax: retryMax, Observer: m.queue(name), Logger: logger,
		})
		if err != nil {
			return nil, err
		}
		b.buffers[name] = buffer
	}
	return b, nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// close cuts off what is left and waits for it. It returns how many items
// were not stored, by queue.
func (b *batcher) close() map[string]int {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // whoever waited has been waited for
	var mu sync.Mutex
	var closing sync.WaitGroup
	left := make(map[string]int)
	for name, buffer := range b.buffers {
		closing.Go(func() {
			var unstored *queen.UnstoredError
			if errors.As(buffer.Close(ended), &unstored) {
				mu.Lock()
				defer mu.Unlock()
				left[name] = unstored.Items
			}
		})
	}
	closing.Wait()
	return left
}
