package queen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Pusher stores items in Queen; a *Client is one. Push must return one verdict
// per item, in order, or an error; an error means that items may or may not be
// stored. It must honour ctx, end by itself in time and not keep items after
// it returned nil. It is called from several goroutines at once.
type Pusher interface {
	Push(ctx context.Context, items []Item) ([]PushVerdict, error)
}

// BufferConfig makes a Buffer. Its defaults are the official clients'
// (queen-contract.md §12).
type BufferConfig struct {
	// Pusher stores the items. Required.
	Pusher Pusher
	// Queue is the queue of every item. Required.
	Queue string
	// Linger is how long a push that is not full waits for more items.
	// Defaults to 1 second. Negative: it starts as soon as none is under way.
	Linger time.Duration
	// MaxItems and MaxBytes (of payloads) make a push full; a larger bundle is
	// pushed alone. They default to 100 and 4 MiB.
	MaxItems, MaxBytes int
	// MaxPending and MaxPendingBytes bound what waits or is being pushed; at
	// the bound Add and Submit wait. They default to four full pushes.
	MaxPending, MaxPendingBytes int
	// RetryEvery is the pause after a push that failed; the broker's
	// Retry-After, up to a minute, beats it where it is longer. Defaults to
	// 250 ms.
	RetryEvery time.Duration
	// RetryMax, where it is longer than RetryEvery, lets the pause double up
	// to it, each ± 50 %. Defaults to RetryEvery.
	RetryMax time.Duration
	// Observer is told what happens, for metrics.
	Observer BufferObserver
	// Logger defaults to discarding.
	Logger *slog.Logger
}

// BufferObserver is told what a Buffer does. Each function may be nil; none
// may block, keep its arguments or call the Buffer.
type BufferObserver struct {
	// Pending tells how many items are accepted and not decided.
	Pending func(items int)
	// Pushed is called after each push, whatever came of it.
	Pushed func(items int, took time.Duration)
	// Failed is called after a push that failed as a whole.
	Failed func(err error)
	// Refused is called for an item that Queen will never take: it is
	// dropped.
	Refused func(item *Item, err error)
	// Decided is called for each bundle whose items all have a verdict.
	Decided func(waited time.Duration)
}

// closeTimeout bounds the flush of Close (queen-contract.md §12).
const closeTimeout = 30 * time.Second

// ErrBufferClosed says that a Buffer takes nothing any more.
var ErrBufferClosed = errors.New("the buffer is closed")

// UnstoredError is a Buffer that was closed before all it held was stored. A
// push that was cut off may have stored some of it all the same.
type UnstoredError struct {
	Queue string
	Items int
}

func (e *UnstoredError) Error() string {
	return fmt.Sprintf("close buffer: %d items for queue %q not stored", e.Items, e.Queue)
}

// Buffer is a group commit of pushes in front of one queue. Safe for
// concurrent use.
//
// A push starts once it is full or has waited for Linger, one at a time; more
// fly side by side only while full ones wait. A partition never has two
// pushes under way. What a push failed to store goes back to the front, so
// each partition's items are stored in the order in which they came. Each item
// is judged by its own verdict; one that makes Queen refuse a whole push is
// found by pushing the halves, and refused alone.
//
// A Buffer without work costs neither goroutine nor timer.
type Buffer struct {
	pusher  Pusher
	queue   string
	limits  bufferLimits
	observe BufferObserver
	logger  *slog.Logger

	// life ends every push that is still under way when the buffer is cut
	// off. A push outlives the callers whose items are in it, so no caller's
	// context can stand for it.
	life   context.Context
	end    context.CancelFunc
	pushes sync.WaitGroup

	// mu guards all that follows; nothing slow happens under it.
	mu    sync.Mutex
	lanes map[string]*lane
	// blocked bundles wait to be admitted, waiting ones for a push.
	blocked, waiting bundleList
	inFlight         []*batch
	spare            []*batch
	starting         bool   // a pusher is about to begin
	pending          amount // admitted and not decided
	eligible         amount // waiting in lanes that no push holds
	pass             uint64 // number of the last selection
	arrivals         uint64 // number of the last bundle
	flushes          []*flush
	notBefore        time.Time
	retry            *backoff.ExponentialBackOff
	failures         int // failed pushes in a row
	timer            *time.Timer
	armed            time.Time // when timer fires; zero: it does not
	closing          bool      // takes nothing new
	closed           bool      // pushes nothing any more
}

type bufferLimits struct {
	full, pending        amount
	linger               time.Duration
	retryEvery, retryMax time.Duration
}

