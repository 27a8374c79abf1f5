package queen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// KV runs operations in one call, all or none, and returns one result per
// operation, in order. An operation that is not applied is a result with a
// Reason; a lost Required one is a *RollbackError (RollbackKVPrecondition)
// and nothing was done.
//
// Values are re-encoded by Queen (measured 1.3.0: integers beyond 64 bits to
// floats, 1.10 to 1.1; NUL is refused): keep strings where bytes matter.
func (c *Client) KV(ctx context.Context, ops []KVOp) ([]KVResult, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	buf, err := appendKV(append(c.buffer(), `{"operations":`...), ops)
	if err != nil {
		return nil, fmt.Errorf("kv: %w", err)
	}
	body := c.pooled(append(buf, '}'))
	defer body.release()
	a, err := c.do(ctx, &call{method: "POST", path: "/api/v1/kv", body: body, safe: onlyReads(ops)})
	if err != nil {
		return nil, err
	}
	return kvResults(a, ops)
}

// onlyReads says that no operation changes anything.
func onlyReads(ops []KVOp) bool {
	return !slices.ContainsFunc(ops, func(o KVOp) bool { return o.Op != "get" && o.Op != "getMany" && o.Op != "getPrefix" })
}

func kvResults(a *answer, ops []KVOp) ([]KVResult, error) {
	if a.ok() {
		if refused := a.rollback(); refused != nil {
			return nil, refused
		}
	}
	var wire struct {
		Results []kvRow `json:"results"`
	}
	if err := a.decode(&wire); err != nil {
		return nil, err
	}
	if len(wire.Results) != len(ops) {
		return nil, a.misfit("%d results for %d operations", len(wire.Results), len(ops))
	}
	results := make([]KVResult, len(ops))
	for i := range ops {
		var err error
		if results[i], err = wire.Results[i].result(&ops[i]); err != nil {
			return nil, a.misfit("result %d: %v", i, err)
		}
	}
	return results, nil
}

// appendKV appends the array of operations.
func appendKV(dst []byte, ops []KVOp) ([]byte, error) {
	dst = append(dst, '[')
	for i := range ops {
		if err := ops[i].check(); err != nil {
			return nil, fmt.Errorf("kv operation %d: %w", i, err)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = ops[i].append(dst)
	}
	return append(dst, ']'), nil
}

func (o *KVOp) check() error {
	switch o.Op {
	case "get", "delete", "incr":
	case "put", "putIfAbsent":
		if !json.Valid(o.Value) {
			return fmt.Errorf("%s: the value is not JSON", o.Op)
		}
	case "getMany":
		if len(o.Keys) == 0 {
			return errors.New("getMany: no keys")
		}
	case "getPrefix":
		if o.Prefix == "" {
			return errors.New("getPrefix: no prefix")
		}
	default:
		return fmt.Errorf("operation %q is none", o.Op)
	}
	if o.TTL < 0 {
		return errors.New("the time to live is negative")
	}
	for _, s := range append([]string{o.Namespace, o.Key, o.Prefix, o.After}, o.Keys...) {
		if s != storable(s) {
			return errors.New("a namespace or key holds NUL or invalid UTF-8")
		}
	}
	return nil
}

func (o *KVOp) append(dst []byte) []byte {
	dst = appendField(dst, `{"op":`, o.Op)
	dst = appendField(dst, `,"ns":`, o.Namespace)
	switch o.Op {
	case "getMany":
		dst = o.appendKeys(dst)
	case "getPrefix":
		dst = o.appendPrefix(dst)
	case "put", "putIfAbsent":
		dst = appendField(dst, `,"key":`, o.Key)
		dst = append(append(dst, `,"value":`...), o.Value...)
		dst = o.appendExpiry(dst)
	case "incr":
		dst = appendField(dst, `,"key":`, o.Key)
		dst = appendInt(dst, `,"delta":`, o.Delta)
		dst = appendOptional(dst, `,"min":`, o.Min)
		dst = appendOptional(dst, `,"max":`, o.Max)
		dst = o.appendExpiry(dst)
	default:
		dst = appendField(dst, `,"key":`, o.Key)
	}
	if o.Op == "put" || o.Op == "delete" {
		dst = appendOptional(dst, `,"expect":`, o.Expect)
	}
	if o.Required {
		dst = append(dst, `,"required":true`...)
	}
	return append(dst, '}')
}

func (o *KVOp) appendKeys(dst []byte) []byte {
	dst = append(dst, `,"keys":[`...)
	for i, key := range o.Keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, key)
	}
	return append(dst, ']')
}

func (o *KVOp) appendPrefix(dst []byte) []byte {
	dst = appendField(dst, `,"prefix":`, o.Prefix)
	if o.After != "" {
		dst = appendField(dst, `,"after":`, o.After)
	}
	if o.Limit > 0 {
		dst = appendInt(dst, `,"limit":`, int64(o.Limit))
	}
	if o.KeysOnly {
		dst = append(dst, `,"keysOnly":true`...)
	}
	return dst
}

func (o *KVOp) appendExpiry(dst []byte) []byte {
	if o.TTL == 0 {
		return append(dst, `,"forever":true`...)
	}
	return appendInt(dst, `,"ttlSeconds":`, wholeSeconds(o.TTL))
}

func appendOptional(dst []byte, prefix string, n *int64) []byte {
	if n == nil {
		return dst
	}
	return strconv.AppendInt(append(dst, prefix...), *n, 10)
}

// kvRow is one result, standalone or in a transaction.
type kvRow struct {
	Op        string          `json:"op"`
	Key       *string         `json:"key"`
	Applied   *bool           `json:"applied"`
	Found     *bool           `json:"found"`
	Value     json.RawMessage `json:"value"`
	Version   int64           `json:"version"`
	Reason    string          `json:"reason"`
	Rows      *[]kvStored     `json:"rows"`
	Missing   []string        `json:"missing"`
	Truncated bool            `json:"truncated"`
	NextAfter string          `json:"nextAfter"`
}

type kvStored struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Version int64           `json:"version"`
}

// result checks that the row answers op and converts it.
func (r *kvRow) result(op *KVOp) (KVResult, error) {
	if r.Op != op.Op {
		return KVResult{}, fmt.Errorf("of operation %q, not %q", clip(r.Op, 64), op.Op)
	}
	out := KVResult{Reason: r.Reason, Value: r.Value, Version: r.Version,
		Missing: r.Missing, Truncated: r.Truncated, NextAfter: r.NextAfter}
	switch op.Op {
	case "getMany", "getPrefix":
		if r.Rows == nil {
			return KVResult{}, errors.New("without rows")
		}
		for _, row := range *r.Rows {
			out.Rows = append(out.Rows, KVRow(row))
		}
		return out, nil
	case "get":
		if r.Found == nil {
			return KVResult{}, errors.New("without found")
		}
		out.Found = *r.Found
	default:
		if r.Applied == nil {
			return KVResult{}, errors.New("without applied")
		}
		out.Applied = *r.Applied
	}
	if r.Key == nil || *r.Key != op.Key {
		return KVResult{}, errors.New("of another key")
	}
	out.Key = *r.Key
	return out, nil
}

// Int is a *int64, for Expect, Min and Max.
func Int(n int64) *int64 { return &n }
