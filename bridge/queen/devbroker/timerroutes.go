package devbroker

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
)

// handleTimers is POST /api/v1/timers: all of its operations or none.
func (b *Broker) handleTimers(w http.ResponseWriter, r *http.Request, _ params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	defer body.free()
	ops, err := parseTimerBody(body.bytes)
	if err != nil {
		refuseTimers(w, err)
		return
	}
	if schedules(ops) && !allowWrites(b.writes, 1) {
		rateLimited(w)
		return
	}
	var results []timerResult
	err = b.update(func() {
		mint := newMinter(b.now())
		results = b.applyTimers(ops, &mint)
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	rows := make([][]byte, len(results))
	for i := range results {
		rows[i] = results[i].json(-1, 0)
	}
	answer(w, http.StatusOK, new(jsonObject).raw("results", jsonList(rows)).bytes())
}

// parseTimerBody reads the body and finds all that can be wrong with it.
func parseTimerBody(body []byte) (ops []timerOp, err error) {
	s, err := scan(body)
	if err != nil {
		return nil, timerBadBody(err.Error())
	}
	ops, ok, err := operationsOf(s, parseTimerOps)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, timerBadBody(needsArray)
	case len(ops) > maxTimerOps:
		return nil, &timerError{
			status: http.StatusBadRequest, code: "timers_bad_request", reason: "timers_too_many_ops",
			detail: strconv.Itoa(len(ops)) + " ops in one call, the ceiling is " + strconv.Itoa(maxTimerOps),
		}
	}
	if flaw := timersFlaw(ops); flaw != nil {
		return nil, flaw
	}
	return ops, nil
}

func timerBadBody(detail string) *timerError {
	return &timerError{status: http.StatusBadRequest, code: "timers_bad_request", reason: "timers_bad_body", detail: detail}
}

func refuseTimers(w http.ResponseWriter, err error) {
	var e *timerError
	if !errors.As(err, &e) {
		e = timerBadBody(err.Error())
	}
	var o jsonObject
	if e.detail != "" {
		o.str("detail", e.detail)
	}
	answer(w, e.status, o.str("error", e.code).str("reason", e.reason).bytes())
}

// handleCancelTimer is DELETE /api/v1/timers/:queue/*key. It ignores ?txn= but
// echoes it when nothing was pending (measured 1.3.0).
func (b *Broker) handleCancelTimer(w http.ResponseWriter, r *http.Request, p params) {
	var result timerResult
	err := b.update(func() { result = b.cancelTimer(p[0], p[1], r.URL.Query().Get("txn")) })
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, result.json(-1, 0))
}

// handlePeekTimer is GET /api/v1/timers/:queue/*key.
func (b *Broker) handlePeekTimer(w http.ResponseWriter, _ *http.Request, p params) {
	body := new(jsonObject).flag("found", false).str("queue", p[0]).str("timerKey", p[1]).bytes()
	var failed error
	err := b.view(func() {
		t := b.timer(p[0], p[1])
		if t == nil {
			return
		}
		payload := t.payload
		if payload == nil {
			if payload, failed = b.store.timerPayload(t.num); failed != nil {
				return
			}
		}
		body = t.json(payload)
	})
	if err = errors.Join(err, failed); err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, body)
}

// json is a timer as peek shows it, or a row of a list without the payload.
// The members stand in the order of 1.3.0 (PostgreSQL's, by length).
func (t *timer) json(payload []byte) []byte {
	var o jsonObject
	o.str("txn", t.txn)
	if payload != nil {
		o.flag("found", true)
	}
	o.str("queue", t.queue).flag("claimed", false)
	if payload != nil {
		o.str("payload", base64.StdEncoding.EncodeToString(payload))
	}
	o.num("attempts", 0).str("timerKey", t.key).str("createdAt", t.created.stamp()).str("deliverAt", t.at.stamp())
	o.flag("encrypted", false).raw("lastError", "null").str("messageId", t.id.String()).str("partition", t.partition)
	return o.str("updatedAt", t.modified.stamp()).flag("payloadZstd", t.zstd).raw("producerSub", "null").bytes()
}

// handleListTimers is GET /api/v1/timers/:queue. mode=count is not known to
// 1.3.0, which answers the list (measured).
func (b *Broker) handleListTimers(w http.ResponseWriter, r *http.Request, p params) {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 100 // what cannot be read is not there
	}
	limit = min(max(limit, 1), 1000)
	var rows [][]byte
	next := ""
	err = b.view(func() { rows, next = b.listTimers(p[0], query.Get("after"), limit) })
	if err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.raw("rows", jsonList(rows)).strOrNull("nextAfter", next)
	answer(w, http.StatusOK, o.flag("truncated", next != "").bytes())
}

// listTimers lists timers with keys above after; next is set when there are
// more.
func (b *Broker) listTimers(queue, after string, limit int) (rows [][]byte, next string) {
	of := b.st.timers[queue]
	if of == nil {
		return nil, ""
	}
	last := ""
	for key, t := range of.from(after) {
		if key == after {
			continue
		}
		if len(rows) == limit {
			return rows, last
		}
		rows = append(rows, t.json(nil))
		last = key
	}
	return rows, ""
}
