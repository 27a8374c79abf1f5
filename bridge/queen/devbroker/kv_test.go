package devbroker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// kvRun sends one operation in namespace n and returns its result.
func kvRun(a *api, op obj) obj {
	a.t.Helper()
	r := a.do("POST", "/api/v1/kv", obj{"operations": []obj{merge(obj{"ns": "n"}, op)}})
	if r.status != 200 {
		a.t.Fatalf("kv %v: %d %s", op, r.status, r.text)
	}
	return r.json(a.t).(obj)["results"].([]any)[0].(obj)
}

// Each operation on a key that holds 1, and on one that is missing: applied,
// or why not, and the value shown.
func TestKVVerdicts(t *testing.T) {
	t.Parallel()
	const other = 999999
	for _, tt := range []struct {
		name         string
		op           obj
		there, empty string // reason and value, with the key there and missing
	}{
		{"put", obj{"op": "put", "value": 2, "forever": true}, "2", "2"},
		{"put at version 0", obj{"op": "put", "value": 2, "forever": true, "expect": 0}, "exists 1", "2"},
		{"put at another version", obj{"op": "put", "value": 2, "forever": true, "expect": other}, "version 1", "absent null"},
		{"putIfAbsent", obj{"op": "putIfAbsent", "value": 2, "ttlSeconds": 9}, "exists 1", "2"},
		{"delete", obj{"op": "delete"}, "1", "absent null"},
		{"delete of nothing", obj{"op": "delete", "expect": 0}, "exists 1", "null"},
		{"delete at another version", obj{"op": "delete", "expect": other}, "version 1", "absent null"},
		{"incr", obj{"op": "incr", "delta": 4, "forever": true}, "5", "4"},
		{"incr by a fraction", obj{"op": "incr", "delta": 0.1, "forever": true}, "1.1", "0.1"},
		{"incr by a whole float", obj{"op": "incr", "delta": json.Number("2.0"), "forever": true}, "3", "2"},
		{"incr past a fraction", obj{"op": "incr", "delta": 1, "max": 1.5, "forever": true}, "limit 1", "1"},
		{"incr past all numbers", obj{"op": "incr", "delta": json.Number("1.7e308"), "max": json.Number("1e308"), "forever": true}, "limit 1", "limit 0"},
		{"incr past max", obj{"op": "incr", "delta": 4, "max": 3, "forever": true}, "limit 1", "limit 0"},
		{"incr to max", obj{"op": "incr", "delta": 2, "max": 3, "forever": true}, "3", "2"},
		{"incr below min", obj{"op": "incr", "delta": -2, "min": 0, "forever": true}, "limit 1", "limit 0"},
		{"incr beyond 64 bits", obj{"op": "incr", "delta": 1<<63 - 1, "forever": true}, "9223372036854775808", "9223372036854775807"},
	} {
		for _, there := range []bool{true, false} {
			a := memory(t)
			want := tt.empty
			if there {
				want = tt.there
				kvRun(a, obj{"op": "put", "key": "k", "value": 1, "forever": true})
			}
			got := kvRun(a, merge(tt.op, obj{"key": "k"}))
			text := "null"
			if v := got["value"]; v != nil {
				text = v.(interface{ String() string }).String()
			}
			if reason, ok := got["reason"].(string); ok {
				text = reason + " " + text
			}
			if text != want || got["applied"] == strings.Contains(want, " ") {
				t.Errorf("%s, there %v: %v, want %s", tt.name, there, got, want)
			}
		}
	}
}

func TestKVIncrOfText(t *testing.T) {
	t.Parallel()
	a := memory(t)
	kvRun(a, obj{"op": "put", "key": "k", "value": "1", "forever": true})
	if got := kvRun(a, obj{"op": "incr", "key": "k", "delta": 1, "forever": true}); got["reason"] != "type" || got["value"] != num(0) {
		t.Errorf("incr of a string = %v", got)
	}
}

