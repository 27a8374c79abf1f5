package dispatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Queen is what the dispatcher needs of Queen; *queen.Client is one. Errors
// are read with queen.Uncertain, queen.Denied and the error types of that
// package.
type Queen interface {
	Pop(ctx context.Context, r queen.PopRequest) (queen.Popped, error)
	Ack(ctx context.Context, ack queen.Ack) (queen.AckVerdict, error)
	AckBatch(ctx context.Context, acks []queen.Ack) ([]queen.AckVerdict, error)
	Extend(ctx context.Context, l queen.Lease, d time.Duration) (renewed int, err error)
	Commit(ctx context.Context, p queen.Prepared) (queen.Commit, error)
	Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error)
	KV(ctx context.Context, ops []queen.KVOp) ([]queen.KVResult, error)
	Schedule(ctx context.Context, timers []queen.Timer) ([]queen.TimerStatus, error)
	CancelTimer(ctx context.Context, queue, key string) (queen.TimerStatus, error)
	Message(ctx context.Context, partitionID, txn string) (queen.StoredMessage, error)
	Partitions(ctx context.Context, queue string) (map[string]string, error)
	Trace(ctx context.Context, t queen.Trace) error
	Inspector
}

var _ Queen = (*queen.Client)(nil)

// Config makes a Dispatcher. It is not kept.
type Config struct {
	// Routes and Targets are valid and have their defaults filled in.
	Routes  []bridge.Route
	Targets []bridge.Target
	// Settings bound the dispatcher as a whole. MaxInFlight 0 means 256.
	Settings bridge.DispatchConfig
	// Queen is required.
	Queen Queen
	// Health is what the broker said of itself (queen.Client.Probe): cures for
	// known faults are chosen by version. Zero: none is applied.
	Health queen.Health
	// NewSender makes the Sender of a target; required. An error fails New, or
	// Update.
	NewSender func(bridge.Target) (Sender, error)
	// Setup makes ready in Queen (its queues) what a route needs that Update
	// added, before it takes its first event. It is called from a goroutine of
	// the route, and ctx ends with the route. After an error, which is logged,
	// the route begins all the same. Nil: there is nothing to set up.
	Setup func(ctx context.Context, r bridge.Route) error
	// Logger defaults to discarding.
	Logger *slog.Logger
	// Metrics registers the dispatcher's metrics. Nil: they are kept to itself.
	Metrics prometheus.Registerer
	// TracerProvider makes a span of each call, of kind client, linked to the
	// spans that made its events; the function gets the call's traceparent. It
	// must not block. Nil: no spans, the event's own traceparent passes through.
	TracerProvider trace.TracerProvider
	// StopTimeout bounds Run after its context ended. Defaults to 30 seconds.
	StopTimeout time.Duration

	// Tests make these smaller. Zero: standardRoom, parkedRoutes.
	room   room
	parked *int
}

// Defaults of Config.
const (
	defaultMaxInFlight = 256
	defaultConcurrency = 50
	defaultStopTimeout = 30 * time.Second
)

// Dispatcher takes events from Queen and calls functions. See New, Run and
// Update. Its methods may be called at once, from any goroutine.
type Dispatcher struct {
	queen       Queen
	log         *slog.Logger
	m           *metrics
	spans       trace.Tracer // nil: none
	limiter     *limiter
	bundler     *bundler
	acker       *acker
	counts      *counts
	recent      *recent
	tracer      *tracer // nil: nothing is traced
	pool        int
	lateTimers  bool
	stopTimeout time.Duration
	newSender   func(bridge.Target) (Sender, error)
	setup       func(context.Context, bridge.Route) error
	room        room
	parked      int          // up to how many routes every queue is polled long
	routes      atomic.Int64 // how many there are
	paused      paused
	testing     chan struct{} // holds a token for each test-fire under way
	stopped     atomic.Bool
	started     atomic.Bool
	claimed     atomic.Int64 // bytes of large payloads that are read back
	outage      outage

	since time.Time // of Run

	// The stages of a stop, set by Run: taking ends first, then calling, then
	// settling.
	taking, calling, settling context.Context

	// goroutines runs everything: nothing is unsettled when it is idle.
	goroutines goroutines

	updating sync.Mutex // held by Update: the last call wins

	mu      sync.Mutex
	open    bool // Run was called, and what is paused is known: routes may begin
	made    bool // New has ended: what is added from now on is set up by us
	order   []string
	slots   map[string]*slot // by route
	targets map[string]*target
}

