package queentest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func kvCases() []testCase {
	return []testCase{
		{name: "KV/PutGetDelete", rule: "queen-contract.md §10", run: kvPutGetDelete},
		{name: "KV/ResultShape", rule: "queen-contract.md §10", run: kvShape},
		{name: "KV/Expect", rule: "queen-contract.md §10", run: kvExpect},
		{name: "KV/PutIfAbsent", rule: "queen-contract.md §10", run: kvPutIfAbsent},
		{name: "KV/RequiredAbortsTheCall", rule: "queen-contract.md §10", run: kvRequired},
		{name: "KV/IncrWithMaxAndTTL", rule: "queen-contract.md §10 (measured)", run: kvIncr},
		{name: "KV/IncrOfOtherTypes", rule: "queen-contract.md §10", run: kvIncrType},
		{name: "KV/IncrIsAtomic", rule: "queen-contract.md §10 (measured)", run: kvIncrRace},
		{name: "KV/Expiry", rule: "queen-contract.md §10", run: kvExpiry},
		{name: "KV/NullIsAValue", rule: "queen-contract.md §10", run: kvNull},
		{name: "KV/PrefixPages", rule: "queen-contract.md §10", run: kvPrefix},
		{name: "KV/Many", rule: "queen-contract.md §10", run: kvMany},
		{name: "KV/Refusals", rule: "queen-contract.md §10", run: kvRefusals},
		{name: "KV/KeyRoute", rule: "queen-contract.md §10", run: kvRoute},
	}
}

func (k *kit) kv(ops ...queen.KVOp) []queen.KVResult {
	k.Helper()
	for i := range ops {
		ops[i].Namespace = "queentest"
	}
	r, err := k.client.KV(k.Context(), ops)
	k.must(err)
	return r
}

func put(key, value string) queen.KVOp {
	return queen.KVOp{Op: "put", Key: key, Value: json.RawMessage(value), TTL: 10 * time.Minute}
}

func get(key string) queen.KVOp { return queen.KVOp{Op: "get", Key: key} }

func kvPutGetDelete(k *kit) {
	key := unique("k") + "/é x"
	k.same("miss", k.kv(get(key))[0], queen.KVResult{Key: key})
	k.same("put", k.kv(put(key, `{"n":1}`))[0].Applied, true)
	first := k.kv(get(key))[0]
	k.kv(put(key, `2`))
	second := k.kv(get(key))[0]
	if !second.Found || string(second.Value) != "2" || second.Version == first.Version {
		k.Errorf("after a second put: %+v, first %+v", second, first)
	}
	k.same("delete", k.kv(queen.KVOp{Op: "delete", Key: key})[0].Applied, true)
	k.same("gone", k.kv(get(key))[0].Found, false)
	again := k.kv(queen.KVOp{Op: "delete", Key: key})[0]
	k.same("delete of nothing", []any{again.Applied, again.Reason}, []any{false, "absent"})
}

func kvShape(k *kit) {
	key := unique("k")
	got := k.object(k.send("POST", "/api/v1/kv", obj{"operations": arr{
		obj{"op": "put", "ns": "queentest", "key": key, "value": obj{"b": 1, "a": arr{1, 2}}, "ttlSeconds": 60},
		obj{"op": "get", "ns": "queentest", "key": key + "/none"},
	}}), 200)
	results, _ := got["results"].(arr)
	if len(results) != 2 {
		k.Fatalf("answer %v", got)
	}
	first, _ := results[0].(obj)
	second, _ := results[1].(obj)
	k.has("put", first, obj{"index": 0.0, "op": "put", "applied": true, "key": key, "value": obj{"b": 1.0, "a": arr{1.0, 2.0}}}, "version")
	k.has("get", second, obj{"index": 1.0, "op": "get", "found": false, "key": key + "/none"})
}

