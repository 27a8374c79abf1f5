package devbroker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

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
	slot              int
}

func (t *timer) dueAt() micros { return t.at }
func (t *timer) place() *int   { return &t.slot }

func (t *timer) row() timerRow {
	return timerRow{
		num: t.num, queue: t.queue, key: t.key, partition: t.partition, txn: t.txn, id: t.id, at: t.at,
		created: t.created, modified: t.modified, payload: t.payload,
	}
}

// Limits of timers (measured 1.3.0; they hold for riders of transactions too).
const (
	maxTimerOps     = 256
	maxTimerPayload = 1 << 20
	timerHorizon    = 90 * 24 * time.Hour
)

// timerOp is one operation on timers.
type timerOp struct {
	op, queue, key, partition, txn string
	hasTxn                         bool
	delay                          time.Duration
	payload                        []byte
	flaw                           string // what PostgreSQL would refuse, as it says it
}

// timerError is an operation that is refused before anything is done.
type timerError struct {
	status        int
	code, reason  string
	detail, rider string // rider: how a transaction words it
}

func (e *timerError) Error() string { return e.rider }

func timerBad(reason, detail string) *timerError {
	return &timerError{status: http.StatusBadRequest, code: "timers_bad_request", reason: reason, detail: detail, rider: detail}
}

