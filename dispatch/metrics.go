package dispatch

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
)

// metrics are the dispatcher's. Labels are names of the configuration, status
// codes and fixed words.
type metrics struct {
	attempts *prometheus.CounterVec   // route, outcome, class, code
	latency  *prometheus.HistogramVec // route
	inFlight *prometheus.GaugeVec     // target
	retries  *prometheus.CounterVec   // route
	dead     *prometheus.CounterVec   // route, class
	replies  *prometheus.CounterVec   // route
	claims   *prometheus.CounterVec   // route
	lost     *prometheus.CounterVec   // route
	unknown  *prometheus.CounterVec   // route
	repeated *prometheus.CounterVec   // route
	popped   *prometheus.CounterVec   // route
	oldest   *prometheus.GaugeVec     // route
	filtered *prometheus.CounterVec   // route
	pending  *prometheus.GaugeVec     // route
	paused   *prometheus.GaugeVec     // kind, name
	orphans  *prometheus.GaugeVec     // kind
	settles  *prometheus.HistogramVec // kind
	resends  prometheus.Counter
	untraced prometheus.Counter
	opened   *prometheus.CounterVec // target
	alerts   *prometheus.CounterVec // target, after
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		attempts: counter("attempts_total", "Calls of functions. Of a call with several events the outcome is that of the first one that was not delivered.", "route", "outcome", "class", "code"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "attempt_seconds",
			Help: "Duration of calls.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 13),
		}, []string{"route"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "in_flight", Help: "Calls under way.",
		}, []string{"target"}),
		retries:  counter("retries_scheduled_total", "Retries and holds scheduled, as committed.", "route"),
		dead:     counter("dead_letters_total", "Deliveries that ended as dead letters, as committed.", "route", "class"),
		replies:  counter("replies_total", "Answers pushed to a reply queue.", "route"),
		claims:   counter("claims_total", "Payloads too large to travel with a retry, as stored.", "route"),
		lost:     counter("leases_lost_total", "Partitions whose lease was lost before they were settled.", "route"),
		unknown:  counter("unknown_outcomes_total", "Calls that may have run although they failed: timeouts, cut connections, cut answers.", "route"),
		repeated: counter("duplicates_suspected_total", "Delivered events that may be called again: their lease was lost before they were settled, or their retry came first.", "route"),
		popped:   counter("popped_total", "Messages popped.", "route"),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "oldest_event_seconds",
			Help: "Age of the oldest event of the last pop from the route's queue; 0: it was empty.",
		}, []string{"route"}),
		filtered: counter("filtered_total", "Events the route's filter did not want, as acked.", "route"),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "retries_pending",
			Help: "Retries of the route that wait in Queen, as last counted (each minute; every process counts all of them); 10000 means that many or more.",
		}, []string{"route"}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "paused", Help: "1 for each route and target that is paused in Queen.",
		}, []string{"kind", "name"}),
		orphans: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "orphaned",
			Help: "Retries, timers and dead letters that belong to no route, as last counted (hourly).",
		}, []string{"kind"}),
		settles: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "settle_messages",
			Help: "Messages per settle call.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}, []string{"kind"}),
		resends: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "settle_resends_total",
			Help: "Settles sent again because no definite answer came.",
		}),
		untraced: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "queenbridge", Subsystem: "dispatch", Name: "traces_dropped_total",
			Help: "Traces (dispatch.traces) that were not written: too many at once, or Queen did not take them.",
		}),
		opened: counter("target_breaker_opened_total", "Times that the breaker opened.", "target"),
		alerts: counter("target_failing_alerts_total", "Targets found failing for so long without one success.", "target", "after"),
	}
	return m, m.register(reg)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "queenbridge", Subsystem: "dispatch", Name: name, Help: help,
	}, labels)
}

func (m *metrics) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.attempts, m.latency, m.inFlight, m.retries, m.dead, m.replies, m.claims, m.lost, m.unknown, m.repeated, m.popped, m.oldest, m.filtered, m.pending, m.paused, m.orphans, m.settles, m.resends, m.untraced, m.opened, m.alerts} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("register metrics of dispatch: %w", err)
	}
	return nil
}

// routeMetrics are a route's, looked up once.
type routeMetrics struct {
	*metrics
	route     string
	delivered prometheus.Counter // of the most common answer, 200
	latency   prometheus.Observer
	inFlight  prometheus.Gauge
	popped    prometheus.Counter
	oldest    prometheus.Gauge
	filtered  prometheus.Counter
}

func (m *metrics) of(route, target string) routeMetrics {
	return routeMetrics{
		metrics: m, route: route,
		delivered: m.attempts.WithLabelValues(route, string(bridge.Delivered), "", "200"),
		latency:   m.latency.WithLabelValues(route),
		inFlight:  m.inFlight.WithLabelValues(target),
		popped:    m.popped.WithLabelValues(route),
		oldest:    m.oldest.WithLabelValues(route),
		filtered:  m.filtered.WithLabelValues(route),
	}
}

// forget removes what is counted of a route that is gone.
func (m *metrics) forget(route string) {
	of := prometheus.Labels{"route": route}
	m.latency.DeletePartialMatch(of)
	m.oldest.DeletePartialMatch(of)
	m.pending.DeletePartialMatch(of)
	for _, v := range []*prometheus.CounterVec{m.attempts, m.retries, m.dead, m.replies, m.claims, m.lost, m.unknown, m.repeated, m.popped, m.filtered} {
		v.DeletePartialMatch(of)
	}
}

// forgetTarget removes what is counted of a target that is gone.
func (m *metrics) forgetTarget(target string) {
	of := prometheus.Labels{"target": target}
	m.inFlight.DeletePartialMatch(of)
	for _, v := range []*prometheus.CounterVec{m.opened, m.alerts} {
		v.DeletePartialMatch(of)
	}
}

// attempted counts a call; out is what became of its event, or of the first
// event of several that was not delivered.
func (m *routeMetrics) attempted(resp *bridge.Response, out *bridge.Outcome) {
	m.latency.Observe(resp.Elapsed.Seconds())
	if out.Kind == bridge.Delivered && resp.Status == 200 {
		m.delivered.Inc()
		return
	}
	code := ""
	if resp.Err == nil {
		code = strconv.Itoa(resp.Status)
	}
	if mayHaveRun(resp, out) {
		m.unknown.WithLabelValues(m.route).Inc()
	}
	m.attempts.WithLabelValues(m.route, string(out.Kind), string(out.Failure.Class), code).Inc()
}
