package devbroker

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// deadLetter is one row of the dead-letter queue. Rows never expire; they go
// with their queue.
type deadLetter struct {
	id         string
	queue      string
	queueNum   int64
	partition  string
	partID     string
	group      string
	txn        string
	message    messageID
	text       string
	retryCount int64
	data       []byte // encoded again, as 1.3.0 does (measured)
	at         micros
}

const defaultDeadText = "Retries exhausted"

var errUnstorable = errors.New("payload or error text cannot be stored as a dead letter")

// bury files the message at an offset as a dead letter. It fails for what
// PostgreSQL cannot hold (a NUL, a lone surrogate, no JSON at all): such a
// message can never be dead-lettered on 1.3.0 (measured).
func (b *Broker) bury(c *cursor, offset uint64, text string) error {
	m, err := b.message(c.part, offset)
	if err != nil {
		return err
	}
	if text == "" {
		text = defaultDeadText
	}
	if !b.raft() && !storable(m.payload, text) {
		return errUnstorable
	}
	data, err := canonical(m.payload)
	if err != nil {
		return errUnstorable
	}
	p := c.part
	d := &deadLetter{
		id: randomID(), queue: p.queue.name, queueNum: p.queue.num, partition: p.name, partID: p.id,
		group: c.group.name, txn: string(m.txn), message: m.id, text: text,
		retryCount: c.retries, data: data, at: b.now(),
	}
	b.st.dead[d.id] = d
	b.counts.buried++
	b.noteDead(d.id, d)
	return nil
}

func (b *Broker) unbury(d *deadLetter) {
	delete(b.st.dead, d.id)
	b.noteDead(d.id, nil)
}

// deadAt lists the dead letters of an address, newest first.
func (b *Broker) deadAt(part, txn string) []*deadLetter {
	return b.deadLetters(func(d *deadLetter) bool { return d.partID == part && d.txn == txn })
}

func (b *Broker) deadLetters(want func(*deadLetter) bool) []*deadLetter {
	var out []*deadLetter
	for _, d := range b.st.dead {
		if want(d) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(x, y *deadLetter) int {
		return cmp.Or(cmp.Compare(y.at, x.at), strings.Compare(x.id, y.id))
	})
	return out
}

// handleDeadLetters is GET /api/v1/dlq.
func (b *Broker) handleDeadLetters(w http.ResponseWriter, r *http.Request, _ params) {
	limit, offset := limitOffset(r, 100)
	if limit < 0 || offset < 0 {
		failure(w, http.StatusInternalServerError, "dlq failed: db error")
		return
	}
	queue, group := r.URL.Query().Get("queue"), r.URL.Query().Get("consumerGroup")
	var rows []string
	err := b.view(func() {
		all := b.deadLetters(func(d *deadLetter) bool {
			return (queue == "" || d.queue == queue) && (group == "" || d.group == group)
		})
		from := min(offset, int64(len(all)))
		for _, d := range all[from:min(from+limit, int64(len(all)))] {
			rows = append(rows, string(d.json()))
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	var out jsonObject
	out.raw("messages", jsonList(rows)).raw("pagination", pagination(limit, offset))
	answer(w, http.StatusOK, out.num("total", int64(len(rows))).bytes())
}

func (d *deadLetter) json() []byte {
	var o jsonObject
	o.str("consumerGroup", d.group).str("createdAt", d.at.milli()).raw("data", string(d.data))
	o.str("errorMessage", d.text).str("failedAt", d.at.milli()).str("id", d.id)
	o.str("partition", d.partition).str("partitionId", d.partID).raw("producerSub", "null")
	o.str("queue", d.queue).num("retryCount", d.retryCount).str("transactionId", d.txn)
	return o.bytes()
}

// handleReplay is POST /api/v1/messages/:partition/:txn/retry: as on 1.3.0, the
// newest dead letter of the address becomes a new message with an id of its
// own at the tail of its partition, seen by every group.
func (b *Broker) handleReplay(w http.ResponseWriter, _ *http.Request, p params) {
	if !b.isPartitionID(p[0]) {
		failure(w, http.StatusInternalServerError, "dlq lookup failed: db error")
		return
	}
	var d *deadLetter
	var id messageID
	err := b.update(func() {
		rows := b.deadAt(strings.ToLower(p[0]), p[1])
		if len(rows) == 0 {
			return
		}
		d = rows[0]
		mint := newMinter(b.now())
		id = mint.id()
		txn := id.append(nil)
		var pc parcel
		pc.add(message{id: id, txn: txn, payload: d.data}, b.key.hash(txn))
		b.append(b.partitionOf([]byte(d.queue), []byte(d.partition)), pc)
		b.unbury(d)
	})
	switch {
	case err != nil:
		unavailable(w, err)
	case d == nil:
		noDeadLetter(w, p, "Only dead-lettered messages can be replayed")
	default:
		as := appendReplay(id, d.queue)
		var o jsonObject
		o.flag("dlqRowRemoved", true).str("partition", d.partition).str("queue", d.queue)
		answer(w, http.StatusOK, o.raw("replayedAs", as).flag("success", true).bytes())
	}
}

func appendReplay(id messageID, queue string) string {
	var o jsonObject
	o.num("index", 0).str("message_id", id.String()).str("queueName", queue)
	return string(o.str("status", "queued").str("transaction_id", id.String()).bytes())
}

func noDeadLetter(w http.ResponseWriter, p params, why string) {
	var o jsonObject
	o.str("error", "Message not found").str("message", "No dead-letter row for this address. "+why)
	o.str("partitionId", p[0]).flag("success", false)
	answer(w, http.StatusNotFound, o.str("transactionId", p[1]).bytes())
}

// handleDeleteMessage deletes every dead letter of an address, and nothing
// else.
func (b *Broker) handleDeleteMessage(w http.ResponseWriter, _ *http.Request, p params) {
	if !b.isPartitionID(p[0]) {
		failure(w, http.StatusInternalServerError, "delete failed: db error")
		return
	}
	found := 0
	err := b.update(func() {
		rows := b.deadAt(strings.ToLower(p[0]), p[1])
		found = len(rows)
		for _, d := range rows {
			b.unbury(d)
		}
	})
	var o jsonObject
	switch {
	case err != nil:
		unavailable(w, err)
	case found == 0:
		noDeadLetter(w, p, "Live messages cannot be deleted")
	default:
		o.str("message", "Message deleted successfully").str("partitionId", p[0]).flag("success", true)
		answer(w, http.StatusOK, o.str("transactionId", p[1]).bytes())
	}
}
