package ingress

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Pusher stores items in Queen. Push must return one verdict per item, in
// order, or an error; an error means that items may or may not be stored. It
// must honour ctx and not keep items after it returned nil. It is called from
// several goroutines at once.
type Pusher interface {
	Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error)
}

// batcher is a group commit in front of Queen, with one batchQueue per queue.
// A queue without work costs neither goroutine nor timer.
type batcher struct {
	pusher  Pusher
	limits  batchLimits
	logger  *slog.Logger
	metrics *metrics
	queues  map[string]*batchQueue // never changed after New

	// life ends every push that is still under way at the end of the stop
	// time. A push outlives the requests that are in it, so no request's
	// context can stand for it.
	life context.Context
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
	pushes sync.WaitGroup
}

// batchLimits are the bounds of one queue.
type batchLimits struct {
	maxItems, maxBytes               int
	maxPendingItems, maxPendingBytes int
	linger                           time.Duration
	acceptBuffered                   bool
}

// newBatchLimits fills in the defaults of config.md. The bytes waiting for one
// queue are bounded by four full batches, like the items.
func newBatchLimits(c bridge.IngressConfig) batchLimits {
	l := batchLimits{
		maxItems: orDefault(c.Batch.MaxItems, 100), maxBytes: orDefault(int(c.Batch.MaxBytes), 4<<20),
		maxPendingItems: orDefault(c.Batch.MaxPending, 400), linger: c.Batch.Linger,
		acceptBuffered: c.AcceptBuffered,
	}
	l.maxPendingBytes = 4 * l.maxBytes
	return l
}

func orDefault[T int | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

func newBatcher(p Pusher, limits batchLimits, queues []string, logger *slog.Logger, m *metrics) *batcher {
	b := &batcher{pusher: p, limits: limits, logger: logger, metrics: m, queues: make(map[string]*batchQueue)}
	b.life, b.end = context.WithCancel(context.Background())
	for _, name := range queues {
		if b.queues[name] == nil {
			b.queues[name] = newBatchQueue(b, name)
		}
	}
	return b
}

// submit hands a group over and waits until it is decided, at its deadline at
// the latest. Every item must be of the queue named.
func (b *batcher) submit(queue string, g *group) result {
	b.queues[queue].enqueue(g)
	<-g.done
	return g.result
}

// launch runs push in a goroutine, unless the batcher is closed.
func (b *batcher) launch(push func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.pushes.Go(push)
	return true
}

// close cuts off what is left and waits for it. It returns how many items
// were not stored, by queue.
func (b *batcher) close() map[string]int {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
	b.pushes.Wait()
	left := make(map[string]int)
	for name, q := range b.queues {
		if n := q.abandon(); n > 0 {
			left[name] = n
		}
	}
	return left
}
