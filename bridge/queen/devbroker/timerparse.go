package devbroker

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// timerOp is one operation on timers.
type timerOp struct {
	op, queue, key, partition, txn string
	delay                          time.Duration
	payload                        []byte
	zstd                           bool        // payload is compressed; nobody looks before it fires
	flaw                           *timerError // what PostgreSQL would refuse
}

// timerError is a call that is refused.
type timerError struct {
	status               int
	code, reason, detail string
	rider                string // how a transaction words what is found before the database; else reason
}

func (e *timerError) Error() string { return e.reason }

func (e *timerError) rollback() *rollback {
	reason := e.code
	if reason == "timers_bad_request" {
		reason = "bad_request"
	}
	if e.rider != "" {
		return &rollback{status: e.status, reason: reason, text: e.rider}
	}
	return refused(reason, "%s", e.reason)
}

// timerBefore is a refusal from before the database: text follows the words
// that name the operation, which differ by surface.
func timerBefore(index int, reason, text string) *timerError {
	at := " at index " + strconv.Itoa(index) + text
	return &timerError{
		status: http.StatusBadRequest, code: "timers_bad_request", reason: reason,
		detail: "op" + at, rider: "timer operation" + at,
	}
}

// timerFlaw is a refusal by the database: 400 on the timer route, a rollback
// in a transaction.
func timerFlaw(text string) *timerError {
	return &timerError{status: http.StatusBadRequest, code: "timers_bad_request", reason: "QTIMER " + text}
}

// parseTimerOps reads an array of operations.
func parseTimerOps(s *scanner) ([]timerOp, error) {
	var ops []timerOp
	err := s.array(func() error {
		if s.peek() != '{' {
			return timerBefore(len(ops), "timers_bad_op", " is not an object")
		}
		raw := rawTimer{index: len(ops)}
		if err := s.object(func(key []byte) error { return raw.field(s, string(key)) }); err != nil {
			return err
		}
		op, err := raw.check()
		ops = append(ops, op)
		return err
	})
	return ops, err
}

// rawTimer is an operation before it is checked.
type rawTimer struct {
	timerOp
	index        int
	number       []byte
	payload      []byte
	hasPayload   bool
	hasPartition bool
	owned        string // a member only the broker may set
}

func (t *rawTimer) field(s *scanner, key string) (err error) {
	switch key {
	case "op":
		t.op, err = textOf(s)
	case "queue":
		t.queue, err = s.looseText()
	case "timerKey":
		t.key, err = textOf(s)
	case "partition":
		t.hasPartition = true
		t.partition, err = textOf(s)
	case "txn":
		t.txn, err = textOf(s)
	case "delayMs":
		t.number, err = s.raw()
	case "payload":
		t.payload, t.hasPayload, err = s.loose()
	case "payloadZstd":
		var word string
		word, err = textOf(s)
		t.zstd, _ = truth(word)
	default:
		if t.owned == "" && serverOwned(key) {
			t.owned = key
		}
		_, err = s.raw()
	}
	return err
}

