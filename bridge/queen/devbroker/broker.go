package devbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Config makes a Broker.
type Config struct {
	// Dir is the directory that holds the data; it is made when missing and
	// locked while the broker is open. Empty: memory only.
	Dir string
	// Token is the bearer token asked on every route but /health and
	// /metrics*. Empty: open to everybody.
	Token string
	// Logger defaults to discarding.
	Logger *slog.Logger
	// CacheBytes bounds the recent messages kept in memory beside the store.
	// Defaults to 32 MiB. Without Dir everything is in memory and this has no
	// effect.
	CacheBytes int64
	// RetentionInterval is the time between two rounds that delete what
	// retention no longer keeps. Defaults to 5 seconds, 1.3.0's.
	RetentionInterval time.Duration
	// RiderRate limits KV and timer calls and the transactions that carry
	// them, per second, with a burst of twice as many; KV reads have twice
	// that rate. 1.3.0 has 100 (queen-contract.md §8.3, §10). Defaults to 0,
	// no limit.
	RiderRate float64
	// ForgetAfter makes the broker forget the id of a message that long after
	// its push, consumed or not, as 1.3.0 does after 900 seconds or more: a
	// retry, dlq or partial ack of it is then unresolvable (§5.2). Defaults to
	// 0, never. For tests.
	ForgetAfter time.Duration
	// Generation is the generation of Queen whose answers are given: 1, which
	// is 1.3.0, or 2, which differs where queen-contract.md says that 2.x does.
	// Partitions keep the form of id they were made with: a directory stays
	// with one generation. Defaults to 1. For tests.
	Generation int
	// Intercept is asked before each request what shall go wrong with it. Nil:
	// nothing. For tests.
	Intercept func(*http.Request) Fault
}

// Broker is an embedded Queen broker. It is an http.Handler, safe for
// concurrent use, and must be closed.
type Broker struct {
	cfg    Config
	log    *slog.Logger
	store  store
	key    hashKey
	routes router

	started     time.Time
	startMicros micros

	writes, reads *rate.Limiter // nil without RiderRate
	bodies        sync.Pool     // read buffers, *[]byte
	requests      atomic.Uint64
	served        served
	namespaces    *regexp.Regexp // what a KV namespace looks like

	mu       sync.Mutex // guards what follows
	st       *state
	batch    *batch // gathers changes for the next commit; nil in memory mode
	inflight *batch // being committed
	cache    cache
	down     error // why nothing can be stored; nil when all is well
	closed   bool
	counts   counters

	alarm chan struct{} // the clock has something earlier to wait for
	kick  chan struct{} // the writer has something to commit
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

var errClosed = errors.New("the broker is closed")

// Open starts a broker on the data in cfg.Dir, or an empty one in memory. It
// fails when another process has the directory, and says which directory.
func Open(cfg Config) (*Broker, error) {
	if err := checkGeneration(cfg.Generation); err != nil {
		return nil, fmt.Errorf("open broker: %w", err)
	}
	b := newBroker(cfg)
	if err := b.openStore(); err != nil {
		return nil, err
	}
	b.wg.Go(b.runClock)
	b.wg.Go(b.runRetention)
	if b.store.durable() {
		b.wg.Go(b.runWriter)
	}
	return b, nil
}

func newBroker(cfg Config) *Broker {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.CacheBytes <= 0 {
		cfg.CacheBytes = 32 << 20
	}
	if cfg.RetentionInterval <= 0 {
		cfg.RetentionInterval = 5 * time.Second
	}
	b := &Broker{
		cfg: cfg, log: cfg.Logger, started: time.Now(),
		alarm: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		cache:      cache{limit: cfg.CacheBytes},
		namespaces: regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`),
	}
	b.startMicros = microsOf(b.started)
	b.routes = newRouter(b.table())
	if r := cfg.RiderRate; r > 0 {
		b.writes = rate.NewLimiter(rate.Limit(r), int(2*r))
		b.reads = rate.NewLimiter(rate.Limit(2*r), int(4*r))
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

func (b *Broker) openStore() (err error) {
	if b.cfg.Dir == "" {
		b.store = memoryStore{}
	} else if b.store, err = openSQLite(b.cfg.Dir, b.log); err != nil {
		return fmt.Errorf("open broker data in %s: %w", b.cfg.Dir, err)
	}
	if err := b.load(); err != nil {
		return errors.Join(fmt.Errorf("read broker data in %s: %w", b.cfg.Dir, err), b.store.close())
	}
	return nil
}

// Close answers parked pops, commits what is pending and releases the
// directory. Requests that come later are refused with 503.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.wg.Wait()
	return b.store.close()
}

// now is the time, monotonic within one run: a clock set back must not
// reorder messages.
func (b *Broker) now() micros { return b.startMicros.add(time.Since(b.started)) }

// update runs change with the state to itself and returns when what it did,
// and what it saw, is durable. It fails when nothing can be stored.
func (b *Broker) update(change func()) error {
	b.mu.Lock()
	if err := b.usable(); err != nil {
		b.mu.Unlock()
		return err
	}
	change()
	t := b.ticket()
	b.mu.Unlock()
	return t.wait()
}

// view is update for what changes nothing and acknowledges nothing.
func (b *Broker) view(look func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return err
	}
	look()
	return nil
}

func (b *Broker) usable() error {
	if b.closed {
		return errClosed
	}
	return b.down
}