// parseTimerOps reads an array of operations.
func parseTimerOps(s *scanner) ([]timerOp, error) {
	var ops []timerOp
	err := s.array(func() error {
		op, err := parseTimerOp(s, len(ops))
		ops = append(ops, op)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(ops) > maxTimerOps {
		return nil, timerBad("timers_too_many_ops", fmt.Sprintf("%d timer operations; the ceiling is %d", len(ops), maxTimerOps))
	}
	return ops, nil
}

// rawTimer is an operation before it is checked.
type rawTimer struct {
	timerOp
	number, payload []byte
	hasPartition    bool
	zstd            bool
}

func parseTimerOp(s *scanner, index int) (timerOp, error) {
	var raw rawTimer
	if err := s.object(func(key []byte) error { return raw.field(s, string(key), index) }); err != nil {
		return timerOp{}, err
	}
	return raw.check(index)
}

func (t *rawTimer) field(s *scanner, key string, index int) (err error) {
	switch key {
	case "op":
		t.op, err = s.optional()
	case "queue":
		t.queue, err = s.optional()
	case "timerKey":
		t.key, err = s.optional()
	case "partition":
		t.hasPartition = s.peek() != 'n'
		t.partition, err = s.optional()
	case "txn":
		t.hasTxn = s.peek() != 'n'
		t.txn, err = s.optional()
	case "delayMs":
		t.number, err = s.raw()
	case "payload":
		if !s.null() {
			t.payload, err = s.raw()
		}
	case "payloadZstd":
		var raw []byte
		raw, err = s.raw()
		t.zstd = string(raw) == "true"
	default:
		if serverOwned(key) {
			t.flaw = "QTIMER op " + strconv.Itoa(index) + ": field " + key + " is server-owned and cannot be supplied"
		}
		_, err = s.raw()
	}
	return err
}

// serverOwned lists what only the broker may set (queen-contract.md §9).
func serverOwned(key string) bool {
	switch key {
	case "producerSub", "producer_sub", "messageId", "message_id", "tenant", "tenantId", "tenant_id",
		"deliverAt", "deliver_at", "delaySeconds", "delay_seconds", "attempts", "claimToken", "claim_token", "claimedUntil":
		return true
	}
	return key != "" && key[0] == '_'
}

const serverOwnedDetail = "producerSub and the tenant come from the authenticated request; the message id is minted by the broker; " +
	"deliverAt is not expressible — the wire carries only the relative delayMs"

// check finds what is wrong with an operation: in the order, and with the
// words, of 1.3.0.
func (t *rawTimer) check(index int) (timerOp, error) {
	at := "op at index " + strconv.Itoa(index) + ": "
	if t.queue == "" {
		return t.timerOp, timerBad("timers_queue_required", at+"queue is required")
	}
	if t.op == "" {
		t.op = "schedule"
	}
	if t.op == "schedule" || t.op == "reschedule" {
		if err := t.checkSchedule(at); err != nil {
			return t.timerOp, err
		}
	}
	if t.flaw == "" {
		t.flaw = t.databaseFlaw(index)
	}
	if t.partition == "" {
		t.partition = defaultPartition
	}
	return t.timerOp, nil
}

func (t *rawTimer) checkSchedule(at string) error {
	delay, err := parseDelay(t.number)
	if err != nil {
		return timerBad("timers_delay_required", at+err.Error())
	}
	if delay > timerHorizon {
		return beyondHorizon(at, string(t.number))
	}
	t.delay = delay
	switch {
	case t.payload == nil:
		return timerBad("timers_payload_required", at+"payload is required")
	case t.zstd:
		return timerBad("timers_payload_zstd", at+"payloadZstd is not supported by the embedded broker")
	}
	t.timerOp.payload, err = decodePayload(t.payload)
	if err != nil {
		return timerBad("timers_payload_not_base64", at+"payload is not standard base64")
	}
	if len(t.timerOp.payload) > maxTimerPayload {
		return &timerError{
			status: http.StatusRequestEntityTooLarge, code: "payload_too_large", reason: "timers_payload_too_large",
			detail: at + "payload exceeds " + strconv.Itoa(maxTimerPayload) + " bytes",
			rider:  "timer operation" + at[len("op"):] + "payload exceeds " + strconv.Itoa(maxTimerPayload) + " bytes",
		}
	}
	return nil
}

func beyondHorizon(at, ms string) *timerError {
	limit := strconv.FormatInt(int64(timerHorizon/time.Millisecond), 10)
	return &timerError{
		status: http.StatusForbidden, code: "timer_horizon_exceeded", reason: "timers_horizon",
		detail: at + "delayMs " + ms + " is beyond the " + limit + " ms horizon in force here",
		rider:  "timer operation" + at[len("op"):] + "delayMs " + ms + " is beyond the " + limit + " ms horizon of this cell",
	}
}

var (
	errNoDelay  = errors.New("delayMs is required")
	errBadDelay = errors.New("delayMs must be a number of milliseconds")
)

// parseDelay reads delayMs: any number, negative ones too.
func parseDelay(raw []byte) (time.Duration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, errNoDelay
	}
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, errBadDelay
	}
	ms = min(max(ms, 0), 1e12)
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// decodePayload decodes a JSON string of padded standard base64, the only form
// 1.3.0 takes.
func decodePayload(raw []byte) ([]byte, error) {
	s := scanner{doc: raw}
	text, err := s.str()
	if err != nil {
		return nil, err
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	return out[:n:n], err
}

// databaseFlaw is what the real broker's database refuses: 400 on the timer
// route, a rollback in a transaction.
func (t *rawTimer) databaseFlaw(index int) string {
	op := "QTIMER op " + strconv.Itoa(index) + ": "
	switch {
	case t.op != "schedule" && t.op != "reschedule" && t.op != "cancel":
		return op + "unknown op " + t.op
	case t.key == "":
		return op + "timerKey is required"
	case t.hasPartition && t.partition == "":
		return op + "partition must not be empty"
	case t.op != "cancel" && t.txn == "":
		return op + "txn is required"
	}
	return ""
}

type timerID struct{ queue, key string }

// timersFlaw is the first database flaw of a call, its repeated keys included.
func timersFlaw(ops []timerOp) string {
	seen := map[timerID]bool{}
	for i := range ops {
		op := &ops[i]
		if op.flaw != "" {
			return op.flaw
		}
		id := timerID{op.queue, op.key}
		if seen[id] {
			return "QTIMER op " + strconv.Itoa(i) + ": duplicate (queue, timerKey) in one call"
		}
		seen[id] = true
	}
	return ""
}

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
	t.partition, t.txn, t.payload = op.partition, op.txn, op.payload
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
