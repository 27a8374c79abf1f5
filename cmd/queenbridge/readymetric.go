package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// readiness shows what /readyz says as metrics, for alerts.
type readiness struct {
	judge           func() (lines []string, ready bool)
	ready, problems *prometheus.Desc
}

func newReadiness(ctx context.Context, checks []check) readiness {
	return readiness{
		judge:    func() ([]string, bool) { return judge(ctx, checks) },
		ready:    prometheus.NewDesc("queenbridge_ready", "1 where /readyz answers 200.", nil, nil),
		problems: prometheus.NewDesc("queenbridge_problems", "What /readyz finds wrong, also where the process is ready all the same (degraded).", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (r readiness) Describe(out chan<- *prometheus.Desc) { out <- r.ready; out <- r.problems }

// Collect implements prometheus.Collector.
func (r readiness) Collect(out chan<- prometheus.Metric) {
	lines, ready := r.judge()
	value := 0.0
	if ready {
		value = 1
	}
	out <- prometheus.MustNewConstMetric(r.ready, prometheus.GaugeValue, value)
	out <- prometheus.MustNewConstMetric(r.problems, prometheus.GaugeValue, float64(len(lines)))
}
