package devbroker

import (
	"errors"
	"net/http"
	"strconv"
)

// The real broker decodes a transaction into a generic document and picks what
// it knows: a member of the wrong type is as good as absent, while anything
// that is no JSON at all is refused before there is an envelope (measured
// 1.3.0).

const needsOperations = "transaction requires an operations array (or a top-level kv/timers array)"

// parseTransaction reads a bundle. Its errors are what 1.3.0 finds before its
// database: a *rollback, or an error about the JSON itself.
func parseTransaction(body []byte) (*transaction, error) {
	s, err := scan(body)
	if err != nil {
		return nil, err
	}
	if s.peek() != '{' {
		if _, err = s.raw(); err == nil {
			err = s.end()
		}
		return nil, errors.Join(err, badRequest(needsOperations))
	}
	t := &transaction{}
	err = s.object(func(key []byte) error { return t.member(s, string(key)) })
	if err == nil {
		err = s.end()
	}
	if err == nil && !t.given {
		err = badRequest(needsOperations)
	}
	return t, err
}

func (t *transaction) member(s *scanner, key string) (err error) {
	list := s.peek() == '['
	switch {
	case key == "operations" && list:
		t.given = true
		return s.array(func() error { return t.operation(s) })
	case key == "requiredLeases" && list:
		return s.array(func() error {
			id, _, err := s.loose()
			t.leases = append(t.leases, string(id))
			return err
		})
	case key == "kv" && list:
		t.given = true
		t.kv, err = parseKVOps(s)
		return err
	case key == "timers" && list:
		t.given = true
		t.timers, err = parseTimerOps(s)
		return err
	case (key == "kv" || key == "timers") && s.peek() != 'n':
		return badRequest("`" + key + "` must be an array at the TOP LEVEL of the request body, beside `operations` and never inside it")
	}
	_, err = s.raw()
	return err
}

// asRollback words what was found in a rider as a transaction does. An error
// about the JSON itself stays as it is.
func asRollback(err error) error {
	var timer *timerError
	var kv *kvError
	switch {
	case errors.As(err, &timer):
		return timer.rollback()
	case errors.As(err, &kv):
		return kv.rollback()
	}
	return err
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
	return refused(reason, "%s", e.reason)
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
		a, err := parseAck(&scanner{doc: raw}, (*scanner).looseText)
		t.ops = append(t.ops, txnOp{index: len(t.acks)})
		t.acks = append(t.acks, a)
		return err
	case "push":
		return t.push(raw)
	case "kv", "timer", "timers":
		return badRequest(`kv and timer operations are TOP-LEVEL arrays of the request ("kv":[...], "timers":[...]), never elements of ` + "`operations`")
	case "":
		return badRequest("every transaction operation needs a `type` of push or ack")
	}
	return badRequest("segments transaction supports only push and ack operations, got `" + kind + "`")
}

func operationType(raw []byte) (kind string, err error) {
	s := &scanner{doc: raw}
	if s.peek() != '{' {
		return "", nil
	}
	err = s.object(func(key []byte) (err error) {
		if string(key) == "type" {
			kind, err = s.looseText()
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
	it, err := parseTxnItem(s)
	if err != nil {
		return err
	}
	// A transaction push encodes its payload again (measured 1.3.0).
	if it.payload, err = canonical(it.payload); err != nil {
		return err
	}
	t.ops = append(t.ops, txnOp{push: true, index: len(t.pushes)})
	t.pushes = append(t.pushes, it)
	return nil
}

// parseTxnItem reads an item of a transaction push. The payload may be called
// data and be left out, and the trace id counts (queen-contract.md §8).
func parseTxnItem(s *scanner) (it pushItem, err error) {
	it = pushItem{partition: defaultPartitionName, payload: []byte("{}"), minted: true}
	if s.peek() != '{' {
		_, err = s.raw()
		return it, err
	}
	payload := false
	err = s.object(func(key []byte) (err error) {
		var text []byte
		var ok bool
		switch string(key) {
		case "queue":
			it.queue, _, err = s.loose()
		case "partition":
			if text, ok, err = s.loose(); ok {
				it.partition = text
			}
		case "transactionId":
			if text, ok, err = s.loose(); ok {
				it.txn, it.minted = text, false
			}
		case "traceId":
			it.trace, err = s.looseText()
		case "payload":
			it.payload, err = s.raw()
			payload = true
		case "data":
			if text, err = s.raw(); !payload {
				it.payload = text
			}
		default:
			_, err = s.raw()
		}
		return err
	})
	return it, err
}

// check finds what is wrong with the riders as far as no state is needed.
func (t *transaction) check(b *Broker) error {
	if n := len(t.timers); n > maxTimerOps {
		return badRequest(strconv.Itoa(n) + " timer operations in one transaction, the ceiling is " + strconv.Itoa(maxTimerOps))
	}
	if err := checkKV(t.kv, b.namespaces, true); err != nil {
		return err.rollback()
	}
	return nil
}

func badRequest(text string) *rollback {
	return &rollback{status: http.StatusBadRequest, reason: "bad_request", text: text}
}