// NewBuffer makes a Buffer; nothing runs until it is used. Close it.
func NewBuffer(cfg BufferConfig) (*Buffer, error) {
	if cfg.Pusher == nil {
		return nil, errors.New("buffer: a Pusher is required")
	}
	if err := checkQueue(cfg.Queue); err != nil {
		return nil, fmt.Errorf("buffer: %w", err)
	}
	b := &Buffer{
		pusher: cfg.Pusher, queue: cfg.Queue, limits: newBufferLimits(&cfg), observe: cfg.Observer.filled(),
		logger: cfg.Logger, lanes: make(map[string]*lane),
	}
	if b.logger == nil {
		b.logger = slog.New(slog.DiscardHandler)
	}
	b.retry = b.limits.newRetry()
	b.life, b.end = context.WithCancel(context.Background())
	return b, nil
}

func newBufferLimits(cfg *BufferConfig) bufferLimits {
	full := amount{orDefault(cfg.MaxItems, 100), orDefault(cfg.MaxBytes, 4<<20)}
	l := bufferLimits{
		full:    full,
		pending: amount{orDefault(cfg.MaxPending, 4*full.items), orDefault(cfg.MaxPendingBytes, 4*full.bytes)},
		linger:  cfg.Linger, retryEvery: orDefault(cfg.RetryEvery, 250*time.Millisecond), retryMax: cfg.RetryMax,
	}
	if l.linger == 0 {
		l.linger = time.Second
	}
	return l
}

func orDefault[T int | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// newRetry yields the pauses after failed pushes, without end.
func (l *bufferLimits) newRetry() *backoff.ExponentialBackOff {
	multiplier, spread := 2.0, 0.5
	if l.retryMax <= l.retryEvery {
		multiplier, spread = 1, 0
	}
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(l.retryEvery),
		backoff.WithMultiplier(multiplier),
		backoff.WithRandomizationFactor(spread),
		backoff.WithMaxInterval(max(l.retryMax, l.retryEvery)),
		backoff.WithMaxElapsedTime(0),
	)
}

// filled has every function.
func (o BufferObserver) filled() BufferObserver {
	if o.Pending == nil {
		o.Pending = func(int) {}
	}
	if o.Pushed == nil {
		o.Pushed = func(int, time.Duration) {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Refused == nil {
		o.Refused = func(*Item, error) {}
	}
	if o.Decided == nil {
		o.Decided = func(time.Duration) {}
	}
	return o
}

// Add hands an item over to be stored in the background, and waits only while
// the buffer is full: until ctx ends, whose error it then returns, with the
// item not taken. ErrBufferClosed says the same of a buffer that is closed. An
// item that Queen would refuse or lose by its names is refused here.
//
// A nil error does not mean that the item is stored: it is tried until it is,
// until Queen refuses it for good (BufferObserver.Refused) or until Close. Its
// payload must not be changed any more.
func (b *Buffer) Add(ctx context.Context, item Item) error {
	if err := b.check(&item); err != nil {
		return fmt.Errorf("add to buffer: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g := &Bundle{background: true}
	g.adopt(item)
	switch b.enqueue(g) {
	case waiting:
		return nil
	case outside:
		return ErrBufferClosed
	}
	var r BundleResult
	select {
	case r = <-g.done:
	case <-ctx.Done():
		if b.withdraw(g) {
			return ctx.Err()
		}
		r = <-g.done
	}
	if r == BundleStopped {
		return ErrBufferClosed
	}
	return nil
}

func (b *Buffer) check(item *Item) error {
	if item.Queue != b.queue {
		return fmt.Errorf("the item is for queue %q, the buffer for %q", clip(item.Queue, 64), b.queue)
	}
	return item.check()
}

// Submit hands a bundle over and waits until it is decided, at its deadline at
// the latest; the zero time is none. Every item must be of the buffer's queue.
// An empty bundle is stored.
//
// After BundleExpired and BundleStopped the bundle stays the buffer's for
// good: a push may still hold its payloads. After any other result it is the
// caller's again.
func (b *Buffer) Submit(g *Bundle, deadline time.Time) BundleResult {
	if len(g.entries) == 0 {
		return BundleStored
	}
	g.deadline = deadline
	b.enqueue(g)
	return <-g.done
}

// flush waits until every bundle up to a number is decided.
type flush struct {
	upTo uint64
	done chan struct{}
}

// Flush pushes what is held without lingering and waits until all that came
// before is decided, or ctx ends, whose error it then returns.
func (b *Buffer) Flush(ctx context.Context) error {
	b.mu.Lock()
	f := &flush{upTo: b.arrivals, done: make(chan struct{})}
	b.flushes = append(b.flushes, f)
	b.checkFlushes()
	if !b.closed {
		b.pump(time.Now())
	}
	b.mu.Unlock()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.dropFlush(f)
		return ctx.Err()
	}
}

// Close takes nothing new, flushes for 30 seconds or until ctx ends, then cuts
// off what is left and waits for it. An *UnstoredError tells how much that
// was. It may be called again, and then does nothing.
func (b *Buffer) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = b.Flush(ctx) // what it leaves is counted below
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
	b.pushes.Wait()
	if left := b.abandon(); left > 0 {
		return &UnstoredError{Queue: b.queue, Items: left}
	}
	return nil
}
