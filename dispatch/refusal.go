package dispatch

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// refusal is what Queen's answer to a settle means (design.md, "Refusals").
type refusal int8

const (
	accepted     refusal = iota
	indefinite           // it may have committed, or will when sent again: the identical body again
	operators            // the same, but only an operator can help: pop nothing meanwhile
	timersGone           // committed, without its timers: an old broker
	leaseLost            // a partition's lease is lost, or this settle had committed
	idForgotten          // the broker knows a transaction id no longer ("Old events")
	duplicate            // a pushed id was there
	precondition         // a KV version was another
	atFault              // something in it is too large or malformed: split
)

// classify reads the answer to a transaction.
func classify(err error) refusal {
	var rollback *queen.RollbackError
	var timers *queen.TimersIgnoredError
	var status *queen.StatusError
	switch {
	case err == nil:
		return accepted
	case errors.As(err, &timers):
		return timersGone
	case queen.Denied(err):
		return operators
	case errors.As(err, &rollback):
		return classifyRollback(rollback)
	case errors.As(err, &status):
		return classifyStatus(status.Status)
	}
	return indefinite
}

func classifyRollback(e *queen.RollbackError) refusal {
	switch e.Reason {
	case queen.RollbackAckRejected:
		if e.UnknownTransactionID() {
			return idForgotten
		}
		return leaseLost
	case queen.RollbackDuplicate:
		return duplicate
	case queen.RollbackKVPrecondition:
		return precondition
	case queen.RollbackBadRequest, queen.RollbackPayloadTooLarge, queen.RollbackTimerHorizon:
		return atFault
	case queen.RollbackDisabled:
		return operators
	}
	// rate_limited, transient, and words of a later Queen: nothing was written.
	return indefinite
}

func classifyStatus(status int) refusal {
	switch {
	case status == http.StatusRequestEntityTooLarge, status == http.StatusBadRequest:
		return atFault
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return indefinite
	}
	// 404 and the like: a wrong URL or a broker without transactions.
	return operators
}

// finalRefusal says that an ack call itself is refused, and would be again:
// Queen calls it malformed or too large, or the client does. An answer that is
// not Queen's own, such as a balancer's 404, proves nothing.
func finalRefusal(err error) bool {
	var status *queen.StatusError
	if errors.As(err, &status) {
		return classifyStatus(status.Status) == atFault
	}
	return err != nil && !queen.Temporary(err) && !queen.Uncertain(err)
}

// culprit finds the settlement whose partition a refusal's text names; -1
// where it names none or several.
func culprit(text string, unit []*settlement) int {
	found := -1
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	named := make(map[string]bool, len(words))
	for _, w := range words {
		named[w] = true
	}
	for i, s := range unit {
		if id := s.partitionID(); id == "" || !named[id] {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// ours finds the settlement whose KV value Queen shows as the one that won:
// then this very body had committed. -1: somebody else's.
func ours(value json.RawMessage, unit []*settlement) int {
	by := countBy(value)
	if by == "" {
		return -1
	}
	for i, s := range unit {
		if s.kv != nil && countBy(s.kv.Value) == by {
			return i
		}
	}
	return -1
}

// kvCulprit finds the settlement whose KV operation lost. index is flat: acks
// and pushes stand before the KV operations.
func kvCulprit(index int, unit []*settlement) int {
	var tx queen.Transaction
	owners := assemble(unit, &tx)
	k := index - len(tx.Acks) - len(tx.Pushes)
	if k < 0 || k >= len(owners) {
		return -1
	}
	return owners[k]
}
