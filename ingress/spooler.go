package ingress

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// spooler stands between the batcher and Queen for the sources that want it:
// a batch that Queen does not take goes to the spool, and is replayed. While
// the spool holds events of a queue, new ones of that queue join it, so each
// partition keeps its order. Safe for concurrent use; nil where there is no
// spool.
type spooler struct {
	spool  *Spool
	queen  Pusher
	logger *slog.Logger
	// patience is how long a push may take before Queen counts as away.
	patience time.Duration

	spooled, replayed, refused *prometheus.CounterVec

	life    context.Context
	end     context.CancelFunc
	replays sync.WaitGroup
	mu      sync.Mutex
	active  map[string]bool // queues being replayed
	closing bool
}

// maxPatience bounds the wait for Queen: who waits holds a connection.
const maxPatience = 2 * time.Second

// defaultSpoolBytes is the bound where the settings name none.
const defaultSpoolBytes = 1 << 30

// newSpooler opens the spool; nil where none is configured.
func newSpooler(c Config, enqueueTimeout time.Duration, logger *slog.Logger) (*spooler, error) {
	if c.Settings.Spool.Dir == "" {
		return nil, nil
	}
	limit := int64(c.Settings.Spool.MaxBytes)
	if limit == 0 {
		limit = defaultSpoolBytes
	}
	spool, err := OpenSpool(c.Settings.Spool.Dir, SpoolOptions{MaxBytes: limit})
	if err != nil {
		return nil, err
	}
	s := &spooler{
		spool: spool, queen: c.Queen, logger: logger, patience: min(enqueueTimeout/2, maxPatience),
		spooled:  counter("spooled_total", "Events written to the local spool.", "queue"),
		replayed: counter("spool_replayed_total", "Events of the local spool that Queen has taken.", "queue"),
		refused:  counter("spool_refused_total", "Events of the local spool that Queen will never take; they are kept.", "queue"),
		active:   make(map[string]bool),
	}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.register(c.Metrics); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	if spool.torn > 0 {
		logger.LogAttrs(s.life, slog.LevelWarn, msgTorn, slog.Int64(keyBytes, spool.torn))
	}
	return s, nil
}

func (s *spooler) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	value := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricPrefix + name, Help: help}, read)
	}
	for _, c := range []prometheus.Collector{
		s.spooled, s.replayed, s.refused,
		value("spool_bytes", "Bytes of events in the local spool.", func() float64 { _, b, _ := s.spool.totals(); return float64(b) }),
		value("spool_events", "Events in the local spool that wait for Queen.", func() float64 { e, _, _ := s.spool.totals(); return float64(e) }),
		value("spool_refused_events", "Events in the local spool that Queen will never take.", func() float64 { _, _, n := s.spool.totals(); return float64(n) }),
		value("spool_oldest_age_seconds", "Age of the oldest event in the local spool that waits for Queen.", s.oldestAge),
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *spooler) oldestAge() float64 {
	at, err := s.spool.store.oldest()
	if err != nil || at.IsZero() {
		return 0
	}
	return time.Since(at).Seconds()
}

// start replays what an earlier process left.
func (s *spooler) start() {
	if s == nil {
		return
	}
	for _, name := range s.spool.waiting() {
		s.replay(name, slog.LevelInfo, msgSpoolFound)
	}
}

// full says that a bundle would have to join the spool and does not fit.
func (s *spooler) full(g *queen.Bundle) bool {
	if !s.spool.waits(g.Item(0).Queue) {
		return false
	}
	need := int64(0)
	for i := range g.Len() {
		need += spoolBytes(g.Item(i))
	}
	return !s.spool.room(need)
}

// spoolReserve is how much room counts as room for more, in bytes.
const spoolReserve = 64 << 10

