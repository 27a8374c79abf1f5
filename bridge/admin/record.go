package admin

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
)

// change is what the log keeps of a change: never a value, some are secrets.
type change struct {
	action        string
	resource      bridge.Resource // zero: that of the path
	before, after string          // versions
	fields        []string        // paths of what changed
}

// record writes the one record of a change.
func (s *Server) record(q *request, c change) {
	if c.resource == (bridge.Resource{}) {
		c.resource = q.resource()
	}
	s.log.LogAttrs(q.Context(), slog.LevelInfo, "rule changed by the admin API",
		slog.String("request", q.id), slog.String("by", q.who.name), slog.String("role", q.who.role), slog.String("from", q.RemoteAddr),
		slog.String("action", c.action), slog.String("resource", c.resource.String()),
		slog.String("before", c.before), slog.String("after", c.after), slog.Any("fields", c.fields))
}

// metrics are the server's. Paths are templates.
type metrics struct {
	requests *prometheus.CounterVec
	refused  prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queenbridge_admin_requests_total", Help: "Requests of the admin API, by path, method and class of the answer."},
			[]string{"path", "method", "class"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "queenbridge_admin_wrong_tokens_total", Help: "Requests of the admin API with a wrong token."}),
	}
	if r != nil {
		r.MustRegister(m.requests, m.refused)
	}
	return m
}

func statusClass(status int) string {
	return string(rune('0'+status/100)) + "xx"
}
