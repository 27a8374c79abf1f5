package devbroker

import (
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Engine and Version are what /health says: an engine of our own that behaves
// like Queen 1.3.0, so that clients take the same measures they take there.
const (
	Engine  = "queenbridge"
	Version = "1.3.0"
)

// counters count since the broker was opened.
type counters struct {
	pushed, popped, acked, fired, buried uint64
}

func (b *Broker) count(add func(*counters)) {
	b.mu.Lock()
	add(&b.counts)
	b.mu.Unlock()
}

func (b *Broker) handleHealth(w http.ResponseWriter, _ *http.Request, _ params) {
	status, code, database := "healthy", http.StatusOK, "connected"
	b.mu.Lock()
	err := b.usable()
	b.mu.Unlock()
	if err != nil {
		status, code, database = "unhealthy", http.StatusServiceUnavailable, "disconnected"
	}
	var o jsonObject
	engine, version := b.engine()
	o.str("status", status)
	if !b.raft() {
		o.str("database", database)
	}
	if o.str("engine", engine).str("version", version); b.raft() {
		o.raw("raft", raftHealth())
	}
	if err != nil {
		o.str("error", err.Error())
	}
	answer(w, code, o.bytes())
}

func (b *Broker) handleStatus(w http.ResponseWriter, _ *http.Request, _ params) {
	engine, _ := b.engine()
	answer(w, http.StatusOK, new(jsonObject).str("status", "ok").str("engine", engine).bytes())
}

// gauges is what both metrics routes show.
type gauges struct {
	counters
	requests                         uint64
	queues, partitions, timers, dead int
	cacheBytes                       int64
	deadByQueue                      map[string]int
}

func (b *Broker) gauges() gauges {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := gauges{
		counters: b.counts, queues: len(b.st.queues), partitions: len(b.st.parts),
		timers: b.st.pending.len(), dead: len(b.st.dead), cacheBytes: b.cache.bytes,
		deadByQueue: map[string]int{},
	}
	g.requests = b.requests.Load()
	for _, d := range b.st.dead {
		g.deadByQueue[d.queue]++
	}
	return g
}

func (b *Broker) handleMetrics(w http.ResponseWriter, _ *http.Request, _ params) {
	g := b.gauges()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	seconds := time.Since(b.started).Seconds()
	var requests, messages, memory, cpu, database, out jsonObject
	requests.num("total", count(g.requests)).raw("rate", perSecond(g.requests, seconds))
	messages.num("total", count(g.pushed)).num("delivered", count(g.popped)).num("completed", count(g.acked))
	messages.raw("rate", perSecond(g.pushed, seconds))
	memory.num("rss", count(mem.Sys)).num("heapTotal", count(mem.HeapSys)).num("heapUsed", count(mem.HeapAlloc))
	cpu.num("user", 0).num("system", 0)                                             // 1.3.0 has no figures here either
	database.num("poolSize", 0).num("idleConnections", 0).num("waitingRequests", 0) // there is no pool
	out.num("uptime", int64(seconds)).raw("requests", string(requests.bytes()))
	out.raw("messages", string(messages.bytes())).raw("memory", string(memory.bytes()))
	out.raw("cpu", string(cpu.bytes())).raw("database", string(database.bytes()))
	out.num("queues", int64(g.queues)).num("partitions", int64(g.partitions))
	out.num("timers", int64(g.timers)).num("deadLetters", int64(g.dead))
	answer(w, http.StatusOK, out.bytes())
}

func (b *Broker) handlePrometheus(w http.ResponseWriter, _ *http.Request, _ params) {
	g := b.gauges()
	var out strings.Builder
	family := func(name, kind, help string, value any) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, value)
	}
	family("queen_requests_total", "counter", "Requests received.", g.requests)
	family("queen_messages_pushed_total", "counter", "Messages stored.", g.pushed)
	family("queen_messages_popped_total", "counter", "Messages given out.", g.popped)
	family("queen_messages_acked_total", "counter", "Messages completed.", g.acked)
	family("queen_timers_fired_total", "counter", "Timers fired.", g.fired)
	family("queen_messages_dead_lettered_total", "counter", "Messages dead-lettered.", g.buried)
	family("queen_queues", "gauge", "Queues.", g.queues)
	family("queen_partitions", "gauge", "Partitions.", g.partitions)
	family("queen_timers_pending", "gauge", "Timers not yet due.", g.timers)
	family("queen_cache_bytes", "gauge", "Message bytes kept in memory.", g.cacheBytes)
	out.WriteString("# HELP queen_dlq_depth_by_queue Dead letters by queue.\n# TYPE queen_dlq_depth_by_queue gauge\n")
	for queue, n := range g.deadByQueue {
		fmt.Fprintf(&out, "queen_dlq_depth_by_queue{queue=%s} %d\n", strconv.Quote(queue), n)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write([]byte(out.String()))
}