// SpoolsAll says that every source accepts events while Queen is away: each
// that is not paused spools, and the spool has room. False where none does.
func (s *Server) SpoolsAll() bool {
	sources := s.catalog.Load().sources
	spooled := 0
	for _, src := range sources {
		switch {
		case src.spooled:
			spooled++
		case !src.paused:
			return false
		}
	}
	return spooled > 0 && s.spooler != nil && s.spooler.spool.room(spoolReserve)
}

// replay starts the replay of a queue, unless it runs, and says why.
func (s *spooler) replay(name string, level slog.Level, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.active[name] {
		return
	}
	s.active[name] = true
	s.logger.LogAttrs(s.life, level, why, slog.String(keyQueue, name))
	s.replays.Go(func() { s.runReplay(name) })
}

func (s *spooler) runReplay(name string) {
	r := newReplay(s.spool, name, s.queen)
	r.onTaken = func(n int) { s.replayed.WithLabelValues(name).Add(float64(n)) }
	r.onRefused = func(id string, err error) {
		s.refused.WithLabelValues(name).Inc()
		s.logger.LogAttrs(s.life, slog.LevelError, msgSpoolRefused,
			slog.String(keyQueue, name), slog.String(keyEvent, id), slog.Any(keyError, err))
	}
	r.onFailed = func(err error) {
		s.logger.LogAttrs(s.life, slog.LevelDebug, msgReplayFails, slog.String(keyQueue, name), slog.Any(keyError, err))
	}
	for {
		err := r.run(s.life)
		if err == nil {
			_ = s.spool.store.shrink() // it is only room
		}
		s.mu.Lock()
		if err != nil || !s.spool.waits(name) {
			s.active[name] = false
			s.mu.Unlock()
			s.logger.LogAttrs(s.life, slog.LevelInfo, msgReplayed, slog.String(keyQueue, name), slog.Int(keyItems, r.taken))
			return
		}
		s.mu.Unlock()
	}
}

// close ends the replays; what is left stays for the next process.
func (s *spooler) close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.end()
	s.replays.Wait()
	if events, _, _ := s.spool.totals(); events > 0 {
		s.logger.LogAttrs(context.Background(), slog.LevelWarn, msgSpoolLeft, slog.Int64(keyItems, events))
	}
	return s.spool.Close()
}

// pusher is what the buffers of spooling sources push to.
func (s *spooler) pusher() Pusher { return spoolPusher{s} }

type spoolPusher struct{ *spooler }

// Push stores items in Queen or in the spool. What is in the spool has the
// verdict buffered: it is durable, but not in Queen yet.
func (p spoolPusher) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	if p.spool.waits(items[0].Queue) {
		return p.keep(items, nil)
	}
	patience := p.patience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2) // the requests want to hear of it in time
	}
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	verdicts, err := p.queen.Push(attempt, items)
	if err != nil && refusedForGood(err) {
		return nil, err // the buffer looks for the item at fault
	}
	if err != nil || len(verdicts) != len(items) {
		verdicts = make([]queen.PushVerdict, len(items))
		for i := range verdicts {
			verdicts[i].Status = queen.PushFailed
		}
	}
	return p.keep(items, verdicts)
}

// keep writes to the spool what Queen did not store; nil verdicts mean all.
func (p spoolPusher) keep(items []queen.Item, verdicts []queen.PushVerdict) ([]queen.PushVerdict, error) {
	out := make([]queen.PushVerdict, len(items))
	var left []queen.Item
	for i := range items {
		if verdicts != nil && verdicts[i].Status != queen.PushBuffered && verdicts[i].Status != queen.PushFailed {
			out[i] = verdicts[i]
			continue
		}
		out[i].Status = queen.PushBuffered
		left = append(left, items[i])
	}
	if len(left) == 0 {
		return out, nil
	}
	if err := p.spool.append(left); err != nil {
		return nil, err
	}
	p.spooled.WithLabelValues(left[0].Queue).Add(float64(len(left)))
	p.replay(left[0].Queue, slog.LevelWarn, msgSpooling)
	return out, nil
}
