package devbroker

import (
	"math/big"
	"net/http"
	"regexp"
	"strings"
)

// checkKV finds the first thing wrong with a call. rider has the tighter
// limits of a transaction. Which of them the real broker finds before it asks
// its database decides how a transaction says it (measured 1.3.0).
func checkKV(ops []kvOp, namespaces *regexp.Regexp, rider bool) *kvError {
	if err := checkKVSize(ops, rider); err != nil {
		err.early = true
		return err
	}
	written := map[kvKey]bool{}
	for i := range ops {
		if err := ops[i].check(i, namespaces); err != nil {
			return err
		}
		if !ops[i].writes() {
			continue
		}
		key := kvKey{ops[i].namespace, ops[i].key}
		if written[key] {
			return kvBad("kv_duplicate_key_in_call", "op at index %d: key %q is written twice", i, key.key)
		}
		written[key] = true
	}
	return nil
}

func checkKVSize(ops []kvOp, rider bool) *kvError {
	most, mostKeys := maxKVOps, maxKVKeys
	if rider {
		most, mostKeys = maxRiderKV, maxRiderKeys
	}
	if len(ops) > most {
		return kvBad("kv_too_many_ops", "%d operations in one call, the ceiling is %d", len(ops), most)
	}
	keys := 0
	for i := range ops {
		keys += max(1, len(ops[i].keys))
		switch n := len(ops[i].value); {
		case rider && ops[i].op == "getPrefix":
			return kvBad("kv_unknown_op", "kv operation at index %d: getPrefix is not available inside a transaction", i)
		case n > maxKVValue:
			return kvTooLarge("kv_value_too_large", "op at index %d: value is %d bytes, the ceiling is %d", i, n, maxKVValue)
		}
	}
	if keys > mostKeys {
		return kvBad("kv_too_many_keys", "%d keys in one call, the ceiling is %d", keys, mostKeys)
	}
	return nil
}

func (o *kvOp) check(index int, namespaces *regexp.Regexp) *kvError {
	if !namespaces.MatchString(o.namespace) {
		return kvBad("kv_bad_namespace", "namespace %q does not match %s", o.namespace, namespaces)
	}
	switch {
	case o.op == "getPrefix" && o.prefix == "":
		return kvBad("kv_prefix_required", "op at index %d: getPrefix needs a non-empty prefix", index)
	case o.op == "getPrefix":
		return nil
	case o.op == "getMany":
		return checkKeys(o.keys)
	case o.op != "get" && !o.writes():
		return kvBad("kv_unknown_op", "op at index %d: unknown operation %q", index, o.op)
	}
	if err := checkKeys([]string{o.key}); err != nil {
		return err
	}
	return o.checkValue(index)
}

func (o *kvOp) checkValue(index int) *kvError {
	switch {
	case o.nul:
		return &kvError{status: http.StatusInternalServerError, code: "kv_error", reason: noUnicodeNUL}
	case o.op == "putIfAbsent" && o.expect != nil && *o.expect != 0:
		return kvBad("kv_bad_expect", "op at index %d: putIfAbsent is put with expect 0", index)
	case o.op == "incr" && o.expect != nil:
		return kvBad("kv_bad_request", "op at index %d: incr takes no expect", index)
	case o.op == "incr" && o.delta == nil:
		return kvBad("kv_bad_request", "op at index %d: incr needs a numeric delta", index)
	case o.sets() && o.op != "incr" && o.value == nil:
		return kvBad("kv_bad_request", "op at index %d: %s needs a value", index, o.op)
	case o.sets() && o.expiries != 1:
		return kvBad("kv_expiry_not_specified",
			"op at index %d: exactly one of ttlSeconds (integer > 0) and forever:true is required, got %d", index, o.expiries)
	}
	return nil
}

func checkKeys(keys []string) *kvError {
	for _, key := range keys {
		switch {
		case key == "":
			return kvBad("kv_bad_key", "the key must be non-empty")
		case strings.IndexByte(key, 0) >= 0:
			return &kvError{status: http.StatusInternalServerError, code: "kv_error", reason: noUnicodeNUL}
		case len(key) > maxKVKey:
			return kvTooLarge("kv_key_too_large", "key is %d bytes, the ceiling is %d", len(key), maxKVKey)
		}
	}
	return nil
}

// readDecimal reads a number of an incr, which counts in exact decimals.
func readDecimal(s *scanner, name string, index int) (*big.Rat, error) {
	raw, err := s.raw()
	if err != nil {
		return nil, err
	}
	if value, err := canonical(raw); err == nil {
		if n, ok := decimal(value); ok {
			return n, nil
		}
	}
	if name == "delta" {
		return nil, nil // its check comes later, in its turn
	}
	return nil, kvBad("kv_bad_request", "op at index %d: %s must be numeric", index, name)
}

// decimal is the exact value of canonical JSON that is a number.
func decimal(value []byte) (*big.Rat, bool) {
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		return nil, false
	}
	return new(big.Rat).SetString(string(value))
}

// decimalJSON writes a sum of decimals; it fails beyond the range of a float.
func decimalJSON(n *big.Rat) ([]byte, error) {
	digits, _ := n.FloatPrec()
	return canonical([]byte(n.FloatString(digits)))
}