// New makes a Dispatcher; it calls nobody. The error names every route and
// target that is wrong.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Queen == nil || cfg.NewSender == nil {
		return nil, errors.New("dispatch: Queen and NewSender are required")
	}
	d := &Dispatcher{
		queen: cfg.Queen, log: cfg.Logger, lateTimers: firesLate(cfg.Health), stopTimeout: cfg.StopTimeout,
		newSender: cfg.NewSender, setup: cfg.Setup, room: cmp.Or(cfg.room, standardRoom), pool: cfg.Settings.MaxInFlight,
		testing: make(chan struct{}, maxTestFires), slots: map[string]*slot{}, targets: map[string]*target{},
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.stopTimeout <= 0 {
		d.stopTimeout = defaultStopTimeout
	}
	if d.parked = parkedRoutes; cfg.parked != nil {
		d.parked = *cfg.parked
	}
	if d.pool <= 0 {
		d.pool = defaultMaxInFlight
	}
	var err error
	if cfg.TracerProvider != nil {
		d.spans = cfg.TracerProvider.Tracer(tracerName)
	}
	if d.m, err = newMetrics(cfg.Metrics); err != nil {
		return nil, err
	}
	if err := (flowMetrics{d}).register(cfg.Metrics); err != nil {
		return nil, err
	}
	d.limiter, d.goroutines.log = newLimiter(d.pool, d.flowChanged), d.log
	d.paused.kv, d.paused.all = NewPauses(cfg.Queen), map[pauseKey]pauseEntry{}
	d.bundler, d.acker, d.counts = newBundler(d), newAcker(d), &counts{d: d}
	d.recent = newRecent(time.Now())
	if cfg.Settings.Traces {
		d.tracer = &tracer{queue: make(chan queen.Trace, traceQueue), dropped: d.m.untraced}
	}
	if err := d.Update(cfg.Routes, cfg.Targets); err != nil {
		return d, err
	}
	d.made = true
	return d, nil
}

// Run dispatches until ctx ends and all it started has stopped: it stops
// taking events and gives back what was not begun, lets running calls finish,
// then cancels them, and settles what is known throughout. What it could not
// settle comes again when its lease runs out; nothing is lost. A Dispatcher
// runs once. The error is nil, unless Run was called twice.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.started.Swap(true) {
		return errors.New("dispatch: Run was called before")
	}
	base := context.WithoutCancel(ctx)
	var stopTaking context.CancelCauseFunc
	var stopCalling, stopSettling context.CancelFunc
	d.mu.Lock()
	d.taking, stopTaking = context.WithCancelCause(base)
	d.since = time.Now()
	d.calling, stopCalling = context.WithCancel(base)
	d.settling, stopSettling = context.WithCancel(base)
	d.mu.Unlock()
	defer stopSettling()
	defer stopCalling()
	d.begin()
	<-ctx.Done()
	d.log.Info("dispatcher stops: no more events are taken")
	deadline := time.Now().Add(d.stopTimeout)
	stopTaking(errStopping)
	// A sixth of the time is left for settling what a cancelled call leaves.
	if !d.goroutines.idleBy(deadline.Add(-d.stopTimeout / 6)) {
		d.log.Warn("dispatcher stops: running calls are cancelled")
		stopCalling()
		if !d.goroutines.idleBy(deadline) {
			d.log.Error("dispatcher stopped before everything was settled: it comes again when its lease runs out")
		}
	}
	stopCalling()
	stopSettling()
	d.goroutines.close()
	d.stopped.Store(true)
	d.release()
	return nil
}

// begin starts what the routes need.
func (d *Dispatcher) begin() {
	if d.lateTimers {
		d.spawn(func() { d.keepAwake(d.taking) })
	}
	d.spawn(func() { d.watchOrphans(d.taking) })
	d.spawn(func() { d.countPending(d.taking) })
	if d.tracer != nil {
		d.spawn(func() { d.tracer.run(d.taking, d) })
	}
	d.spawn(func() { d.followPauses(d.taking) })
	d.spawn(func() { keeper{d}.run(d.taking) })
}

// letBegin lets the routes begin, once; mu is held.
func (d *Dispatcher) letBegin() {
	if d.open {
		return
	}
	d.open = true
	for _, s := range d.slots {
		d.turn(s)
	}
}

// spawn runs f in a goroutine; false: the dispatcher has ended.
func (d *Dispatcher) spawn(f func()) bool { return d.goroutines.spawn(f) }

func stack() slog.Attr { return slog.String("stack", string(debug.Stack())) }
