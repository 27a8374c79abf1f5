package devbroker

import (
	"errors"
	"net/http"
)

const ridersRefused = "the bundle was not committed: its kv/timers riders were refused, and a transaction that dropped them " +
	"would commit the very operations the riders exist to gate"

// handleTransaction is POST /api/v1/transaction.
func (b *Broker) handleTransaction(w http.ResponseWriter, r *http.Request, _ params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	defer body.free()
	mint := newMinter(b.now())
	call := mint.id().String()
	t, err := parseTransaction(body.bytes)
	if err == nil {
		err = t.check(b)
	}
	if err == nil {
		err = b.spend(t)
	}
	if err != nil {
		b.refuseTransaction(w, call, asRollback(err))
		return
	}
	b.readStatuses(t.acks)
	if b.raft() {
		raftItems(t.pushes)
	}
	plan := &txnPlan{transaction: t, push: b.planPush(t.pushes)}
	var back *rollback
	err = b.update(func() {
		if back = b.planTransaction(plan); back == nil {
			b.commit(plan)
		}
	})
	switch {
	case err != nil:
		unavailable(w, err)
	case back != nil:
		b.answerRollback(w, call, back)
	default:
		var o jsonObject
		o.raw("results", jsonList(plan.results())).flag("success", true)
		answer(w, http.StatusOK, o.str("transactionId", call).bytes())
	}
}

// spend takes the tokens of a bundle's riders.
func (b *Broker) spend(t *transaction) error {
	if b.raft() { // riders of a transaction are free (§10)
		return nil
	}
	writes, reads := t.tokens()
	if allowWrites(b.writes, writes) && allowWrites(b.reads, reads) {
		return nil
	}
	return &rollback{status: http.StatusTooManyRequests, reason: "rate_limited", text: ridersRefused}
}

func (b *Broker) refuseTransaction(w http.ResponseWriter, call string, err error) {
	var back *rollback
	if errors.As(err, &back) {
		b.answerRollback(w, call, back)
	} else {
		badBody(w, err)
	}
}

func (b *Broker) answerRollback(w http.ResponseWriter, call string, e *rollback) {
	var o jsonObject
	o.str("error", e.text)
	if e.lost != nil {
		o.num("failedIndex", int64(e.lostIndex)).str("kvReason", e.lost.result.reason).flag("ok", false)
	}
	o.str("reason", b.rollbackWord(e.reason)).raw("results", "[]").flag("success", false).str("transactionId", call)
	if e.lost != nil {
		value, version := e.lost.result.shownValue()
		o.raw("value", value).num("version", version)
	}
	answer(w, e.status, o.bytes())
}
