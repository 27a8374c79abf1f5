package devbroker

import (
	"errors"
	"net/http"
	"time"
)

// timeSpan is what a dashboard looks at.
type timeSpan struct{ from, to micros }

var errTime = errors.New("not a time")

// readSpan reads from and to; without them it is the time just past.
func readSpan(r *http.Request, past time.Duration, now micros) (s timeSpan, err error) {
	s = timeSpan{from: now.add(-past), to: now}
	for name, at := range map[string]*micros{"from": &s.from, "to": &s.to} {
		if text := r.URL.Query().Get(name); text != "" {
			t, ok := parseTime(text, now.time())
			if !ok {
				return s, errTime
			}
			*at = microsOf(t)
		}
	}
	return s, nil
}

func (s timeSpan) json() string {
	return string(new(jsonObject).str("to", s.to.milli()).str("from", s.from.milli()).bytes())
}

// maxPoints bounds a series: a month of minutes.
const maxPoints = 31 * 24 * 60

// handleAnalytics is GET /api/v1/status/analytics: messages stored, by the
// hour of the last day unless interval, from and to say otherwise. It knows
// those whose ids are still known.
func (b *Broker) handleAnalytics(w http.ResponseWriter, r *http.Request, _ params) {
	span, err := readSpan(r, 24*time.Hour, b.now())
	interval := r.URL.Query().Get("interval")
	if interval == "" {
		interval = "hour"
	}
	begin, step, known := stepOf(interval, span.from.time())
	points := 0
	if known && err == nil && !begin.After(span.to.time()) {
		points = int(span.to.time().Sub(begin)/step) + 1
	}
	if !known || err != nil || points > maxPoints {
		failure(w, http.StatusInternalServerError, "analytics failed: db error")
		return
	}
	var counts []int64
	if err := b.view(func() { counts = b.storedBy(microsOf(begin), step, points) }); err != nil {
		unavailable(w, err)
		return
	}
	rows := make([][]byte, points)
	for i, n := range counts {
		at := microsOf(begin.Add(time.Duration(i) * step))
		rows[i] = new(jsonObject).num("messages", n).str("timestamp", at.milli()).bytes()
	}
	var o jsonObject
	o.str("to", span.to.milli()).str("from", span.from.milli()).str("interval", interval)
	answer(w, http.StatusOK, o.raw("dataPoints", jsonList(rows)).bytes())
}

// stepOf is where the series of an interval begins, and its step.
func stepOf(interval string, from time.Time) (begin time.Time, step time.Duration, ok bool) {
	switch interval {
	case "minute":
		return from.Truncate(time.Minute), time.Minute, true
	case "hour":
		return from.Truncate(time.Hour), time.Hour, true
	case "day":
		return from.Truncate(24 * time.Hour), 24 * time.Hour, true
	}
	return from, 0, false
}

// storedBy counts the messages stored in each step.
func (b *Broker) storedBy(begin micros, step time.Duration, points int) []int64 {
	counts := make([]int64, points)
	for _, p := range b.st.parts {
		for i, sp := range p.ids.spans {
			end := p.ids.next()
			if i+1 < len(p.ids.spans) {
				end = p.ids.spans[i+1].start
			}
			at := int64(sp.at-begin) / step.Microseconds()
			if sp.at >= begin && at < int64(points) {
				counts[at] += count(end - max(sp.start, p.ids.base))
			}
		}
	}
	return counts
}

// handleSystemMetrics and handleWorkerMetrics are time series of a real
// Queen's processes. Here they are empty but for the sums.
func (b *Broker) handleSystemMetrics(w http.ResponseWriter, r *http.Request, _ params) {
	span, err := readSpan(r, time.Hour, b.now())
	if err != nil {
		failure(w, http.StatusInternalServerError, "system metrics failed: db error")
		return
	}
	var o jsonObject
	o.raw("replicas", "[]").raw("timeRange", span.json()).num("pointCount", 0)
	answer(w, http.StatusOK, o.num("replicaCount", 0).num("bucketMinutes", 1).bytes())
}

func (b *Broker) handleWorkerMetrics(w http.ResponseWriter, r *http.Request, _ params) {
	span, err := readSpan(r, time.Hour, b.now())
	if err != nil {
		failure(w, http.StatusInternalServerError, "worker metrics failed: db error")
		return
	}
	var sums string
	if err := b.view(func() { sums = b.sumsJSON() }); err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.raw("queues", "[]").raw("summary", sums).raw("workers", "[]").raw("timeRange", span.json())
	answer(w, http.StatusOK, o.num("pointCount", 0).raw("timeSeries", "[]").num("bucketMinutes", 1).bytes())
}

func (b *Broker) sumsJSON() string {
	var pending int64
	for _, p := range b.st.parts {
		pending += count(p.next - p.floor())
	}
	c := b.counts
	var o jsonObject
	o.num("totalDlq", count(c.buried)).num("totalDbErrors", 0).num("totalAckFailed", 0).num("pendingMessages", pending)
	o.num("totalAckMessages", count(c.acked)).num("totalAckRequests", count(b.served.ack.Load()))
	o.num("totalPopMessages", count(c.popped)).num("totalPopRequests", count(b.served.pop.Load()))
	o.num("totalPushMessages", count(c.pushed)).num("totalPushRequests", count(b.served.push.Load()))
	return string(o.bytes())
}
