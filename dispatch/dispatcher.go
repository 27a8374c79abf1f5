package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
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
	// NewSender makes the Sender of a target; required. An error fails New.
	NewSender func(bridge.Target) (Sender, error)
	// Logger defaults to discarding.
	Logger *slog.Logger
	// Metrics registers the dispatcher's metrics. Nil: they are kept to itself.
	Metrics prometheus.Registerer
	// StopTimeout bounds Run after its context ended. Defaults to 30 seconds.
	StopTimeout time.Duration
}

// Defaults of Config.
const (
	defaultMaxInFlight = 256
	defaultConcurrency = 50
	defaultStopTimeout = 30 * time.Second
)

// Dispatcher takes events from Queen and calls functions. See New and Run.
type Dispatcher struct {
	queen       Queen
	log         *slog.Logger
	m           *metrics
	limiter     *limiter
	bundler     *bundler
	acker       *acker
	counts      *counts
	routes      []*route
	lateTimers  bool
	stopTimeout time.Duration
	stopped     atomic.Bool
	started     atomic.Bool

	// The stages of a stop, set by Run: taking ends first, then calling, then
	// settling.
	taking, calling, settling context.Context

	// goroutines runs everything: nothing is unsettled when it is idle.
	goroutines goroutines
}

// route is a bridge.Route at work.
type route struct {
	d          *Dispatcher
	cfg        bridge.Route
	group      string
	retryQueue string
	target     *target
	policy     bridge.Policy
	filter     *filter.Filter // nil: every event is wanted
	timeout    time.Duration
	claim      *claim
	memo       *memo
	log        *slog.Logger
	m          routeMetrics
	status     status
	careful    atomic.Int64 // until when single messages are popped in order: unix nanoseconds
}

// target is a bridge.Target at work.
type target struct {
	cfg    bridge.Target
	sender Sender
	share  *share
}

// New makes a Dispatcher; it calls nobody. The error names the route or target
// that is wrong.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Queen == nil || cfg.NewSender == nil {
		return nil, errors.New("dispatch: Queen and NewSender are required")
	}
	d := &Dispatcher{queen: cfg.Queen, log: cfg.Logger, lateTimers: firesLate(cfg.Health), stopTimeout: cfg.StopTimeout}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.stopTimeout <= 0 {
		d.stopTimeout = defaultStopTimeout
	}
	var err error
	if d.m, err = newMetrics(cfg.Metrics); err != nil {
		return nil, err
	}
	pool := cfg.Settings.MaxInFlight
	if pool <= 0 {
		pool = defaultMaxInFlight
	}
	d.limiter, d.goroutines.log = newLimiter(pool), d.log
	d.bundler, d.acker, d.counts = newBundler(d), newAcker(d), &counts{d: d}
	targets, err := d.newTargets(cfg, pool)
	if err != nil {
		return nil, err
	}
	for _, rc := range cfg.Routes {
		r, err := d.newRoute(rc, targets[rc.Target])
		if err != nil {
			return nil, err
		}
		d.routes = append(d.routes, r)
	}
	return d, nil
}

// newTargets makes the targets. One of several gets at most half the pool: a
// hanging function must not take the slots of the others.
func (d *Dispatcher) newTargets(cfg Config, pool int) (map[string]*target, error) {
	targets := make(map[string]*target, len(cfg.Targets))
	for _, tc := range cfg.Targets {
		sender, err := cfg.NewSender(tc)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", tc.Name, err)
		}
		limit := tc.Concurrency
		if limit <= 0 {
			limit = defaultConcurrency
		}
		limit = min(limit, pool)
		if len(cfg.Targets) > 1 {
			limit = min(limit, max(1, pool/2))
		}
		targets[tc.Name] = &target{cfg: tc, sender: sender, share: d.limiter.newShare(limit, tc.Paused)}
	}
	return targets, nil
}

func (d *Dispatcher) newRoute(cfg bridge.Route, t *target) (*route, error) {
	if t == nil {
		return nil, fmt.Errorf("route %s: there is no target %q", cfg.Name, cfg.Target)
	}
	policy, problems := bridge.NewPolicy(cfg)
	for _, p := range problems {
		if !p.Warning {
			return nil, fmt.Errorf("route %s: %s", cfg.Name, p)
		}
	}
	wanted, err := newFilter(cfg)
	if err != nil {
		return nil, err
	}
	limit := t.share.max
	if cfg.Concurrency > 0 {
		limit = min(limit, cfg.Concurrency)
	}
	r := &route{
		d: d, cfg: cfg, group: cfg.Group, retryQueue: bridge.RetryQueue(cfg.Name), target: t, policy: policy, filter: wanted,
		timeout: attemptTimeout(t.cfg), claim: d.limiter.newClaim(t.share, limit), memo: newMemo(),
		log: d.log.With(slog.String(keyRoute, cfg.Name), slog.String(keyTarget, t.cfg.Name)),
		m:   d.m.of(cfg.Name, t.cfg.Name),
	}
	if r.group == "" {
		r.group = cfg.Name
	}
	return r, nil
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
	d.taking, stopTaking = context.WithCancelCause(base)
	d.calling, stopCalling = context.WithCancel(base)
	d.settling, stopSettling = context.WithCancel(base)
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
	d.closeSenders()
	d.stopped.Store(true)
	return nil
}

func (d *Dispatcher) closeSenders() {
	for _, r := range d.routes {
		if c, ok := r.target.sender.(interface{ Close() }); ok {
			c.Close()
		}
	}
}

// begin starts the pollers. A paused route takes no events, but its dead
// letters are filed.
func (d *Dispatcher) begin() {
	if d.lateTimers {
		d.spawn(func() { d.keepAwake(d.taking) })
	}
	for _, r := range d.routes {
		feeds := []*feed{r.deadFeed()}
		if !r.cfg.Paused {
			feeds = append(feeds, r.sourceFeed(), r.retryFeed())
		}
		for _, f := range feeds {
			d.spawn(func() { f.run(d.taking) })
		}
	}
}

func (d *Dispatcher) spawn(f func()) { d.goroutines.spawn(f) }

func stack() slog.Attr { return slog.String("stack", string(debug.Stack())) }
