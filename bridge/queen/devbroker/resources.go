package devbroker

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// sortedQueues lists the queues by name.
func (b *Broker) sortedQueues() []*queue {
	out := make([]*queue, 0, len(b.st.queues))
	for _, q := range b.st.queues {
		out = append(out, q)
	}
	slices.SortFunc(out, func(x, y *queue) int { return cmp.Compare(x.name, y.name) })
	return out
}

// tally counts the messages of a partition the way the queue routes show them.
type tally struct{ total, pending, processing, completed, dead int64 }

func (t *tally) add(o tally) {
	t.total += o.total
	t.pending += o.pending
	t.processing += o.processing
	t.completed += o.completed
	t.dead += o.dead
}

// tallyOf counts a partition: completed is what every group is done with.
func (b *Broker) tallyOf(p *partition) tally {
	now := b.now()
	t := tally{total: count(p.next - p.first)}
	done := max(p.consumed(), p.first)
	if len(p.cursors) == 0 {
		done = p.first
	}
	t.completed = count(done - p.first)
	for _, c := range p.cursors {
		if c.leased(now) {
			t.processing = max(t.processing, count(c.leaseEnd-c.next))
		}
	}
	t.pending = t.total - t.completed - t.processing
	for _, d := range b.st.dead {
		if d.partID == p.id {
			t.dead++
		}
	}
	return t
}

func count(n uint64) int64 { return int64(n) }

func (t tally) json() string {
	var o jsonObject
	o.num("completed", t.completed).num("deadLetter", t.dead).raw("failed", "null")
	return string(o.num("pending", t.pending).num("processing", t.processing).num("total", t.total).bytes())
}

