package devbroker

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
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
	delta              int64
	least, most        *int64
	hasDelta           bool
	nul                bool // the value holds what PostgreSQL cannot
}

// kvError is an operation that is refused before anything is done.
type kvError struct {
	status               int
	code, reason, detail string
	database             bool // found by the real broker's database: 200 in a transaction
}

func (e *kvError) Error() string {
	if e.detail != "" {
		return e.detail
	}
	return e.reason
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
	case "keysOnly":
		o.keysOnly, err = flagOrNull(s)
	case "required":
		o.required, err = flagOrNull(s)
	case "forever":
		var forever bool
		if forever, err = flagOrNull(s); forever {
			o.expiries++
		}
	case "tenant", "tenantId", "tenant_id":
		return kvBad("kv_tenant_not_an_input", "op at index %d: %s is not an input", index, key)
	default:
		err = o.number(s, key, index)
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

func flagOrNull(s *scanner) (bool, error) {
	if s.null() {
		return false, nil
	}
	return s.boolean()
}

// number reads one of the members that are integers or null.
func (o *kvOp) number(s *scanner, key string, index int) error {
	raw, err := s.raw()
	if err != nil || string(raw) == "null" {
		return err
	}
	n, bad := strconv.ParseInt(string(raw), 10, 64)
	at := "op at index " + strconv.Itoa(index) + ": "
	switch key {
	case "limit":
		o.limit = int(n)
	case "ttlSeconds":
		if bad != nil || n <= 0 {
			return &kvError{status: http.StatusBadRequest, code: "kv_bad_request", reason: "kv_bad_ttl", detail: at + "ttlSeconds must be an integer > 0", database: true}
		}
		o.ttl = time.Duration(min(n, maxLeaseSeconds)) * time.Second
		o.expiries++
	case "expect":
		if bad != nil || n < 0 {
			return kvBad("kv_bad_expect", "%sexpect must be a version", at)
		}
		o.expect = &n
	case "delta":
		o.delta, o.hasDelta = n, bad == nil
	case "min":
		o.least = &n
	case "max":
		o.most = &n
	default:
		return nil
	}
	if bad != nil {
		return kvBad("kv_bad_number", "%s%s must be an integer", at, key)
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

// checkKV finds the first thing wrong with a call. rider has the tighter
// limits of a transaction.
func checkKV(ops []kvOp, namespaces *regexp.Regexp, rider bool) *kvError {
	most, mostKeys := maxKVOps, maxKVKeys
	if rider {
		most, mostKeys = maxRiderKV, maxRiderKeys
	}
	if len(ops) > most {
		return kvBad("kv_too_many_ops", "%d operations; the ceiling is %d", len(ops), most)
	}
	keys := 0
	for i := range ops {
		if err := ops[i].check(i, namespaces, rider); err != nil {
			return err
		}
		keys += max(1, len(ops[i].keys))
	}
	if keys > mostKeys {
		return kvBad("kv_too_many_keys", "%d keys; the ceiling is %d", keys, mostKeys)
	}
	return checkKVDatabase(ops)
}

func (o *kvOp) check(index int, namespaces *regexp.Regexp, rider bool) *kvError {
	at := "op at index " + strconv.Itoa(index) + ": "
	if !namespaces.MatchString(o.namespace) {
		return kvBad("kv_bad_namespace", "%snamespace must match %s", at, namespaces)
	}
	switch {
	case o.op == "getPrefix" && rider:
		return kvBad("kv_unknown_op", "%sgetPrefix is not allowed in a transaction", at)
	case o.op == "getPrefix" && o.prefix == "":
		return kvBad("kv_prefix_required", "%sprefix must not be empty", at)
	case o.op == "getPrefix":
		return nil
	case o.op == "getMany":
		return checkKeys(at, o.keys)
	case o.op != "get" && !o.writes():
		return kvBad("kv_unknown_op", "%sunknown op %q", at, o.op)
	}
	if err := checkKeys(at, []string{o.key}); err != nil {
		return err
	}
	return o.checkValue(at)
}

func (o *kvOp) checkValue(at string) *kvError {
	switch {
	case o.op == "putIfAbsent" && o.expect != nil:
		return kvBad("kv_bad_expect", "%sputIfAbsent takes no expect", at)
	case o.op == "incr" && !o.hasDelta:
		return kvBad("kv_delta_required", "%sdelta must be an integer", at)
	case o.sets() && o.op != "incr" && o.value == nil:
		return kvBad("kv_value_required", "%svalue is required", at)
	case len(o.value) > maxKVValue:
		return &kvError{status: http.StatusRequestEntityTooLarge, code: "payload_too_large", reason: "kv_value_too_large"}
	}
	return nil
}

func checkKeys(at string, keys []string) *kvError {
	if len(keys) == 0 {
		return kvBad("kv_bad_key", "%skeys must not be empty", at)
	}
	for _, key := range keys {
		for i := range len(key) {
			if key[i] == 0 {
				return kvBad("kv_bad_key", "%skey must not hold NUL", at)
			}
		}
		switch {
		case key == "":
			return kvBad("kv_bad_key", "%skey must not be empty", at)
		case len(key) > maxKVKey:
			return &kvError{status: http.StatusRequestEntityTooLarge, code: "payload_too_large", reason: "kv_key_too_large"}
		}
	}
	return nil
}

// checkKVDatabase finds what the real broker's database refuses.
func checkKVDatabase(ops []kvOp) *kvError {
	written := map[kvKey]bool{}
	for i := range ops {
		o := &ops[i]
		if !o.writes() {
			continue
		}
		key := kvKey{o.namespace, o.key}
		var err *kvError
		switch {
		case o.nul:
			err = &kvError{status: http.StatusInternalServerError, code: "kv_error", reason: "unsupported Unicode escape sequence"}
		case o.sets() && o.expiries != 1:
			err = kvBad("kv_expiry_not_specified",
				"op at index %d: exactly one of ttlSeconds (integer > 0) and forever:true is required, got %d", i, o.expiries)
		case written[key]:
			err = kvBad("kv_duplicate_key_in_call", "op at index %d: key %q is written twice", i, o.key)
		}
		if err != nil {
			err.database = true
			return err
		}
		written[key] = true
	}
	return nil
}

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
