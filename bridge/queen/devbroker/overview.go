package devbroker

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file answers what a dashboard asks. Counts are exact and of now, so
// they have no age; the time series of a real Queen are not kept, and are
// empty.

// handleOverview is GET /api/v1/resources/overview.
func (b *Broker) handleOverview(w http.ResponseWriter, _ *http.Request, _ params) {
	var body []byte
	if err := b.view(func() { body = b.overviewJSON() }); err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, body)
}

func (b *Broker) overviewJSON() []byte {
	s := b.survey()
	var t tally
	var behind, left spread
	for _, q := range b.st.queues {
		for _, p := range q.order {
			one := s.of(p)
			t.add(one)
			if one.pending > 0 {
				behind.add(int64(s.now-p.ids.stored(p.floor())) / 1e6)
			}
			left.add(one.pending)
		}
	}
	var o, lag, rate, messages jsonObject
	lag.raw("time", behind.json()).raw("offset", left.json())
	seconds := time.Since(b.started).Seconds()
	rate.raw("ingestedPerSecond", perSecond(b.counts.pushed, seconds))
	rate.raw("processedPerSecond", perSecond(b.counts.acked, seconds))
	messages.num("total", t.total).num("failed", 0).num("pending", t.waiting()).num("completed", t.completed)
	messages.num("deadLetter", t.dead).num("processing", t.processing)
	o.raw("lag", string(lag.bytes())).num("tasks", b.scopesNamed(func(q *queue) string { return q.task }))
	o.num("queues", int64(len(b.st.queues))).raw("messages", string(messages.bytes())).num("statsAge", 0)
	o.str("timestamp", s.now.milli()).num("namespaces", b.scopesNamed(func(q *queue) string { return q.namespace }))
	return o.num("partitions", int64(len(b.st.parts))).raw("throughput", string(rate.bytes())).bytes()
}

// scopesNamed counts the different names queues are filed under.
func (b *Broker) scopesNamed(of func(*queue) string) int64 {
	names := map[string]bool{}
	for _, q := range b.st.queues {
		if name := of(q); name != "" {
			names[name] = true
		}
	}
	return int64(len(names))
}

// spread is the distribution of a number over the partitions.
type spread struct{ values []int64 }

func (s *spread) add(n int64) { s.values = append(s.values, n) }

func (s *spread) json() string {
	var sum, low, middle, high int64
	if n := len(s.values); n > 0 {
		slices.Sort(s.values)
		low, middle, high = s.values[0], s.values[n/2], s.values[n-1]
		for _, v := range s.values {
			sum += v
		}
		sum /= int64(n)
	}
	var o jsonObject
	return string(o.num("avg", sum).num("max", high).num("min", low).num("median", middle).bytes())
}

// perSecond is a mean rate since the broker was opened.
func perSecond(n uint64, seconds float64) string { return ratio(float64(n), max(seconds, 1)) }

func ratio(n, of float64) string {
	if of == 0 {
		return "0"
	}
	return strconv.FormatFloat(n/of, 'f', 2, 64)
}

// handleRefresh is POST /api/v1/stats/refresh: there is nothing to refresh.
func (b *Broker) handleRefresh(w http.ResponseWriter, _ *http.Request, _ params) {
	var o, tasks, system, namespaces jsonObject
	err := b.view(func() {
		tasks.num("tasksUpdated", b.scopesNamed(func(q *queue) string { return q.task }))
		system.num("systemUpdated", 1)
		namespaces.num("namespacesUpdated", b.scopesNamed(func(q *queue) string { return q.namespace }))
		o.raw("tasks", string(tasks.bytes())).str("engine", "segments").raw("system", string(system.bytes()))
		o.raw("namespaces", string(namespaces.bytes())).str("refreshedAt", b.now().milli())
		o.num("queuesUpdated", int64(len(b.st.queues))).num("segPartitions", int64(len(b.st.parts)))
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, o.bytes())
}

// handleSystemStatus is GET /api/v1/status.
func (b *Broker) handleSystemStatus(w http.ResponseWriter, r *http.Request, _ params) {
	span, err := readSpan(r, time.Hour, b.now())
	if err != nil {
		failure(w, http.StatusInternalServerError, "status failed: db error")
		return
	}
	var body []byte
	if err := b.view(func() { body = b.statusJSON(span) }); err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, body)
}

func (b *Broker) statusJSON(span timeSpan) []byte {
	s := b.survey()
	var t tally
	queues := [][]byte{}
	for _, q := range b.newestFirst() {
		t.add(s.ofQueue(q))
		var consumed int64
		for _, p := range q.order {
			consumed += count(p.floor() - p.first)
		}
		var o jsonObject
		o.str("id", q.id).str("name", q.name).str("task", q.task).str("namespace", q.namespace)
		queues = append(queues, o.num("partitions", int64(len(q.order))).num("totalConsumed", consumed).bytes())
	}
	var o, errs, messages jsonObject
	errs.num("dbErrors", 0).num("ackFailed", 0).num("dlqMessages", count(b.counts.buried))
	messages.num("total", t.total).num("failed", 0).num("pending", t.waiting()).raw("requests", b.requestsJSON())
	messages.num("completed", t.completed).num("deadLetter", t.dead).num("processing", t.processing)
	messages.raw("batchEfficiency", b.efficiencyJSON())
	o.raw("errors", string(errs.bytes())).raw("leases", b.leasesJSON(s.now)).raw("queues", jsonList(queues)).raw("workers", "[]")
	o.raw("messages", string(messages.bytes())).num("statsAge", 0).raw("timeRange", span.json()).num("pointCount", 0)
	o.raw("throughput", "[]").num("bucketMinutes", 1)
	return o.raw("deadLetterQueue", b.deadLetterJSON()).bytes()
}