func kvExpect(k *kit) {
	key := unique("k")
	with := func(value string, expect int64) queen.KVResult {
		op := put(key, value)
		op.Expect = queen.Int(expect)
		return k.kv(op)[0]
	}
	lost := with(`1`, 5)
	k.same("expect of a missing key", []any{lost.Applied, lost.Reason, lost.Version}, []any{false, "absent", int64(0)})
	k.same("expect 0 of a missing key", with(`1`, 0).Applied, true)
	lost = with(`2`, 0)
	k.same("expect 0 of a key that exists", []any{lost.Applied, lost.Reason, string(lost.Value)}, []any{false, "exists", "1"})
	version := k.kv(get(key))[0].Version
	lost = with(`2`, version+1_000_000)
	k.same("another version", []any{lost.Applied, lost.Reason, lost.Version}, []any{false, "version", version})
	k.same("the right version", with(`2`, version).Applied, true)
	k.same("the same again", with(`3`, version).Applied, false)
	gone := queen.KVOp{Op: "delete", Key: key, Expect: queen.Int(version)}
	k.same("delete of an old version", k.kv(gone)[0].Reason, "version")
	gone.Expect = queen.Int(k.kv(get(key))[0].Version)
	k.same("delete of the version", k.kv(gone)[0].Applied, true)
}

func kvPutIfAbsent(k *kit) {
	key := unique("k")
	op := queen.KVOp{Op: "putIfAbsent", Key: key, Value: []byte(`1`), TTL: time.Minute}
	k.same("first", k.kv(op)[0].Applied, true)
	op.Value = []byte(`2`)
	lost := k.kv(op)[0]
	k.same("second", []any{lost.Applied, lost.Reason, string(lost.Value)}, []any{false, "exists", "1"})
}

func kvRequired(k *kit) {
	key := unique("k")
	k.kv(put(key, `"first"`))
	op := once(key)
	_, err := k.client.KV(k.Context(), []queen.KVOp{{Op: "put", Namespace: "queentest", Key: key + "/other", Value: []byte(`1`), TTL: time.Minute}, op})
	var e *queen.RollbackError
	if !errors.As(err, &e) || e.Reason != queen.RollbackKVPrecondition || e.FailedIndex != 1 || e.KVReason != "exists" || string(e.Value) != `"first"` {
		k.Errorf("KV() error = %+v", err)
	}
	k.same("the other", k.kv(get(key + "/other"))[0].Found, false)
}

func kvIncr(k *kit) {
	key := unique("k")
	op := queen.KVOp{Op: "incr", Key: key, Delta: 2, Max: queen.Int(5), TTL: 2 * time.Second}
	for _, want := range []string{"2", "4"} {
		r := k.kv(op)[0]
		k.same("incr", []any{r.Applied, string(r.Value)}, []any{true, want})
	}
	r := k.kv(op)[0]
	k.same("over the maximum", []any{r.Applied, r.Reason, string(r.Value)}, []any{false, "limit", "4"})
	op.Delta = -3
	op.Min = queen.Int(2)
	k.same("under the minimum", k.kv(op)[0].Reason, "limit")
	op.Min, op.Delta = nil, 1
	// The time to live counts from the first incr, however often it is counted.
	k.eventually("counted anew", func() bool { r := k.kv(op)[0]; return r.Applied && string(r.Value) == "1" })
}

func kvIncrType(k *kit) {
	key := unique("k")
	k.kv(put(key, `"text"`))
	r := k.kv(queen.KVOp{Op: "incr", Key: key, Delta: 1, TTL: time.Minute})[0]
	k.same("incr of a text", []any{r.Applied, r.Reason}, []any{false, "type"})
}

func kvIncrRace(k *kit) {
	key := unique("k")
	var mu sync.Mutex
	applied := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r, err := k.client.KV(k.Context(), []queen.KVOp{{Op: "incr", Namespace: "queentest", Key: key, Delta: 1, Max: queen.Int(5), TTL: time.Minute}})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				k.Error(err)
			case r[0].Applied:
				applied++
			}
		})
	}
	wg.Wait()
	k.same("applied", applied, 5)
	k.same("value", k.value(key), "5")
}

func kvExpiry(k *kit) {
	key := unique("k")
	op := put(key, `1`)
	op.TTL = time.Second
	k.kv(op)
	k.same("at once", k.kv(get(key))[0].Found, true)
	k.eventually("expired", func() bool { return !k.kv(get(key))[0].Found })
	k.same("an expired key is absent", k.kv(queen.KVOp{Op: "putIfAbsent", Key: key, Value: []byte(`2`), TTL: time.Minute})[0].Applied, true)
}

func kvNull(k *kit) {
	key := unique("k")
	k.kv(put(key, `null`))
	r := k.kv(get(key))[0]
	k.same("null", []any{r.Found, string(r.Value)}, []any{true, "null"})
}

