package dispatch

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// flowMetrics shows the state of the targets as it is when it is asked for.
type flowMetrics struct {
	d *Dispatcher
}

// flowGauge is one gauge or counter of a target; value tells it, and whether it is shown.
type flowGauge struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *share, now time.Time) (v float64, shown bool)
}

var flowGauges = []flowGauge{
	gauge("limit", "Calls at once that the target gets now (adaptive).", func(s *share, _ time.Time) (float64, bool) {
		return float64(s.max), true
	}),
	gauge("waiting", "Events popped and waiting for a call.", func(s *share, _ time.Time) (float64, bool) {
		return float64(s.waiting), true
	}),
	gauge("breaker_state", "0 closed, 1 half-open, 2 open.", func(s *share, now time.Time) (float64, bool) {
		return float64(s.breaker.state(now)), s.breaker.cfg.Enabled
	}),
	gauge("held_seconds", "How long the target is still held or its breaker open.", func(s *share, now time.Time) (float64, bool) {
		return max(0, s.blockedUntil().Sub(now).Seconds()), true
	}),
	gauge("rate_tokens", "Calls that the rate limit lets begin now.", func(s *share, now time.Time) (float64, bool) {
		if s.rate == nil {
			return 0, false
		}
		return float64(s.rate.available(now)), true
	}),
	{targetDesc("rate_wait_seconds_total", "Time that popped events waited for the rate limit."), prometheus.CounterValue, func(s *share, _ time.Time) (float64, bool) {
		return s.rateWaited.Seconds(), s.rate != nil
	}},
	gauge("rate_alone", "1 while Queen hands out no tokens of a shared rate limit: each process keeps to the part it had.", func(s *share, _ time.Time) (float64, bool) {
		b, shared := s.rate.(*sharedBudget)
		if shared && b.own != nil {
			return 1, true
		}
		return 0, shared
	}),
	gauge("failing_seconds", "How long the target has been failing without one success.", func(s *share, _ time.Time) (float64, bool) {
		if s.failing.since.IsZero() {
			return 0, true
		}
		return s.failing.last.Sub(s.failing.since).Seconds(), true
	}),
	gauge("disabled", "1 where the bridge itself paused the target: it answered 410, or failed for disable_after.", func(s *share, _ time.Time) (float64, bool) {
		if s.disabled() {
			return 1, true
		}
		return 0, true
	}),
}

func gauge(name, help string, value func(*share, time.Time) (float64, bool)) flowGauge {
	return flowGauge{targetDesc(name, help), prometheus.GaugeValue, value}
}

func targetDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("queenbridge", "dispatch_target", name), help, []string{"target"}, nil)
}

// Describe implements prometheus.Collector.
func (m flowMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, g := range flowGauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m flowMetrics) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, s := range m.d.shares() {
		for _, g := range flowGauges {
			m.d.limiter.mu.Lock()
			v, shown := g.value(s, now)
			m.d.limiter.mu.Unlock()
			if shown {
				out <- prometheus.MustNewConstMetric(g.desc, g.kind, v, s.name)
			}
		}
	}
}

func (m flowMetrics) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	if err := reg.Register(m); err != nil {
		return fmt.Errorf("register metrics of dispatch: %w", err)
	}
	return nil
}