func (b *Broker) requestsJSON() string {
	var o jsonObject
	o.num("ack", count(b.served.ack.Load())).num("pop", count(b.served.pop.Load()))
	return string(o.num("push", count(b.served.push.Load())).bytes())
}

// efficiencyJSON is messages per request.
func (b *Broker) efficiencyJSON() string {
	var o jsonObject
	o.raw("ack", ratio(float64(b.counts.acked), float64(b.served.ack.Load())))
	o.raw("pop", ratio(float64(b.counts.popped), float64(b.served.pop.Load())))
	return string(o.raw("push", ratio(float64(b.counts.pushed), float64(b.served.push.Load()))).bytes())
}

func (b *Broker) leasesJSON(now micros) string {
	var active, messages int64
	parts := map[*partition]bool{}
	for _, held := range b.st.leases {
		for _, c := range held {
			if c.leased(now) {
				active++
				messages += count(c.leaseEnd - c.next)
				parts[c.part] = true
			}
		}
	}
	var o jsonObject
	o.num("active", active).num("totalAcked", 0).num("totalBatchSize", messages)
	return string(o.num("partitionsWithLeases", int64(len(parts))).bytes())
}

// topErrors is how many error texts the status shows.
const topErrors = 5

func (b *Broker) deadLetterJSON() string {
	texts, parts := map[string]int64{}, map[string]bool{}
	for _, d := range b.st.dead {
		texts[d.text]++
		parts[d.partID] = true
	}
	names := make([]string, 0, len(texts))
	for text := range texts {
		names = append(names, text)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(texts[y], texts[x]), strings.Compare(x, y)) })
	rows := [][]byte{}
	for _, text := range names[:min(len(names), topErrors)] {
		rows = append(rows, new(jsonObject).num("count", texts[text]).str("error", text).bytes())
	}
	var o jsonObject
	o.raw("topErrors", jsonList(rows)).num("totalMessages", count(b.counts.buried))
	return string(o.num("currentMessages", int64(len(b.st.dead))).num("affectedPartitions", int64(len(parts))).bytes())
}

// handleQueueStats is GET /api/v1/status/queues.
func (b *Broker) handleQueueStats(w http.ResponseWriter, r *http.Request, _ params) {
	limit, offset := limitOffset(r, 100)
	rows := [][]byte{}
	err := b.view(func() {
		s := b.survey()
		for _, q := range cut(b.newestFirst(), limit, offset) {
			rows = append(rows, queueStatsJSON(q, s.ofQueue(q)))
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, new(jsonObject).raw("queues", jsonList(rows)).raw("pagination", pageJSON(limit, offset)).bytes())
}

// cut takes a page out of a list.
func cut[T any](list []T, limit, offset int64) []T {
	n := int64(len(list))
	from := min(max(offset, 0), n)
	return list[from : from+min(max(limit, 0), n-from)]
}

func pageJSON(limit, offset int64) string {
	return string(new(jsonObject).num("limit", limit).num("offset", offset).bytes())
}

func queueStatsJSON(q *queue, t tally) []byte {
	var o, messages jsonObject
	messages.num("total", t.total).num("pending", t.waiting()).num("completed", t.completed)
	messages.num("deadLetter", t.dead).num("processing", t.processing)
	o.str("id", q.id).str("name", q.name).str("task", q.task).raw("messages", string(messages.bytes()))
	return o.str("createdAt", q.created.milli()).str("namespace", q.namespace).num("partitions", int64(len(q.order))).bytes()
}

// handleQueueDetail is GET /api/v1/status/queues/:queue.
func (b *Broker) handleQueueDetail(w http.ResponseWriter, _ *http.Request, p params) {
	b.answerQueue(w, p[0], b.queueDetailJSON)
}

func (b *Broker) queueDetailJSON(q *queue) []byte {
	var o, config, head, totals jsonObject
	config.num("ttl", q.opts.TTL).num("leaseTime", q.opts.LeaseTime).num("retryDelay", q.opts.RetryDelay)
	config.num("retryLimit", q.opts.RetryLimit).num("maxQueueSize", q.opts.MaxSize).flag("deadLetterQueue", q.opts.DeadLetterQueue)
	head.str("id", q.id).str("name", q.name).str("task", q.task).raw("config", string(config.bytes()))
	head.num("priority", q.opts.Priority).str("createdAt", q.created.milli()).str("namespace", q.namespace)
	s := b.survey()
	rows := [][]byte{}
	for _, p := range q.order {
		rows = append(rows, partitionDetailJSON(p, s.of(p)))
	}
	totals.raw("messages", s.ofQueue(q).json())
	o.raw("queue", string(head.bytes())).raw("totals", string(totals.bytes()))
	return o.raw("partitions", jsonList(rows)).bytes()
}

func partitionDetailJSON(p *partition, t tally) []byte {
	oldest, newest := p.ends()
	var o, cursor jsonObject
	cursor.num("totalConsumed", count(p.floor()-p.first)).num("batchesConsumed", 0)
	o.str("id", p.id).str("name", p.name).raw("stats", t.json()).raw("cursor", string(cursor.bytes()))
	o.raw("messages", t.json()).str("createdAt", p.created.milli()).raw("lastActivity", "null")
	return o.raw("newestMessage", newest).raw("oldestMessage", oldest).bytes()
}
