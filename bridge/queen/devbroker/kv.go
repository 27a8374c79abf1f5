package devbroker

import (
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"time"
)

// kvOp is one KV operation (queen-contract.md §10).
type kvOp struct {
	op, namespace, key string
	keys               []string
	prefix, after      string
	limit              int
	keysOnly           bool
	value              []byte // canonical JSON
	ttl                time.Duration
	expiries           int // how many of ttlSeconds and forever were given
	expect             *int64
	required           bool
	delta, least, most *big.Rat
	nul                bool // the value holds what PostgreSQL cannot
}

// kvError is an operation that is refused before anything is done.
type kvError struct {
	status               int
	code, reason, detail string
	// early marks what the real broker finds before it asks its database; what
	// the database finds is an answer with 200 in a transaction.
	early bool
}

func (e *kvError) Error() string {
	if e.detail != "" {
		return e.detail
	}
	return e.reason
}

// kvTooLarge is a key or a value beyond its limit.
func kvTooLarge(reason, format string, args ...any) *kvError {
	return &kvError{status: http.StatusRequestEntityTooLarge, code: "payload_too_large", reason: reason, detail: fmt.Sprintf(format, args...)}
}

func kvBad(reason, format string, args ...any) *kvError {
	return &kvError{status: http.StatusBadRequest, code: "kv_bad_request", reason: reason, detail: fmt.Sprintf(format, args...)}
}

// Limits of KV (queen-contract.md §10, §8.5).
const (
	maxKVOps      = 256
	maxKVKeys     = 1024
	maxKVKey      = 512
	maxKVValue    = 64 << 10
	maxKVRead     = 4 << 20
	maxRiderKV    = 64
	maxRiderKeys  = 256
	maxPrefixRows = 1000
)

func parseKVOps(s *scanner) ([]kvOp, error) {
	var ops []kvOp
	err := s.array(func() error {
		if s.peek() != '{' {
			e := kvBad("kv_bad_request", "op at index %d is not an object", len(ops))
			e.early = true
			return e
		}
		var op kvOp
		err := s.object(func(key []byte) error { return op.field(s, string(key), len(ops)) })
		ops = append(ops, op)
		return err
	})
	return ops, err
}

// field reads one member of an operation.
func (o *kvOp) field(s *scanner, key string, index int) (err error) {
	switch key {
	case "op":
		o.op, err = s.optional()
	case "ns":
		o.namespace, err = s.optional()
	case "key":
		o.key, err = s.optional()
	case "prefix":
		o.prefix, err = s.optional()
	case "after":
		o.after, err = s.optional()
	case "keys":
		err = o.readKeys(s)
	case "value":
		err = o.readValue(s)
	case "keysOnly", "required", "forever":
		err = o.flag(s, key, index)
	case "delta":
		o.delta, err = readDecimal(s, key, index)
	case "min":
		o.least, err = readDecimal(s, key, index)
	case "max":
		o.most, err = readDecimal(s, key, index)
	case "tenant", "tenantId", "tenant_id":
		return kvBad("kv_tenant_not_an_input", "op at index %d: %s is not an input", index, key)
	default:
		err = o.integer(s, key, index)
	}
	return err
}

func (o *kvOp) readKeys(s *scanner) error {
	if s.null() {
		return nil
	}
	return s.array(func() error {
		key, err := s.str()
		o.keys = append(o.keys, string(key))
		return err
	})
}

func (o *kvOp) readValue(s *scanner) error {
	raw, err := s.raw()
	if err != nil {
		return err
	}
	o.value, err = canonical(raw)
	o.nul = hasNUL(o.value)
	return err
}

// flag reads one of the members that are true or false. Only required is
// strict (measured 1.3.0): who wrote it meant to be fenced.
func (o *kvOp) flag(s *scanner, key string, index int) error {
	raw, err := s.raw()
	if err != nil {
		return err
	}
	set := string(raw) == "true"
	switch {
	case key == "keysOnly":
		o.keysOnly = set
	case key == "required":
		o.required = set
		if !set && string(raw) != "false" && string(raw) != "null" {
			return kvBad("kv_bad_request", "op at index %d: required must be a boolean", index)
		}
	case set:
		o.expiries++
	}
	return nil
}

func flagOrNull(s *scanner) (bool, error) {
	if s.null() {
		return false, nil
	}
	return s.boolean()
}

// integer reads one of the members that are integers. A null version is no
// version: who wrote expect meant to be fenced (measured 1.3.0).
func (o *kvOp) integer(s *scanner, key string, index int) error {
	raw, err := s.raw()
	if err != nil || string(raw) == "null" && key != "expect" {
		return err
	}
	n, bad := strconv.ParseInt(string(raw), 10, 64)
	switch key {
	case "limit":
		if o.limit = int(n); bad != nil {
			return kvBad("kv_bad_request", "op at index %d: limit must be an integer", index)
		}
	case "ttlSeconds":
		if bad != nil || n <= 0 {
			return kvBad("kv_bad_ttl", "op at index %d: ttlSeconds must be an integer greater than zero", index)
		}
		o.ttl = time.Duration(min(n, maxLeaseSeconds)) * time.Second
		o.expiries++
	case "expect":
		if bad != nil || n < 0 {
			return kvBad("kv_bad_expect", "op at index %d: expect must be a non-negative integer version (0 = must not exist)", index)
		}
		o.expect = &n
	}
	return nil
}

func (o *kvOp) writes() bool {
	switch o.op {
	case "put", "putIfAbsent", "delete", "incr":
		return true
	}
	return false
}

// sets says whether the operation stores a value, and so needs an expiry.
func (o *kvOp) sets() bool { return o.writes() && o.op != "delete" }

// kvCosts counts the tokens of a call: one for its writes, one for its reads.
func kvCosts(ops []kvOp) (writes, reads int) {
	for i := range ops {
		if ops[i].writes() {
			writes = 1
		} else {
			reads = 1
		}
	}
	return writes, reads
}

func refuseKV(w http.ResponseWriter, err error) {
	var e *kvError
	if !errors.As(err, &e) {
		e = kvBad("kv_bad_body", "%s", err.Error())
	}
	var o jsonObject
	if e.detail != "" {
		o.str("detail", e.detail)
	}
	answer(w, e.status, o.str("error", e.code).str("reason", e.reason).bytes())
}