// Sums are exact: ten tenths are one.
func TestKVIncrIsExact(t *testing.T) {
	t.Parallel()
	a := memory(t)
	var got obj
	for range 10 {
		got = kvRun(a, obj{"op": "incr", "key": "k", "delta": 0.1, "forever": true})
	}
	if got["value"] != num(1) {
		t.Errorf("the sum = %v", got)
	}
}

// A read of one key sees what stood before it in the call; a read of many keys
// sees all that the call writes in its namespace (measured 1.3.0).
func TestKVReadsAmongWrites(t *testing.T) {
	t.Parallel()
	a := memory(t)
	for _, key := range []string{"k1", "k3", "k5"} {
		kvRun(a, obj{"op": "put", "key": key, "value": "old", "forever": true})
	}
	put := func(ns, key string) obj {
		return obj{"op": "put", "ns": ns, "key": key, "value": "new", "forever": true}
	}
	r := a.do("POST", "/api/v1/kv", obj{"operations": []obj{
		{"op": "getPrefix", "ns": "n", "prefix": "k"},
		{"op": "getMany", "ns": "n", "keys": []string{"k0", "k1", "k3"}},
		{"op": "get", "ns": "n", "key": "k3"},
		{"op": "delete", "ns": "n", "key": "k3"},
		{"op": "get", "ns": "n", "key": "k3"},
		put("n", "k0"), put("n", "k4"), put("n", "k9"), put("z", "k2"),
		{"op": "getPrefix", "ns": "n", "prefix": "k", "after": "k1", "limit": 2},
		{"op": "getMany", "ns": "m", "keys": []string{"k2"}},
	}})
	var got []string
	for _, result := range r.json(t).(obj)["results"].([]any) {
		res, keys := result.(obj), []string{}
		rows, _ := res["rows"].([]any)
		for _, row := range rows {
			keys = append(keys, row.(obj)["key"].(string)+"="+row.(obj)["value"].(string))
		}
		if res["op"] != "put" && res["op"] != "delete" {
			got = append(got, fmt.Sprint(res["op"], keys, res["found"], res["truncated"]))
		}
	}
	want := []string{
		"getPrefix[k0=new k1=old k4=new k5=old k9=new] <nil> false", "getMany[k0=new k1=old] <nil> false",
		"get[] true <nil>", "get[] false <nil>", "getPrefix[k4=new k5=old] <nil> true", "getMany[] <nil> false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A transaction says what is wrong with a key by its code: with 400 or 413
// what the real broker finds before it asks its database, with 200 the rest.
func TestKVRefusalsInATransaction(t *testing.T) {
	t.Parallel()
	a := memory(t)
	put := func(more obj) []obj {
		return []obj{merge(obj{"op": "put", "ns": "n", "key": "k", "value": 1, "forever": true}, more)}
	}
	for _, tt := range []struct {
		name          string
		ops           []obj
		status        int
		reason, error string
	}{
		{"namespace", put(obj{"ns": "UPPER"}), 200, "bad_request", "kv_bad_namespace"},
		{"unknown op", put(obj{"op": "check"}), 200, "bad_request", "kv_unknown_op"},
		{"ttl", put(obj{"ttlSeconds": 0}), 200, "bad_request", "kv_bad_ttl"},
		{"null version", put(obj{"expect": nil}), 200, "bad_request", "kv_bad_expect"},
		{"long key", put(obj{"key": strings.Repeat("k", 513)}), 200, "payload_too_large", "kv_key_too_large"},
		{"NUL", put(obj{"value": "\x00"}), 200, "db_error", "unsupported Unicode escape sequence"},
		{"big value", put(obj{"value": strings.Repeat("v", 65535)}), 413, "payload_too_large", "op at index 0: value is 65537 bytes, the ceiling is 65536"},
		{"prefix", []obj{{"op": "getPrefix", "ns": "n", "prefix": "p"}}, 400, "bad_request", "kv operation at index 0: getPrefix is not available inside a transaction"},
	} {
		r := a.do("POST", "/api/v1/transaction", obj{"operations": []obj{}, "kv": tt.ops})
		got := r.json(t).(obj)
		if r.status != tt.status || got["reason"] != tt.reason || got["error"] != tt.error || got["success"] != false {
			t.Errorf("%s = %d %s", tt.name, r.status, r.text)
		}
	}
}

// A time to live ends on time; put replaces it, incr sets it on creation only.
func TestKVExpiry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		kvRun(a, obj{"op": "put", "key": "p", "value": 1, "ttlSeconds": 10})
		kvRun(a, obj{"op": "incr", "key": "i", "delta": 1, "ttlSeconds": 10})
		time.Sleep(9 * time.Second)
		kvRun(a, obj{"op": "put", "key": "p", "value": 2, "ttlSeconds": 10})
		kvRun(a, obj{"op": "incr", "key": "i", "delta": 1, "ttlSeconds": 10})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := kvRun(a, obj{"op": "get", "key": "p"}); got["found"] != true {
			t.Errorf("put again = %v", got)
		}
		if got := kvRun(a, obj{"op": "incr", "key": "i", "delta": 1, "ttlSeconds": 10}); got["value"] != num(1) {
			t.Errorf("incr after its time = %v, want a new counter", got)
		}
		if got := kvRun(a, obj{"op": "getMany", "keys": []string{"i", "none", "p"}}); !cmp.Equal(got["missing"], []any{"none"}) || len(got["rows"].([]any)) != 2 {
			t.Errorf("getMany = %v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := kvRun(a, obj{"op": "getPrefix", "prefix": "p"}); len(got["rows"].([]any)) != 0 {
			t.Errorf("getPrefix of what has expired = %v", got)
		}
	})
}

