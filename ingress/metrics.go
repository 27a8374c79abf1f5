package ingress

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/signing"
)

// metrics are the counters of one Server. The source label is "" where no
// source was found, so that nobody outside can make labels.
type metrics struct {
	requests     *prometheus.CounterVec
	rejections   *prometheus.CounterVec
	events       *prometheus.CounterVec
	keyMissing   *prometheus.CounterVec
	secrets      *prometheus.CounterVec
	resends      *prometheus.CounterVec
	skew         *prometheus.HistogramVec
	lastVerified *prometheus.GaugeVec
	inFlight     prometheus.GaugeFunc

	confirmations *prometheus.CounterVec

	batchItems   *prometheus.HistogramVec
	batchWait    *prometheus.HistogramVec
	pushTime     *prometheus.HistogramVec
	pushFailures *prometheus.CounterVec
	batchPending *prometheus.GaugeVec
	itemsRefused *prometheus.CounterVec
}

const metricPrefix = "queenbridge_ingress_"

// newMetrics registers the metrics; nil registers them nowhere.
func newMetrics(r prometheus.Registerer, inFlight *atomic.Int64) (*metrics, error) {
	m := &metrics{
		requests:     counter("requests_total", "Requests answered.", "source", "code"),
		rejections:   counter("rejections_total", "Requests refused, by reason.", "source", "reason"),
		events:       counter("events_total", "Events by what Queen said of them.", "source", "verdict"),
		keyMissing:   counter("key_missing_total", "Events without an id of the provider; the body's hash stands in.", "source"),
		secrets:      counter("secret_matches_total", "Requests proven, by index of the secret that matched.", "source", "secret"),
		resends:      counter("resends_total", "Proven requests that the provider says it sends again.", "source"),
		skew:         histogram("timestamp_skew_seconds", "Receipt minus signed timestamp, of good signatures, whether the timestamp was taken or not.", skewBuckets(), "source"),
		lastVerified: gauge("last_verified_timestamp_seconds", "When the last request was proven.", "source"),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: metricPrefix + "in_flight", Help: "Requests being handled."},
			func() float64 { return float64(inFlight.Load()) }),
		confirmations: counter("confirmations_total", "Calls that confirm a subscription, by result.", "source", "result"),
		batchItems:    histogram("batch_items", "Items of a push.", prometheus.ExponentialBuckets(1, 2, 12), "queue"),
		batchWait:     histogram("queue_wait_seconds", "Time from the batcher to the verdict.", waitBuckets(), "queue"),
		pushTime:      histogram("push_seconds", "Time of a push.", waitBuckets(), "queue"),
		pushFailures:  counter("push_failures_total", "Pushes that failed as a whole.", "queue"),
		batchPending:  gauge("pending_items", "Items waiting or in flight.", "queue"),
		itemsRefused:  counter("items_refused_total", "Items Queen will never take.", "queue"),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range m.all() {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.rejections, m.events, m.keyMissing, m.secrets, m.resends, m.skew, m.lastVerified,
		m.inFlight, m.confirmations, m.batchItems, m.batchWait, m.pushTime, m.pushFailures, m.batchPending, m.itemsRefused}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPrefix + name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metricPrefix + name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: metricPrefix + name, Help: help, Buckets: buckets}, labels)
}

// waitBuckets go from 0.25 ms to 8 s, past the default enqueue timeout.
func waitBuckets() []float64 { return prometheus.ExponentialBuckets(0.00025, 2, 16) }

// skewBuckets surround the usual window of 300 s, both ways, and tell a clock
// that is a little off from a time zone and from a backlog of days.
func skewBuckets() []float64 {
	return []float64{-86400, -3600, -600, -300, -60, -10, -1, 0, 1, 5, 10, 30, 60, 120, 300, 600, 3600, 86400}
}

