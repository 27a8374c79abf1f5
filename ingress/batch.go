package ingress

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Pusher stores items in Queen; a *queen.Client is one.
type Pusher = queen.Pusher

// batcher is a group commit in front of Queen (design.md, "Batcher"): one
// buffer per queue, and another where the local spool stands behind it. Safe
// for concurrent use.
type batcher struct {
	config  bridge.BatchConfig
	pusher  Pusher
	spooler *spooler // nil without a spool
	logger  *slog.Logger
	metrics *metrics

	mu      sync.Mutex
	buffers map[bufferKey]*queen.Buffer
}

// bufferKey tells the buffers apart: events that may be spooled must not wait
// behind some that may not, nor these be answered as if they were.
type bufferKey struct {
	queue   string
	spooled bool
}

// retryMax is the longest pause after failed pushes. The requests' own
// deadlines end the retries.
const retryMax = 4 * time.Second

// buffer is the buffer of one of a source's queues.
func (b *batcher) buffer(s *source, name string) (*queen.Buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := bufferKey{name, s.spooled}
	if b.buffers[key] != nil {
		return b.buffers[key], nil
	}
	pusher := b.pusher
	if s.spooled {
		pusher = b.spooler.pusher()
	}
	c := b.config
	buffer, err := queen.NewBuffer(queen.BufferConfig{
		Pusher: pusher, Queue: name, MaxItems: c.MaxItems, MaxBytes: int(c.MaxBytes),
		MaxPending: orDefault(c.MaxPending, 400), Linger: orDefault(c.Linger, -1),
		RetryMax: retryMax, Observer: b.metrics.queue(name), Logger: b.logger,
	})
	if err == nil {
		b.buffers[key] = buffer
	}
	return buffer, err
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
	b.mu.Lock()
	buffers := maps.Clone(b.buffers)
	b.mu.Unlock()
	var mu sync.Mutex
	var closing sync.WaitGroup
	left := make(map[string]int)
	for key, buffer := range buffers {
		closing.Go(func() {
			var unstored *queen.UnstoredError
			if errors.As(buffer.Close(ended), &unstored) {
				mu.Lock()
				defer mu.Unlock()
				left[key.queue] += unstored.Items
			}
		})
	}
	closing.Wait()
	return left
}