func kvPrefix(k *kit) {
	prefix := unique("px") + "/"
	for i := range 5 {
		k.kv(put(fmt.Sprint(prefix, i), fmt.Sprint(i)))
	}
	var got []string
	op := queen.KVOp{Op: "getPrefix", Prefix: prefix, Limit: 2}
	for {
		r := k.kv(op)[0]
		for _, row := range r.Rows {
			got = append(got, strings.TrimPrefix(row.Key, prefix)+"="+string(row.Value))
			if row.Version == 0 {
				k.Error("a row without version")
			}
		}
		if !r.Truncated {
			break
		}
		op.After = r.NextAfter
	}
	k.same("rows", got, []string{"0=0", "1=1", "2=2", "3=3", "4=4"})
	whole := k.kv(queen.KVOp{Op: "getPrefix", Prefix: prefix})[0].Rows
	for i, row := range k.kv(queen.KVOp{Op: "getPrefix", Prefix: prefix, KeysOnly: true})[0].Rows {
		k.same("a row without its value", []any{row.Key, row.Version, row.Value == nil}, []any{whole[i].Key, whole[i].Version, true})
	}
}

func kvMany(k *kit) {
	key := unique("k")
	k.kv(put(key+"/1", `1`))
	k.kv(put(key+"/2", `2`))
	r := k.kv(queen.KVOp{Op: "getMany", Keys: []string{key + "/2", key + "/none", key + "/1"}})[0]
	got := map[string]string{}
	for _, row := range r.Rows {
		got[row.Key] = string(row.Value)
	}
	k.same("rows", got, map[string]string{key + "/1": "1", key + "/2": "2"})
	k.same("missing", r.Missing, []string{key + "/none"})
}

func kvRefusals(k *kit) {
	op := func(change obj) obj {
		return merge(obj{"op": "put", "ns": "queentest", "key": "x", "value": 1, "ttlSeconds": 60}, change)
	}
	for _, tt := range []struct {
		name          string
		ops           arr
		status        int
		error, reason string
	}{
		{"no expiry", arr{without(op(nil), "ttlSeconds")}, 400, "kv_bad_request", "kv_expiry_not_specified"},
		{"two expiries", arr{op(obj{"forever": true})}, 400, "kv_bad_request", "kv_expiry_not_specified"},
		{"unknown operation", arr{op(obj{"op": "cas"})}, 400, "kv_bad_request", "kv_unknown_op"},
		{"bad namespace", arr{op(obj{"ns": "Upper"})}, 400, "kv_bad_request", "kv_bad_namespace"},
		{"a key twice", arr{op(nil), op(nil)}, 400, "kv_bad_request", "kv_duplicate_key_in_call"},
		{"a long key", arr{op(obj{"key": strings.Repeat("k", 513)})}, 413, "payload_too_large", "kv_key_too_large"},
		{"a large value", arr{op(obj{"value": strings.Repeat("v", 65<<10)})}, 413, "payload_too_large", "kv_value_too_large"},
		{"empty prefix", arr{obj{"op": "getPrefix", "ns": "queentest", "prefix": ""}}, 400, "kv_bad_request", "kv_prefix_required"},
	} {
		got := k.object(k.send("POST", "/api/v1/kv", obj{"operations": tt.ops}), tt.status)
		k.has(tt.name, got, obj{"error": tt.error, "reason": tt.reason})
	}
}

func kvRoute(k *kit) {
	key := unique("k") + "/a"
	path := "/api/v1/kv/queentest/" + key
	k.has("put", k.object(k.send("PUT", path, obj{"value": 1, "ttlSeconds": 60}), 200), obj{"applied": true, "key": key})
	r := k.send("GET", path, nil)
	got := k.object(r, 200)
	k.has("get", got, obj{"found": true, "key": key, "value": 1.0, "op": "get"}, "version", "expiresAt", "updatedAt")
	version, _ := got["version"].(float64)
	k.same("ETag", r.header.Get("ETag"), fmt.Sprintf("%q", fmt.Sprint(int64(version))))
	if r := k.send("GET", path+"?x=1", nil); r.status != 400 {
		k.Errorf("a query string: %v", r)
	}
	k.has("delete", k.object(k.send("DELETE", path, nil), 200), obj{"applied": true})
}
