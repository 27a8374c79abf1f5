package devbroker

import (
	"cmp"
	"net/http"
	"slices"
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

// handleQueues is GET /api/v1/resources/queues.
func (b *Broker) handleQueues(w http.ResponseWriter, _ *http.Request, _ params) {
	var rows [][]byte
	err := b.view(func() {
		s := b.survey()
		for _, q := range b.sortedQueues() {
			rows = append(rows, queueRowJSON(q, s.ofQueue(q)))
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, new(jsonObject).raw("queues", jsonList(rows)).bytes())
}

func queueRowJSON(q *queue, t tally) []byte {
	var o, messages jsonObject
	messages.num("total", t.total).num("pending", t.waiting()).num("processing", t.processing)
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
	b.answerQueue(w, p[0], b.queueJSON)
}

// answerQueue answers with one queue as render shows it, or 404.
func (b *Broker) answerQueue(w http.ResponseWriter, name string, render func(*queue) []byte) {
	var body []byte
	err := b.view(func() {
		if q := b.st.queues[name]; q != nil {
			body = render(q)
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
	s := b.survey()
	rows := make([][]byte, len(q.order))
	for i, p := range q.order {
		t := s.of(p)
		totals.add(t)
		oldest, newest := p.ends()
		var o jsonObject
		o.str("createdAt", p.created.milli()).str("id", p.id).str("name", p.name)
		rows[i] = o.raw("newestMessage", newest).raw("oldestMessage", oldest).raw("stats", t.json()).bytes()
	}
	var o jsonObject
	o.str("createdAt", q.created.milli()).str("id", q.id).str("name", q.name).str("namespace", q.namespace)
	o.raw("partitions", jsonList(rows)).num("retainedBytes", 0).raw("segments", segmentsJSON(q))
	return o.str("task", q.task).raw("totals", totals.json()).bytes()
}

// ends is when the oldest message that some group has not consumed and the
// newest of all were stored, as JSON; null for none.
func (p *partition) ends() (oldest, newest string) {
	oldest, newest = "null", "null"
	if floor := p.floor(); p.next > floor {
		oldest = string(appendString(nil, p.ids.stored(floor).milli()))
	}
	if p.next > p.first {
		newest = string(appendString(nil, p.lastPush.milli()))
	}
	return oldest, newest
}

// handleDepth is GET /api/v1/resources/queues/:queue/depth: leased messages
// count as pending, and a group that never came has everything before it.
// Without a group it is what some group has not consumed (measured 1.3.0).
func (b *Broker) handleDepth(w http.ResponseWriter, r *http.Request, p params) {
	group := r.URL.Query().Get("group")
	var rows [][]byte
	var pending int64
	missing, conflates := true, false
	err := b.view(func() {
		if q := b.st.queues[p[0]]; q != nil {
			missing = false
			rows, pending = depthOf(q, group)
			g := q.group(group)
			conflates = g != nil && g.conflates
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
	effective := pending
	if conflates {
		effective = int64(len(rows)) // one delivery each
	}
	var o jsonObject
	o.strOrNull("group", group).str("queue", p[0]).num("pending", pending).flag("conflation", conflates)
	o.raw("partitions", jsonList(rows)).num("effectivePending", effective)
	answer(w, http.StatusOK, o.num("partitionsPending", int64(len(rows))).bytes())
}

func depthOf(q *queue, group string) (rows [][]byte, pending int64) {
	g := q.group(group)
	for _, p := range q.order {
		from := p.first
		switch {
		case group == "":
			from = p.floor()
		case g != nil:
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