func TestKVPrefixPages(t *testing.T) {
	t.Parallel()
	a := memory(t)
	for _, key := range []string{"a/1", "a/2", "a/3", "a0", "b/1"} {
		kvRun(a, obj{"op": "put", "key": key, "value": key, "forever": true})
	}
	var got []string
	after := ""
	for {
		page := kvRun(a, obj{"op": "getPrefix", "prefix": "a/", "limit": 2, "after": after, "keysOnly": true})
		for _, row := range page["rows"].([]any) {
			got = append(got, row.(obj)["key"].(string))
			if _, ok := row.(obj)["value"]; ok {
				t.Errorf("keysOnly shows %v", row)
			}
		}
		if page["truncated"] != true {
			break
		}
		after = page["nextAfter"].(string)
	}
	if !cmp.Equal(got, []string{"a/1", "a/2", "a/3"}) {
		t.Errorf("pages = %v", got)
	}
}

func TestKVRefusals(t *testing.T) {
	t.Parallel()
	a := memory(t)
	put := func(more obj) obj {
		return merge(obj{"op": "put", "ns": "n", "key": "k", "value": 1, "forever": true}, more)
	}
	many := make([]obj, 257)
	for i := range many {
		many[i] = obj{"op": "get", "ns": "n", "key": "k"}
	}
	for _, tt := range []struct {
		name   string
		ops    []obj
		status int
		reason string
	}{
		{"no expiry", []obj{put(obj{"forever": nil})}, 400, "kv_expiry_not_specified"},
		{"both", []obj{put(obj{"ttlSeconds": 1})}, 400, "kv_expiry_not_specified"},
		{"ttl 0", []obj{put(obj{"forever": nil, "ttlSeconds": 0})}, 400, "kv_bad_ttl"},
		{"unknown op", []obj{put(obj{"op": "check"})}, 400, "kv_unknown_op"},
		{"namespace", []obj{put(obj{"ns": "UPPER"})}, 400, "kv_bad_namespace"},
		{"no key", []obj{put(obj{"key": ""})}, 400, "kv_bad_key"},
		{"NUL in the key", []obj{put(obj{"key": "a\x00"})}, 500, "unsupported Unicode escape sequence"},
		{"a word for required", []obj{put(obj{"required": "yes"})}, 400, "kv_bad_request"},
		{"long key", []obj{put(obj{"key": strings.Repeat("k", 513)})}, 413, "kv_key_too_large"},
		{"big value", []obj{put(obj{"value": strings.Repeat("v", 65535)})}, 413, "kv_value_too_large"},
		{"expect", []obj{put(obj{"expect": -1})}, 400, "kv_bad_expect"},
		{"null version", []obj{put(obj{"expect": nil})}, 400, "kv_bad_expect"},
		{"putIfAbsent at a version", []obj{put(obj{"op": "putIfAbsent", "expect": 4})}, 400, "kv_bad_expect"},
		{"incr at a version", []obj{put(obj{"op": "incr", "delta": 1, "expect": 4})}, 400, "kv_bad_request"},
		{"incr by text", []obj{put(obj{"op": "incr", "delta": "1"})}, 400, "kv_bad_request"},
		{"incr up to text", []obj{put(obj{"op": "incr", "delta": 1, "max": "9"})}, 400, "kv_bad_request"},
		{"limit", []obj{{"op": "getPrefix", "ns": "n", "prefix": "p", "limit": "x"}}, 400, "kv_bad_request"},
		{"no value", []obj{{"op": "put", "ns": "n", "key": "k", "forever": true}}, 400, "kv_bad_request"},
		{"empty prefix", []obj{{"op": "getPrefix", "ns": "n"}}, 400, "kv_prefix_required"},
		{"a key twice", []obj{put(nil), put(nil)}, 400, "kv_duplicate_key_in_call"},
		{"tenant", []obj{put(obj{"tenant": "x"})}, 400, "kv_tenant_not_an_input"},
		{"too many", many, 400, "kv_too_many_ops"},
		{"NUL in the value", []obj{put(obj{"value": "a\x00"})}, 500, "unsupported Unicode escape sequence"},
	} {
		r := a.do("POST", "/api/v1/kv", obj{"operations": tt.ops})
		if r.status != tt.status || r.json(t).(obj)["reason"] != tt.reason {
			t.Errorf("%s = %d %s, want %d %s", tt.name, r.status, r.text, tt.status, tt.reason)
		}
	}
}