// handleQueues is GET /api/v1/resources/queues.
func (b *Broker) handleQueues(w http.ResponseWriter, _ *http.Request, _ params) {
	var rows [][]byte
	err := b.view(func() {
		for _, q := range b.sortedQueues() {
			rows = append(rows, b.queueRowJSON(q))
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, new(jsonObject).raw("queues", jsonList(rows)).bytes())
}

func (b *Broker) queueRowJSON(q *queue) []byte {
	var t tally
	for _, p := range q.order {
		t.add(b.tallyOf(p))
	}
	var o, messages jsonObject
	messages.num("total", t.total).num("pending", t.pending).num("processing", t.processing)
	o.str("createdAt", q.created.milli()).str("id", q.id).raw("messages", string(messages.bytes()))
	o.str("name", q.name).str("namespace", q.namespace).num("partitions", int64(len(q.order)))
	return o.num("retainedBytes", 0).raw("segments", segmentsJSON(q)).str("task", q.task).bytes()
}

func segmentsJSON(q *queue) string {
	var messages, segments int64
	for _, p := range q.order {
		messages += count(p.next - p.first)
		segments += int64(len(p.ids.spans))
	}
	return string(new(jsonObject).num("messages", messages).num("segments", segments).bytes())
}

// handleQueue is GET /api/v1/resources/queues/:queue.
func (b *Broker) handleQueue(w http.ResponseWriter, _ *http.Request, p params) {
	var body []byte
	err := b.view(func() {
		if q := b.st.queues[p[0]]; q != nil {
			body = b.queueJSON(q)
		}
	})
	switch {
	case err != nil:
		unavailable(w, err)
	case body == nil:
		failure(w, http.StatusNotFound, "Queue not found")
	default:
		answer(w, http.StatusOK, body)
	}
}

func (b *Broker) queueJSON(q *queue) []byte {
	var totals tally
	rows := make([][]byte, len(q.order))
	for i, p := range q.order {
		t := b.tallyOf(p)
		totals.add(t)
		oldest, newest := "null", "null"
		if p.next > p.first {
			oldest = string(appendString(nil, p.ids.stored(p.first).milli()))
			newest = string(appendString(nil, p.lastPush.milli()))
		}
		var o jsonObject
		o.str("createdAt", p.created.milli()).str("id", p.id).str("name", p.name)
		rows[i] = o.raw("newestMessage", newest).raw("oldestMessage", oldest).raw("stats", t.json()).bytes()
	}
	var o jsonObject
	o.str("createdAt", q.created.milli()).str("id", q.id).str("name", q.name).str("namespace", q.namespace)
	o.raw("partitions", jsonList(rows)).num("retainedBytes", 0).raw("segments", segmentsJSON(q))
	return o.str("task", q.task).raw("totals", totals.json()).bytes()
}

// handleDepth is GET /api/v1/resources/queues/:queue/depth: leased messages
// count as pending, and a group that never came has everything before it
// (measured 1.3.0).
func (b *Broker) handleDepth(w http.ResponseWriter, r *http.Request, p params) {
	group := r.URL.Query().Get("group")
	if group == "" {
		group = queueMode
	}
	var rows [][]byte
	var pending int64
	missing := true
	err := b.view(func() {
		if q := b.st.queues[p[0]]; q != nil {
			missing = false
			rows, pending = depthOf(q, group)
		}
	})
	switch {
	case err != nil:
		unavailable(w, err)
		return
	case missing:
		failure(w, http.StatusNotFound, "Queue not found")
		return
	}
	var o jsonObject
	o.str("group", group).str("queue", p[0]).num("pending", pending).flag("conflation", false)
	o.raw("partitions", jsonList(rows)).num("effectivePending", pending)
	answer(w, http.StatusOK, o.num("partitionsPending", int64(len(rows))).bytes())
}

func depthOf(q *queue, group string) (rows [][]byte, pending int64) {
	g := q.group(group)
	for _, p := range q.order {
		from := p.first
		if g != nil {
			from = p.cursor(g).position()
		}
		n := count(p.next - from)
		if n == 0 {
			continue
		}
		pending += n
		rows = append(rows, new(jsonObject).num("pending", n).str("partition", p.name).bytes())
	}
	return rows, pending
}

// handleDeleteQueue is DELETE /api/v1/resources/queues/:queue. Dead letters
// and cursors go with the queue; its timers stay and fire into a new one
// (measured 1.3.0).
func (b *Broker) handleDeleteQueue(w http.ResponseWriter, _ *http.Request, p params) {
	existed := false
	err := b.update(func() {
		if q := b.st.queues[p[0]]; q != nil {
			existed = true
			b.deleteQueue(q)
		}
	})
	var o jsonObject
	switch {
	case err != nil:
		unavailable(w, err)
	case existed:
		answer(w, http.StatusOK, o.str("queue", p[0]).flag("deleted", true).flag("existed", true).bytes())
	default:
		o.flag("deleted", false).flag("existed", false).str("message", "Queue not found, nothing was deleted")
		answer(w, http.StatusOK, o.str("queue", p[0]).bytes())
	}
}

func (b *Broker) deleteQueue(q *queue) {
	delete(b.st.queues, q.name)
	for _, p := range q.order {
		delete(b.st.parts, p.id)
		for _, c := range p.cursors {
			b.forgetCursor(c)
		}
		p.first = p.next
	}
	for _, g := range q.groups {
		g.gone = true
		b.wakeGroup(g)
	}
	for _, d := range b.deadLetters(func(d *deadLetter) bool { return d.queueNum == q.num }) {
		b.unbury(d)
	}
	b.noteQueueGone(q)
}

// forgetCursor takes a cursor out of whatever refers to it.
func (b *Broker) forgetCursor(c *cursor) {
	if c.lease != "" {
		b.dropLease(c)
	}
	b.st.holds.remove(c)
}

// handleNamespaces and handleTasks list what queues are filed under.
func (b *Broker) handleNamespaces(w http.ResponseWriter, _ *http.Request, _ params) {
	b.listScopes(w, "namespaces", "namespace", func(q *queue) string { return q.namespace })
}

func (b *Broker) handleTasks(w http.ResponseWriter, _ *http.Request, _ params) {
	b.listScopes(w, "tasks", "task", func(q *queue) string { return q.task })
}

func (b *Broker) listScopes(w http.ResponseWriter, list, name string, of func(*queue) string) {
	queues := map[string]int64{}
	err := b.view(func() {
		for _, q := range b.st.queues {
			queues[of(q)]++
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	var rows []string
	for value, n := range queues {
		rows = append(rows, string(new(jsonObject).str(name, value).num("queues", n).bytes()))
	}
	slices.SortFunc(rows, strings.Compare)
	answer(w, http.StatusOK, new(jsonObject).raw(list, jsonList(rows)).bytes())
}