// textOf reads a member the way PostgreSQL turns it into text: a number is its
// digits, null is nothing.
func textOf(s *scanner) (string, error) {
	if s.peek() == '"' {
		return s.looseText()
	}
	raw, err := s.raw()
	if string(raw) == "null" {
		return "", err
	}
	return string(raw), err
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
func (t *rawTimer) check() (timerOp, error) {
	if t.owned != "" && t.owned[0] == '_' {
		return t.timerOp, timerBefore(t.index, "timers_server_owned_field",
			": `"+t.owned+"` is server-owned; underscore-prefixed fields are injected by the broker and cannot be supplied")
	}
	if t.op != "cancel" {
		if err := t.checkSchedule(); err != nil {
			return t.timerOp, err
		}
	}
	if t.owned != "" {
		t.flaw = t.ownedFlaw()
	} else if text := t.databaseFlaw(); text != "" {
		t.flaw = timerFlaw("op " + strconv.Itoa(t.index) + ": " + text)
	}
	if t.partition == "" {
		t.partition = defaultPartition
	}
	return t.timerOp, nil
}

// ownedFlaw is found by the database on the timer route, and before it in a
// transaction (measured 1.3.0).
func (t *rawTimer) ownedFlaw() *timerError {
	e := timerFlaw("op " + strconv.Itoa(t.index) + ": field " + t.owned + " is server-owned and cannot be supplied")
	e.detail = serverOwnedDetail
	e.rider = "timer operation at index " + strconv.Itoa(t.index) + ": `" + t.owned + "` is server-owned and cannot be supplied. " + serverOwnedDetail
	return e
}

func (t *rawTimer) checkSchedule() error {
	if t.queue == "" {
		return timerBefore(t.index, "timers_queue_required", ": queue is required")
	}
	ms, err := strconv.ParseFloat(string(t.number), 64)
	if err != nil {
		return timerBefore(t.index, "timers_delay_required",
			": delayMs (a number of milliseconds) is required; a delayMs in the past is LEGAL and fires on the first cycle")
	}
	if ms > float64(timerHorizon/time.Millisecond) {
		return beyondHorizon(t.index, ms)
	}
	t.delay = time.Duration(max(ms, 0) * float64(time.Millisecond))
	if !t.hasPayload {
		return timerBefore(t.index, "timers_payload_required", ": payload (base64) is required")
	}
	if t.timerOp.payload, err = decodePayload(t.payload); err != nil {
		return timerBefore(t.index, "timers_payload_not_base64", ": payload is not valid base64: "+err.Error())
	}
	if n := len(t.timerOp.payload); n > maxTimerPayload {
		e := timerBefore(t.index, "timers_payload_too_large",
			": payload is "+strconv.Itoa(n)+" bytes, the ceiling is "+strconv.Itoa(maxTimerPayload))
		e.status, e.code = http.StatusRequestEntityTooLarge, "payload_too_large"
		return e
	}
	return nil
}

func beyondHorizon(index int, ms float64) *timerError {
	text := ": delayMs " + strconv.FormatFloat(ms, 'f', -1, 64) + " is beyond the " +
		strconv.FormatInt(int64(timerHorizon/time.Millisecond), 10) + " ms horizon "
	e := timerBefore(index, "timers_horizon", text)
	e.status, e.code = http.StatusForbidden, "timer_horizon_exceeded"
	e.detail += "in force here"
	e.rider += "of this cell"
	return e
}

// decodePayload decodes padded standard base64, the only form 1.3.0 takes.
func decodePayload(text []byte) ([]byte, error) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	if err == nil {
		return out[:n:n], nil
	}
	for i, c := range text {
		if strings.IndexByte(base64Symbols, c) < 0 {
			return nil, base64Error(fmt.Sprintf("Invalid symbol %d, offset %d.", c, i))
		}
	}
	return nil, base64Error("Invalid padding")
}

const base64Symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

// base64Error says what is wrong with a payload in the words of 1.3.0.
type base64Error string

func (e base64Error) Error() string { return string(e) }

// databaseFlaw is what the real broker's database refuses.
func (t *rawTimer) databaseFlaw() string {
	switch {
	case t.op != "schedule" && t.op != "reschedule" && t.op != "cancel":
		return "unknown operation"
	case t.queue == "":
		return "queue is required"
	case t.key == "":
		return "timerKey is required"
	case t.hasPartition && t.partition == "":
		return "partition, when present, must be non-empty"
	case t.op != "cancel" && t.txn == "":
		return "txn is required"
	}
	return ""
}

type timerID struct{ queue, key string }

// timersFlaw is the first thing the database refuses in a call, its repeated
// keys included.
func timersFlaw(ops []timerOp) *timerError {
	seen := map[timerID]bool{}
	for i := range ops {
		op := &ops[i]
		if op.flaw != nil {
			return op.flaw
		}
		id := timerID{op.queue, op.key}
		if seen[id] {
			return timerFlaw("a (queue, timerKey) appears more than once in one call")
		}
		seen[id] = true
	}
	return nil
}