// Riders cost one token a kind, cancels and plain acks none; a refused bundle
// commits nothing and has no Retry-After.
func TestRiderRate(t *testing.T) {
	t.Parallel()
	bubbleWith(t, devbroker.Config{RiderRate: 1}, func(t *testing.T, a *api) {
		both := obj{
			"kv":     []obj{{"op": "incr", "ns": "n", "key": "c", "delta": 1, "forever": true}},
			"timers": []obj{{"op": "schedule", "queue": "q", "timerKey": "k", "delayMs": 60000, "txn": "t", "payload": "MQ=="}},
		}
		if r := a.do("POST", "/api/v1/transaction", both); r.status != 200 {
			t.Fatalf("two tokens of two = %d", r.status)
		}
		r := a.do("POST", "/api/v1/transaction", both)
		if r.status != 429 || r.header.Get("Retry-After") != "" || !strings.Contains(r.text, `"reason":"rate_limited"`) {
			t.Errorf("over the rate = %d %v %s", r.status, r.header, r.text)
		}
		cancel := obj{"operations": []obj{}, "timers": []obj{{"op": "cancel", "queue": "q", "timerKey": "k"}}}
		if r := a.do("POST", "/api/v1/transaction", cancel); r.status != 200 {
			t.Errorf("a cancel = %d %s", r.status, r.text)
		}
		if r := a.do("POST", "/api/v1/timers", both["timers"]); r.status != 429 || r.header.Get("Retry-After") != "1" {
			t.Errorf("the timer route = %d %v", r.status, r.header)
		}
		time.Sleep(2 * time.Second)
		a.do("POST", "/api/v1/transaction", both)
		if r := a.do("GET", "/api/v1/kv/n/c", nil); !strings.Contains(r.text, `"value":2`) {
			t.Errorf("counted %s, want 2: the refused bundle did nothing", r.text)
		}
	})
}
