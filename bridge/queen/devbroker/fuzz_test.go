package devbroker_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// FuzzPush: whatever is pushed, the answer is 201 or 400; what is accepted is
// valid JSON, comes back byte for byte, and leaves the pop body valid JSON.
func FuzzPush(f *testing.F) {
	for _, seed := range []string{
		`{"items":[{"queue":"q","partition":"p","transactionId":"a","payload":{"z":[1,2.5e3,"\u00e9\ud83d\ude00"]}}]}`,
		`{"items":[{"queue":"q","payload":"\ud800"}]}`, `{"items":[{"queue":"q","payload":1e400}]}`,
		`{"items":[{"queue":"q\u0000","payload":1}]}`, `{"items":[]} `, `{bad`, `[]`, `{"items":[{"queue":"q","payload":"\\\"\\n"}]}`,
		`{"items":[{"queue":"","payload":null,"partition":null}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := open(t, devbroker.Config{})
		r := a.do("POST", "/api/v1/push", string(body))
		switch r.status {
		case 400:
			// A refusal is always allowed: the rules are stricter than JSON's.
		case 201:
			accepted(t, a, body)
		default:
			t.Errorf("push of %q = %d %s", body, r.status, r.text)
		}
	})
}

func accepted(t *testing.T, a *api, body []byte) {
	t.Helper()
	if !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("accepted %q, which is not JSON", body)
	}
	for _, r := range popAll(t, a) {
		if !json.Valid(r) {
			t.Errorf("popped %q after %q", r, body)
		}
		if !bytes.Contains(body, r) {
			t.Errorf("payload %q is not in the push %q", r, body)
		}
	}
}

// popAll returns the payloads of queue q.
func popAll(t *testing.T, a *api) [][]byte {
	t.Helper()
	var out [][]byte
	for _, m := range a.pop("/queue/q", "g", "batch=1000&partitions=-1").Messages {
		out = append(out, m.Data)
	}
	return out
}

// FuzzTransaction: any bundle is answered with a status that is documented and
// a JSON envelope, and a refused one changes nothing.
func FuzzTransaction(f *testing.F) {
	for _, seed := range []string{
		`{"operations":[{"type":"push","items":[{"queue":"q","payload":{"b":1,"a":[1e2]}}]}],"kv":[{"op":"incr","ns":"n","key":"k","delta":1,"forever":true}]}`,
		`{"operations":[{"type":"ack","partitionId":"22622f9a-69e8-4c70-9ff1-4c4d8647cf50","transactionId":"x"}]}`,
		`{"timers":[{"queue":"q","timerKey":"k","delayMs":1e9,"txn":"t","payload":"MQ=="}],"kv":[{"op":"get","ns":"n","key":"k"}]}`,
		`{"operations":[{"type":"noop"}]}`, `{}`, `{"kv":null,"timers":null,"operations":[]}`,
		`{"operations":[],"kv":[{"op":"put","ns":"n","key":"k","value":"\u0000","ttlSeconds":1}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := open(t, devbroker.Config{})
		r := a.do("POST", "/api/v1/transaction", string(body))
		switch r.status {
		case 200, 400, 403, 413, 500:
		default:
			t.Errorf("transaction %q = %d %s", body, r.status, r.text)
		}
		answer := r.json(t).(obj)
		if answer["success"] == true && r.status != 200 {
			t.Errorf("success with %d: %s", r.status, r.text)
		}
		if answer["success"] == false {
			if r := a.do("GET", "/api/v1/resources/queues", nil); r.text != `{"queues":[]}` {
				t.Errorf("refused, but there is %s", r.text)
			}
		}
	})
}

// FuzzRoutes: no body makes any other route fail with anything but a status it
// documents.
func FuzzRoutes(f *testing.F) {
	for _, seed := range []string{
		`{"operations":[{"op":"getPrefix","ns":"n","prefix":"p","limit":-1}]}`, `[{"op":"cancel","queue":"q","timerKey":"k"}]`,
		`{"queue":"q","options":{"leaseTime":"12","retryLimit":null}}`, `{"acknowledgments":[{"status":null}]}`, `{"value":1,"forever":true}`,
		`{"seconds":9223372036854775807}`, `{"toEnd":true}`, `{"timestamp":"x"}`,
		`{"transactionId":"t","partitionId":"22622f9a-69e8-4c70-9ff1-4c4d8647cf50","data":1,"traceNames":["a"]}`,
	} {
		f.Add([]byte(seed))
	}
	routes := []struct{ method, path string }{
		{"POST", "/api/v1/kv"}, {"PUT", "/api/v1/kv/n/k"}, {"DELETE", "/api/v1/kv/n/k"}, {"POST", "/api/v1/timers"},
		{"POST", "/api/v1/configure"}, {"POST", "/api/v1/ack"}, {"POST", "/api/v1/ack/batch"}, {"POST", "/api/v1/lease/x/extend"},
		{"POST", "/api/v1/consumer-groups/g/queues/q/seek"}, {"POST", "/api/v1/traces"},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := open(t, devbroker.Config{})
		a.push("q", "p", "m1")
		a.pop("/queue/q", "g", "")
		for _, route := range routes {
			switch r := a.do(route.method, route.path, string(body)); r.status {
			case 200, 201, 400, 403, 404, 413, 500:
				r.json(t)
			default:
				t.Errorf("%s %s %q = %d %s", route.method, route.path, body, r.status, r.text)
			}
		}
	})
}
