package devbroker

import (
	"cmp"
	"container/heap"
	"net/http"
	"time"
)

// messageFilter says which messages GET /api/v1/messages lists.
type messageFilter struct {
	queue, partition, namespace, task, status string
	span                                      timeSpan
	limit, offset                             int64
}

const (
	maxListed   = 1000    // messages in one answer
	maxLookedAt = 200_000 // messages one request goes through
)

// handleMessages is GET /api/v1/messages: newest first, of the last hour
// unless from and to say otherwise.
func (b *Broker) handleMessages(w http.ResponseWriter, r *http.Request, _ params) {
	q := r.URL.Query()
	limit, offset := limitOffset(r, 200)
	f := messageFilter{
		queue: q.Get("queue"), partition: q.Get("partition"), namespace: cmp.Or(q.Get("namespace"), q.Get("ns")),
		task: q.Get("task"), status: q.Get("status"),
		limit: min(max(limit, 0), maxListed), offset: max(offset, 0),
	}
	span, err := readSpan(r, time.Hour, b.now())
	f.span = span
	if err != nil {
		failure(w, http.StatusInternalServerError, "list failed: db error")
		return
	}
	f.span.to = microsOf(f.span.to.time().Truncate(time.Minute).Add(time.Minute)) // the whole minute counts
	var body []byte
	var failed error
	err = b.view(func() { body, failed = b.messagesJSON(f) })
	if err = cmp.Or(err, failed); err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, body)
}

func (b *Broker) messagesJSON(f messageFilter) ([]byte, error) {
	parts := b.filtered(f)
	rows := [][]byte{}
	skip := f.offset
	for look := range b.newest(parts, f.span) {
		if int64(len(rows)) == f.limit {
			break
		}
		s, err := b.segmentOf(look.part, look.offset)
		if err != nil {
			return nil, err
		}
		found := b.foundAt(look.part, s.message(look.offset), s.at, look.offset)
		status, consumed, groups := b.statusOf(found)
		if f.status != "" && f.status != status {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		rows = append(rows, b.rowJSON(found, s, status, consumed, groups))
	}
	var o jsonObject
	o.raw("messages", jsonList(rows)).raw("mode", modeJSON(parts))
	return o.num("total", int64(len(rows))).bytes(), nil
}

func (b *Broker) filtered(f messageFilter) []*partition {
	var out []*partition
	for _, q := range b.sortedQueues() {
		if f.queue != "" && q.name != f.queue || !q.inScope(f.namespace, f.task) {
			continue
		}
		for _, p := range q.order {
			if f.partition == "" || p.name == f.partition {
				out = append(out, p)
			}
		}
	}
	return out
}

// place is one message of a partition.
type place struct {
	part   *partition
	offset uint64
	at     micros
}

// places is a heap of the newest message not yet looked at of each partition.
type places []place

func (h places) Len() int      { return len(h) }
func (h places) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h places) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].at, h[i].at), cmp.Compare(h[j].offset, h[i].offset)) < 0
}
func (h *places) Push(x any) { *h = append(*h, x.(place)) } //nolint:forcetypeassert // heap pushes places only
func (h *places) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// newest walks the messages of partitions that were stored within a time,
// newest first, up to a bound.
func (b *Broker) newest(parts []*partition, span timeSpan) func(yield func(place) bool) {
	var h places
	for _, p := range parts {
		if end := b.firstSince(p, span.to); end > p.first {
			h = append(h, place{p, end - 1, p.ids.stored(end - 1)})
		}
	}
	heap.Init(&h)
	return func(yield func(place) bool) {
		for range maxLookedAt {
			if len(h) == 0 || h[0].at < span.from || !yield(h[0]) {
				return
			}
			if h[0].offset == h[0].part.first {
				heap.Pop(&h)
				continue
			}
			h[0].offset--
			h[0].at = h[0].part.ids.stored(h[0].offset)
			heap.Fix(&h, 0)
		}
	}
}

// rowJSON is a message as the list shows it.
func (b *Broker) rowJSON(f found, s *segment, status string, consumed, groups int64) []byte {
	data := shownPayload(f.message)
	q := f.part.queue
	var o, bus, seg jsonObject
	bus.num("consumedBy", consumed).num("totalGroups", groups)
	seg.num("frameIdx", count(f.offset-s.base)).num("seq", count(s.base))
	o.raw("busStatus", string(bus.bytes())).str("createdAt", f.at.milli()).raw("data", data).str("id", f.message.id.String())
	o.flag("isEncrypted", false).raw("leaseExpiresAt", "null").str("namespace", q.namespace).str("partition", f.part.name)
	o.str("partitionId", f.part.id).raw("payload", data).flag("payloadAvailable", true).raw("producerSub", "null")
	o.str("queue", q.name).str("queuePath", q.name+"/"+f.part.name).num("queuePriority", q.opts.Priority)
	o.str("queueStatus", status).raw("segment", string(seg.bytes())).str("status", status).str("task", q.task)
	return o.strOrNull("traceId", f.message.trace).str("transactionId", string(f.message.txn)).bytes()
}

// modeJSON says how partitions are read: by named groups, in queue mode, or
// both.
func modeJSON(parts []*partition) string {
	groups, queueModeSeen := map[string]bool{}, false
	for _, p := range parts {
		for _, c := range p.cursors {
			switch {
			case !c.there():
			case c.group.name == queueMode:
				queueModeSeen = true
			default:
				groups[c.group.name] = true
			}
		}
	}
	kind := "none"
	switch {
	case queueModeSeen && len(groups) > 0:
		kind = "hybrid"
	case queueModeSeen:
		kind = "queue"
	case len(groups) > 0:
		kind = "bus"
	}
	var o jsonObject
	o.num("busGroupsCount", int64(len(groups))).flag("hasQueueMode", queueModeSeen)
	return string(o.str("type", kind).bytes())
}
