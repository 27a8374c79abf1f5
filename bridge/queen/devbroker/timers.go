package devbroker

import "time"

// timer is a message that will be appended to a partition at a time
// (queen-contract.md §9).
type timer struct {
	num               int64
	queue, key        string
	partition, txn    string
	id                messageID
	at                micros
	created, modified micros
	payload           []byte // nil when it is only in the store
	zstd              bool   // payload is compressed
	slot              int
}

func (t *timer) dueAt() micros { return t.at }
func (t *timer) place() *int   { return &t.slot }

func (t *timer) row() timerRow {
	return timerRow{
		num: t.num, queue: t.queue, key: t.key, partition: t.partition, txn: t.txn, id: t.id, at: t.at,
		created: t.created, modified: t.modified, payload: t.payload, zstd: t.zstd,
	}
}

// Limits of timers (measured 1.3.0; they hold for riders of transactions too).
const (
	maxTimerOps     = 256
	maxTimerPayload = 1 << 20
	timerHorizon    = 90 * 24 * time.Hour
)

// schedules says whether any of the operations costs a token.
func schedules(ops []timerOp) bool {
	for i := range ops {
		if ops[i].op != "cancel" {
			return true
		}
	}
	return false
}

// timerResult is the answer for one operation.
type timerResult struct {
	ok                 bool
	status, queue, key string
	txn                string
	scheduled          bool
	id                 messageID
	at                 micros
}

// applyTimers carries out operations that were found good, under the lock.
func (b *Broker) applyTimers(ops []timerOp, mint *minter) []timerResult {
	out := make([]timerResult, len(ops))
	for i := range ops {
		if op := &ops[i]; op.op == "cancel" {
			out[i] = b.cancelTimer(op.queue, op.key, op.txn)
		} else {
			out[i] = b.scheduleTimer(op, mint)
		}
	}
	return out
}

func (b *Broker) timer(queue, key string) *timer {
	if of := b.st.timers[queue]; of != nil {
		t, _ := of.get(key)
		return t
	}
	return nil
}

func (b *Broker) scheduleTimer(op *timerOp, mint *minter) timerResult {
	now := b.now()
	r := timerResult{ok: true, status: "rescheduled", queue: op.queue, key: op.key, txn: op.txn, scheduled: true}
	t := b.timer(op.queue, op.key)
	if t == nil {
		r.status = "scheduled"
		b.st.lastNum++
		t = &timer{num: b.st.lastNum, queue: op.queue, key: op.key, created: now}
		of := b.st.timers[op.queue]
		if of == nil {
			of = &ordered[*timer]{}
			b.st.timers[op.queue] = of
		}
		of.set(op.key, t)
	}
	t.partition, t.txn, t.payload, t.zstd = op.partition, op.txn, op.payload, op.zstd
	t.id, t.at, t.modified = mint.id(), now.add(op.delay), now
	b.st.pending.put(t)
	if t.slot == 1 {
		b.ringAt()
	}
	b.noteTimer(t)
	r.id, r.at = t.id, t.at
	return r
}

func (b *Broker) cancelTimer(queue, key, txn string) timerResult {
	r := timerResult{status: "absent", queue: queue, key: key, txn: txn}
	if t := b.timer(queue, key); t != nil {
		r.ok, r.status, r.txn = true, "cancelled", t.txn
		b.removeTimer(t)
	}
	return r
}

func (b *Broker) removeTimer(t *timer) {
	of := b.st.timers[t.queue]
	of.remove(t.key)
	if of.len() == 0 {
		delete(b.st.timers, t.queue)
	}
	b.st.pending.remove(t)
	b.noteTimerGone(t)
}

// json is a result with its members in the order 1.3.0 has them. A rider of a
// transaction also has its place in the results; index is -1 for others.
func (r *timerResult) json(index, opIndex int) []byte {
	var o jsonObject
	rider := index >= 0
	if r.scheduled {
		o.str("deliverAt", r.at.stamp())
	}
	if rider {
		o.num("index", int64(index))
	}
	if r.scheduled {
		o.str("messageId", r.id.String())
	}
	o.flag("ok", r.ok)
	if rider {
		o.num("opIndex", int64(opIndex))
	}
	o.str("queue", r.queue).str("status", r.status).str("timerKey", r.key)
	if r.txn == "" && !r.scheduled {
		o.raw("txn", "null")
	} else {
		o.str("txn", r.txn)
	}
	if rider {
		o.str("type", "timer")
	}
	return o.bytes()
}