// queue books what the buffer of one queue does; its metrics are looked up
// once.
func (m *metrics) queue(name string) queen.BufferObserver {
	items, wait, push := m.batchItems.WithLabelValues(name), m.batchWait.WithLabelValues(name), m.pushTime.WithLabelValues(name)
	pending, before := m.batchPending.WithLabelValues(name), new(atomic.Int64) // two buffers may share a queue
	failures, refused := m.pushFailures.WithLabelValues(name), m.itemsRefused.WithLabelValues(name)
	return queen.BufferObserver{
		Pending: func(n int) { pending.Add(float64(int64(n) - before.Swap(int64(n)))) },
		Pushed: func(n int, took time.Duration) {
			items.Observe(float64(n))
			push.Observe(took.Seconds())
		},
		Failed:  func(error) { failures.Inc() },
		Refused: func(*queen.Item, error) { refused.Inc() },
		Decided: func(waited time.Duration) { wait.Observe(waited.Seconds()) },
	}
}

// sourceMetrics are the metrics of one source, those of the usual case looked
// up once.
type sourceMetrics struct {
	*metrics
	source            string
	buffered          string // the verdict where a spool holds an event: ours, or Queen's
	accepted          prometheus.Counter
	resends           prometheus.Counter
	queued, duplicate prometheus.Counter
	// lastVerified begins with the first proven request: a source that has had
	// none since the start is not one that went silent in 1970.
	lastVerified func() prometheus.Gauge
	skew         prometheus.Observer
	secrets      []prometheus.Counter
}

// source is the metrics of a source whose usual answer is status.
func (m *metrics) source(name string, status, secrets int) sourceMetrics {
	s := sourceMetrics{
		metrics: m, source: name, buffered: verdictBuffered,
		accepted:     m.requests.WithLabelValues(name, strconv.Itoa(status)),
		queued:       m.events.WithLabelValues(name, verdictQueued),
		duplicate:    m.events.WithLabelValues(name, verdictDuplicate),
		lastVerified: sync.OnceValue(func() prometheus.Gauge { return m.lastVerified.WithLabelValues(name) }),
		skew:         m.skew.WithLabelValues(name),
		resends:      m.resends.WithLabelValues(name),
	}
	for i := range secrets {
		s.secrets = append(s.secrets, m.secrets.WithLabelValues(name, strconv.Itoa(i)))
	}
	return s
}

// Verdicts of the events metric, besides Queen's own words.
const (
	verdictQueued    = "queued"
	verdictDuplicate = "duplicate"
	verdictRecent    = "recent" // known from a recent acknowledgement; Queen was not asked
	verdictTimeout   = "timeout"
	verdictRefused   = "refused"
	verdictBuffered  = "buffered"
	verdictStopped   = "stopped"
	verdictSpooled   = "spooled"    // in the local spool, on its way to Queen
	verdictSpoolFull = "spool_full" // Queen is away, and so is the room
)

// proven books a proof.
func (s *sourceMetrics) proven(p signing.Proof, resends int, now time.Time) {
	if resends > 0 {
		s.resends.Inc()
	}
	s.lastVerified().Set(float64(now.UnixMilli()) / 1000)
	s.skewed(p.Skew)
	if p.Secret >= 0 && p.Secret < len(s.secrets) {
		s.secrets[p.Secret].Inc()
	}
}

// skewed books how far a signed timestamp was from our clock; 0: there was none.
func (s *sourceMetrics) skewed(skew time.Duration) {
	if skew != 0 {
		s.skew.Observe(skew.Seconds())
	}
}

// stored books the verdicts of a bundle whose items are all safe.
func (s *sourceMetrics) stored(g *queen.Bundle, duplicates int) {
	s.duplicate.Add(float64(duplicates))
	queued := g.Count(queen.PushQueued)
	s.queued.Add(float64(queued))
	if buffered := g.Len() - queued - duplicates; buffered > 0 {
		s.events.WithLabelValues(s.source, s.buffered).Add(float64(buffered))
	}
}

// statusLabel is a status as a label, without an allocation for those we send.
func statusLabel(status int) string {
	switch status {
	case http.StatusOK:
		return "200"
	case http.StatusUnauthorized:
		return "401"
	case http.StatusNotFound:
		return "404"
	case http.StatusServiceUnavailable:
		return "503"
	}
	return strconv.Itoa(status)
}
