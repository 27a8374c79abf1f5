package queen_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func TestRecordedKV(t *testing.T) {
	t.Parallel()
	put := queen.KVOp{Op: "put", Namespace: "probe", Key: "a/71930", Value: []byte(`{"z":1,"a":[1.0,2]}`), TTL: time.Minute}
	incr := queen.KVOp{Op: "incr", Namespace: "probe", Key: "i/71930", Delta: 1, Max: queen.Int(3), TTL: 2 * time.Second}
	for _, tt := range []struct {
		name string
		op   queen.KVOp
		want queen.KVResult
	}{
		{"put with ttl", put, queen.KVResult{Applied: true, Key: "a/71930", Version: 4002}},
		{"get of a missing key", queen.KVOp{Op: "get", Namespace: "probe", Key: "nope"}, queen.KVResult{Key: "nope"}},
		{"incr with max 3 and ttl, call 1", incr, queen.KVResult{Applied: true, Key: "i/71930", Value: []byte("1"), Version: 4005}},
		{"incr with max 3 and ttl, call 4", incr, queen.KVResult{Key: "i/71930", Value: []byte("3"), Version: 7, Reason: "limit"}},
		{"getPrefix first page", queen.KVOp{Op: "getPrefix", Namespace: "probe", Prefix: "px/71930/", Limit: 2},
			queen.KVResult{Truncated: true, NextAfter: "px/71930/1", Rows: []queen.KVRow{
				{Key: "px/71930/0", Value: []byte("0"), Version: 2006}, {Key: "px/71930/1", Value: []byte("1"), Version: 1070}}}},
		{"delete", queen.KVOp{Op: "delete", Namespace: "probe", Key: "px/71930/0"}, queen.KVResult{Applied: true, Key: "px/71930/0", Value: []byte("0"), Version: 2006}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, b := replaying(t, "kv", tt.name)
			got, err := c.KV(t.Context(), []queen.KVOp{tt.op})
			if err != nil || len(got) != 1 {
				t.Fatalf("KV() = %v, %v", got, err)
			}
			if tt.name == "put with ttl" {
				got[0].Value = nil // indented in the recording
			}
			if d := cmp.Diff(tt.want, got[0]); d != "" {
				t.Error(d)
			}
			sameJSON(t, "body", b.last(t).body, string(recorded(t, "kv", tt.name).Request.Body))
		})
	}
}

func TestKVLostRequired(t *testing.T) {
	t.Parallel()
	c, _ := replaying(t, "kv", "required op lost aborts the call")
	_, err := c.KV(t.Context(), []queen.KVOp{{Op: "get", Namespace: "n", Key: "k"}})
	var got *queen.RollbackError
	if !errors.As(err, &got) || got.Reason != queen.RollbackKVPrecondition || got.FailedIndex != 0 || got.KVReason != "exists" || queen.Uncertain(err) {
		t.Errorf("KV() error = %+v", err)
	}
}

func TestKVRefusals(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]queen.StatusError{
		"rejected: no expiry": {Status: 400, Code: "kv_bad_request", Text: "kv_expiry_not_specified: op at index 0: exactly one of ttlSeconds (integer > 0) and forever:true is required, got 0"},
		"NUL in a value":      {Status: 500, Code: "kv_error", Text: "unsupported Unicode escape sequence"},
		"write rate limit":    {Status: 429, Code: "rate_limited", Text: "rate_limited", RetryAfter: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := replaying(t, "kv", name)
			_, err := c.KV(t.Context(), []queen.KVOp{{Op: "get", Namespace: "n", Key: "k"}})
			var got *queen.StatusError
			if !errors.As(err, &got) {
				t.Fatalf("KV() error = %v", err)
			}
			want.Method, want.Path = "POST", "/api/v1/kv"
			if d := cmp.Diff(&want, got); d != "" {
				t.Error(d)
			}
			if queen.RetryAfter(err) != want.RetryAfter {
				t.Errorf("RetryAfter() = %v", queen.RetryAfter(err))
			}
		})
	}
}

func TestKVRefusesAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"results":[]}`, `{"results":[{"op":"get","key":"k"}]}`, `{"results":[{"op":"put","key":"k","applied":true}]}`,
		`{"results":[{"op":"get","key":"other","found":true}]}`, `{"results":[{"op":"get","found":true}]}`, `[`, `{"results":[{"op":"get","key":"k","found":true,"version":1.5}]}`} {
		c, _ := answering(t, 200, body)
		if got, err := c.KV(t.Context(), []queen.KVOp{{Op: "get", Namespace: "n", Key: "k"}}); !queen.Uncertain(err) {
			t.Errorf("KV() answered %s = %v, %v", body, got, err)
		}
	}
	c, b := answering(t, 200, `{}`)
	if got, err := c.KV(t.Context(), nil); len(got) > 0 || err != nil || len(b.requests()) > 0 {
		t.Errorf("KV(nil) = %v, %v", got, err)
	}
}
