package devbroker

import (
	"errors"
	"net/http"
	"strconv"
)

// parseTransaction reads a bundle. Its errors are what 1.3.0 finds before its
// database.
func parseTransaction(body []byte) (*transaction, error) {
	s, err := scan(body)
	if err != nil {
		return nil, badRequest("bad body: " + err.Error())
	}
	t := &transaction{}
	any := false
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "operations":
			any = true
			return s.array(func() error { return t.operation(s) })
		case "requiredLeases":
			if s.null() {
				return nil
			}
			return s.array(func() error {
				id, err := s.optional()
				t.leases = append(t.leases, id)
				return err
			})
		case "kv":
			any = true
			t.kv, err = riderOf(s, parseKVOps)
		case "timers":
			any = true
			t.timers, err = riderOf(s, parseTimerOps)
		default:
			_, err = s.raw()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && !any {
		err = badRequest("operations must be an array")
	}
	return t, asRollback(err)
}

func riderOf[T any](s *scanner, parse func(*scanner) ([]T, error)) ([]T, error) {
	if s.null() {
		return nil, nil
	}
	return parse(s)
}

// asRollback words an error of parsing as a transaction does.
func asRollback(err error) error {
	var back *rollback
	var timer *timerError
	var kv *kvError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &back):
		return back
	case errors.As(err, &timer):
		reason := timer.code
		if reason == "timers_bad_request" {
			reason = "bad_request"
		}
		return &rollback{status: timer.status, reason: reason, text: timer.rider}
	case errors.As(err, &kv):
		return kv.rollback()
	}
	return badRequest("bad body: " + err.Error())
}

func (e *kvError) rollback() *rollback {
	reason := e.code
	switch reason {
	case "kv_bad_request":
		reason = "bad_request"
	case "kv_error":
		reason = "db_error"
	}
	if e.early {
		return &rollback{status: e.status, reason: reason, text: e.Error()}
	}
	return &rollback{status: http.StatusOK, reason: reason, text: e.reason}
}

// operation reads one element of operations.
func (t *transaction) operation(s *scanner) error {
	raw, err := s.raw()
	if err != nil {
		return err
	}
	kind, err := operationType(raw)
	if err != nil {
		return err
	}
	switch kind {
	case "ack":
		a, err := parseAck(&scanner{doc: raw})
		t.ops = append(t.ops, txnOp{index: len(t.acks)})
		t.acks = append(t.acks, a)
		return err
	case "push":
		return t.push(raw)
	case "kv", "timer", "timers":
		return badRequest(`kv and timer operations are TOP-LEVEL arrays of the request ("kv":[...], "timers":[...]), never elements of ` + "`operations`")
	}
	return badRequest("segments transaction supports only push and ack operations, got `" + kind + "`")
}

func operationType(raw []byte) (kind string, err error) {
	s := &scanner{doc: raw}
	err = s.object(func(key []byte) (err error) {
		if string(key) == "type" {
			kind, err = s.optional()
		} else {
			_, err = s.raw()
		}
		return err
	})
	return kind, err
}

// push reads a push operation: items, or one item flat on the operation.
func (t *transaction) push(raw []byte) error {
	nested := false
	s := &scanner{doc: raw}
	err := s.object(func(key []byte) error {
		if string(key) != "items" || s.peek() != '[' {
			_, err := s.raw()
			return err
		}
		nested = true
		return s.array(func() error { return t.pushItem(s) })
	})
	if err != nil || nested {
		return err
	}
	return t.pushItem(&scanner{doc: raw})
}

func (t *transaction) pushItem(s *scanner) error {
	it, err := parsePushItem(s, true)
	if err != nil {
		return err
	}
	// A transaction push encodes its payload again (measured 1.3.0).
	if it.payload, err = canonical(it.payload); err != nil {
		return err
	}
	if len(it.txn) > maxTxn {
		return badRequest("transactionId exceeds the " + strconv.Itoa(maxTxn) + "-byte limit")
	}
	t.ops = append(t.ops, txnOp{push: true, index: len(t.pushes)})
	t.pushes = append(t.pushes, it)
	return nil
}
