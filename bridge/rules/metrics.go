package rules

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
)

// metrics are the catalog's. Labels are the kinds and fixed words.
type metrics struct {
	inUse   *prometheus.GaugeVec
	invalid *prometheus.GaugeVec
	drain   prometheus.Gauge
	reads   *prometheus.CounterVec
	writes  *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		inUse: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "queenbridge_rules", Help: "Resources in use, by kind and owner (file, api)."}, []string{"kind", "owner"}),
		invalid: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "queenbridge_rules_invalid", Help: "Stored resources that are not in use: /readyz and /v1 say why."}, []string{"kind"}),
		drain: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "queenbridge_rules_draining", Help: "Routes that were deleted and still have retries or dead letters on their way, and targets that go with them."}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queenbridge_rules_reads_total", Help: "Looks at the stored resources, by result (ok, error)."}, []string{"result"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queenbridge_rules_changes_total", Help: "Changes of stored resources made by this process, by kind."}, []string{"kind"}),
	}
	for _, kind := range bridge.Kinds() {
		m.invalid.WithLabelValues(string(kind)).Set(0)
	}
	if r != nil {
		r.MustRegister(m.inUse, m.invalid, m.drain, m.reads, m.writes)
	}
	return m
}

func (m *metrics) observe(c *Catalog) {
	counts := map[[2]string]float64{}
	invalid := map[bridge.Kind]float64{}
	for _, e := range c.entries {
		owner := "api"
		if e.File {
			owner = "file"
		}
		if e.InUse {
			counts[[2]string{string(e.Resource.Kind), owner}]++
		} else {
			invalid[e.Resource.Kind]++
		}
	}
	m.inUse.Reset()
	for labels, n := range counts {
		m.inUse.WithLabelValues(labels[:]...).Set(n)
	}
	for _, kind := range bridge.Kinds() {
		m.invalid.WithLabelValues(string(kind)).Set(invalid[kind])
	}
	m.drain.Set(float64(len(c.Draining())))
}

func (m *metrics) read(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.reads.WithLabelValues(result).Inc()
}
