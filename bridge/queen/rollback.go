package queen

import (
	"encoding/json"
	"net/http"
	"time"
)

// rollbackReasons maps Queen's words, of 1.x and 2.x, to ours
// (queen-contract.md §8.3).
func rollbackReason(word string) (RollbackReason, bool) {
	switch word {
	case "ack_rejected", "rejected_ack":
		return RollbackAckRejected, true
	case "duplicate":
		return RollbackDuplicate, true
	case "kv_precondition":
		return RollbackKVPrecondition, true
	case "bad_request", "timers_server_owned_field", "kv_bad_request", "timers_bad_request":
		return RollbackBadRequest, true
	case "payload_too_large", "too_large", "name_too_long", "kv_key_too_large", "kv_value_too_large":
		return RollbackPayloadTooLarge, true
	case "timer_horizon_exceeded":
		return RollbackTimerHorizon, true
	case "rate_limited", "overloaded":
		return RollbackRateLimited, true
	case "db_error", "misaligned", "reserved", "unavailable":
		return RollbackTransient, true
	case "kv_disabled", "timers_disabled":
		return RollbackDisabled, true
	}
	return RollbackOther, false
}

// rollback reads an answer as a refused transaction; nil if it is none.
//
// Definite refusals by HTTP status count with or without Queen's envelope: a
// 400, 413 or 429 was never begun. A 5xx is never a definite refusal, whatever
// its body says.
func (a *answer) rollback() *RollbackError {
	if a.status >= http.StatusInternalServerError {
		return nil
	}
	var wire struct {
		Success     *bool           `json:"success"`
		OK          *bool           `json:"ok"`
		Reason      jsonText        `json:"reason"`
		Code        jsonText        `json:"code"`
		Error       jsonText        `json:"error"`
		FailedIndex *int            `json:"failedIndex"`
		KVReason    jsonText        `json:"kvReason"`
		Value       json.RawMessage `json:"value"`
	}
	isJSON := json.Unmarshal(a.body, &wire) == nil
	refused := isJSON && (isFalse(wire.Success) || isFalse(wire.OK))
	word := string(wire.Reason)
	reason, known := rollbackReason(word)
	if !known {
		for _, other := range []jsonText{wire.Code, wire.Error} { // proxies and the standalone surfaces put it there
			if r, ok := rollbackReason(string(other)); ok {
				reason, known, word = r, true, string(other)
				break
			}
		}
	}
	if a.ok() && !refused {
		return nil
	}
	if byStatus, definite := refusedByStatus(a.status); definite && !known {
		reason = byStatus
	} else if !a.ok() && !definite && !known && !refused {
		return nil // 401, 403, 404, a redirect: a *StatusError
	}
	e := &RollbackError{Status: a.status, Reason: reason, Raw: clip(word, 64), Text: a.foreign(string(wire.Error)),
		FailedIndex: -1, KVReason: clip(string(wire.KVReason), 64), Value: wire.Value, RetryAfter: retryAfter(a.header, time.Now())}
	if wire.FailedIndex != nil {
		e.FailedIndex = *wire.FailedIndex
	}
	if !isJSON {
		e.Text = a.statusError().Text
	}
	return e
}

func isFalse(b *bool) bool { return b != nil && !*b }

func refusedByStatus(status int) (RollbackReason, bool) {
	switch status {
	case http.StatusBadRequest:
		return RollbackBadRequest, true
	case http.StatusRequestEntityTooLarge:
		return RollbackPayloadTooLarge, true
	case http.StatusTooManyRequests:
		return RollbackRateLimited, true
	}
	return "", false
}
