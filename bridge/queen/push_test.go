package queen_test

import (
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func items(ids ...string) (out []queen.Item) {
	for _, id := range ids {
		out = append(out, queen.Item{Queue: "q", Partition: "p", TransactionID: id, Payload: []byte(`{"id":"` + id + `"}`)})
	}
	return out
}

func TestPushSendsPayloadBytesAsTheyAre(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 201, `[{"index":0,"message_id":"m","transaction_id":"t\"1","queueName":"a b/c","status":"queued"}]`)
	payload := "{ \"z\":1,\t\"a\":[1.0,12345678901234567890123], \"u\":\"\\u00e9\\ud800\", \"z\":2 }"
	_, err := c.Push(t.Context(), []queen.Item{{Queue: "a b/c", Partition: `p\é`, TransactionID: `t"1`, Payload: []byte(payload)}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"items":[{"queue":"a b/c","partition":"p\\é","transactionId":"t\"1","payload":` + payload + `}]}`
	got := b.last(t)
	if got.body != want {
		t.Errorf("body =\n%s\nwant\n%s", got.body, want)
	}
	if got.length != int64(len(want)) || got.method != "POST" || got.uri != "/api/v1/push" {
		t.Errorf("request = %s %s, %d bytes; want POST /api/v1/push, %d bytes", got.method, got.uri, got.length, len(want))
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Expect"} {
		if got.header.Get(name) != "" {
			t.Errorf("header %s is sent", name)
		}
	}
	if coding := got.header.Values("Accept-Encoding"); len(coding) != 1 || coding[0] != "identity" {
		t.Errorf("Accept-Encoding = %q; want identity", coding)
	}
}

func TestPushVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ids  []string
		want []queen.PushStatus
	}{
		{"push two queued", []string{"a", "b"}, []queen.PushStatus{queen.PushQueued, queen.PushQueued}},
		{"push one duplicate one queued", []string{"a", "c"}, []queen.PushStatus{queen.PushDuplicate, queen.PushQueued}},
		{"same id twice in one request", []string{"z", "z"}, []queen.PushStatus{queen.PushQueued, queen.PushDuplicate}},
		{"push empty queue name", []string{"eq"}, []queen.PushStatus{queen.PushBuffered}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := replaying(t, "push", tt.name)
			verdicts, err := c.Push(t.Context(), items(tt.ids...))
			if err != nil {
				t.Fatal(err)
			}
			var got []queen.PushStatus
			for _, v := range verdicts {
				got = append(got, v.Status)
				if v.MessageID == "" {
					t.Error("a verdict without message id")
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPushTakesUnknownStatusForError(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 201, `[{"status":"teleported"},{"status":"failed","error":"disk full"},{"status":""}]`)
	got, err := c.Push(t.Context(), items("a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	want := []queen.PushVerdict{{Status: queen.PushError}, {Status: queen.PushFailed, Error: "disk full"}, {Status: queen.PushError}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPushRefusesAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"one too few":      `[{"index":0,"status":"queued"}]`,
		"one too many":     `[{"status":"queued"},{"status":"queued"},{"status":"queued"}]`,
		"null":             `null`,
		"out of order":     `[{"index":1,"status":"queued"},{"index":0,"status":"queued"}]`,
		"another's id":     `[{"index":0,"transaction_id":"a","status":"queued"},{"index":1,"transaction_id":"x","status":"queued"}]`,
		"not an array":     `{"error":"x"}`,
		"cut":              `[{"index":0,"status":"queued"},{"index":1,"sta`,
		"console HTML":     `<!doctype html><html></html>`,
		"empty":            ``,
		"two values":       `[{"status":"queued"},{"status":"queued"}] []`,
		"status no string": `[{"status":1},{"status":"queued"}]`,
		"index no number":  `[{"index":"0","status":"queued"},{"status":"queued"}]`,
		"id no text":       `[{"transaction_id":1,"status":"queued"},{"status":"queued"}]`,
		"row no object":    `["queued",{"status":"queued"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 201, body)
			got, err := c.Push(t.Context(), items("a", "b"))
			if err == nil || !queen.Uncertain(err) || !queen.Temporary(err) {
				t.Errorf("Push() = %v, %v; want an error, uncertain and temporary", got, err)
			}
		})
	}
}

func TestPushRefusesWhatQueenWouldLoseOrReject(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", queen.MaxQueueName+1)
	for name, spoil := range map[string]func(*queen.Item){
		"no queue":               func(it *queen.Item) { it.Queue = "" },
		"long queue":             func(it *queen.Item) { it.Queue = long },
		"control in queue":       func(it *queen.Item) { it.Queue = "a\x00b" },
		"no partition":           func(it *queen.Item) { it.Partition = "" },
		"control in partition":   func(it *queen.Item) { it.Partition = "a\nb" },
		"no id":                  func(it *queen.Item) { it.TransactionID = "" },
		"long id":                func(it *queen.Item) { it.TransactionID = strings.Repeat("x", queen.MaxTransactionID+1) },
		"id is no UTF-8":         func(it *queen.Item) { it.TransactionID = "a\xff" },
		"no payload":             func(it *queen.Item) { it.Payload = nil },
		"partition is no UTF-8":  func(it *queen.Item) { it.Partition = "\xc3" },
		"queue name is no UTF-8": func(it *queen.Item) { it.Queue = "\xc3" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := answering(t, 201, `[{"status":"queued"}]`)
			its := items("a")
			spoil(&its[0])
			if _, err := c.Push(t.Context(), its); err == nil || queen.Uncertain(err) || queen.Temporary(err) {
				t.Errorf("Push() error = %v; want a certain, lasting one", err)
			}
			if n := len(b.requests()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

func TestPushOfNothingSendsNothing(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 201, `[]`)
	if got, err := c.Push(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("Push(nil) = %v, %v", got, err)
	}
	if n := len(b.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestRecordedRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, name, text, code       string
		status                       int
		uncertain, temporary, denied bool
	}{
		{file: "errors", name: "unknown api route", status: 404, text: "Not Found", code: "no_such_route"},
		{file: "errors", name: "wrong method GET push", status: 405},
		{file: "errors", name: "push malformed json", status: 400, text: "bad body: key must be a string at line 1 column 2"},
		{file: "errors", name: "pop bad batch", status: 400, text: "Failed to deserialize query string: invalid digit found in string"},
		{file: "errors", name: "body over 64 MiB", status: 413, text: "Failed to buffer the request body: length limit exceeded"},
		{file: "errors", name: "configure option of wrong type", status: 500, text: "configure failed: db error", uncertain: true, temporary: true},
		{file: "errors", name: "timers malformed json", status: 400, code: "timers_bad_request", text: "timers_bad_body: EOF while parsing an object at line 1 column 1"},
		{file: "auth", name: "no token", status: 401, text: "Authentication required", denied: true},
		{file: "auth", name: "role read-only pushes", status: 403, text: "Insufficient permissions", denied: true},
		{file: "outage", name: "kv get while away", status: 503, code: "kv_unavailable", text: "kv_pool_exhausted", uncertain: true, temporary: true},
		{file: "kv", name: "write rate limit", status: 429, code: "rate_limited", text: "rate_limited", temporary: true},
		{file: "timers", name: "timer horizon", status: 403, code: "timer_horizon_exceeded",
			text: "timers_horizon: op at index 0: delayMs 7776000001 is beyond the 7776000000 ms horizon in force here", denied: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := replaying(t, tt.file, tt.name)
			_, err := c.Push(t.Context(), items("a"))
			var got *queen.StatusError
			if !errors.As(err, &got) {
				t.Fatalf("error = %v; want a *StatusError", err)
			}
			if got.Status != tt.status || got.Text != tt.text || got.Code != tt.code {
				t.Errorf("error = %d %q %q; want %d %q %q", got.Status, got.Code, got.Text, tt.status, tt.code, tt.text)
			}
			if queen.Uncertain(err) != tt.uncertain || queen.Temporary(err) != tt.temporary || queen.Denied(err) != tt.denied {
				t.Errorf("uncertain %t, temporary %t, denied %t; want %t, %t, %t",
					queen.Uncertain(err), queen.Temporary(err), queen.Denied(err), tt.uncertain, tt.temporary, tt.denied)
			}
		})
	}
}

// FuzzPushAnswer holds the reader of a push's answer against an independent one.
func FuzzPushAnswer(f *testing.F) {
	for _, seed := range []string{
		`[{"index":0,"message_id":"m-0","transaction_id":"a","status":"queued"},{"index":1,"status":"duplicate","error":null}]`,
		`[{"status":"failed","error":"disk \u0066ull"},{"status":"new word","error":{"a":1}}]`, `[{"transaction_id":"\u0061"},{"transaction_id":"b"}]`,
		`[{},{}] `, `[{},{}]x`, `[{"status":"queued","status":"failed"},{"index":null}]`, `[]`, `null`, `{`, `[{"index":1.0},{}]`, `[{"message_id":"\ud800"},{}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var rows []struct {
			Index         *int           `json:"index"`
			MessageID     string         `json:"message_id"`
			TransactionID *string        `json:"transaction_id"`
			Status        string         `json:"status"`
			Error         jsontext.Value `json:"error"`
		}
		oracle := jsonv2.Unmarshal(body, &rows, jsontext.AllowInvalidUTF8(true))
		fits := oracle == nil && len(rows) == 2
		for i := range rows {
			fits = fits && (rows[i].Index == nil || *rows[i].Index == i) && (rows[i].TransactionID == nil || *rows[i].TransactionID == []string{"a", "b"}[i])
		}
		c := client(t, queen.Config{URLs: []string{"http://queen"}, Transport: fixedAnswer(201, string(body))})
		got, err := c.Push(t.Context(), items("a", "b"))
		if (err == nil) != fits {
			t.Fatalf("Push() = %v, %v for %s; the oracle says %v", got, err, body, oracle)
		}
		for i := range got {
			known := slices.Contains([]queen.PushStatus{queen.PushQueued, queen.PushDuplicate, queen.PushBuffered, queen.PushFailed}, queen.PushStatus(rows[i].Status))
			if known && string(got[i].Status) != rows[i].Status || !known && got[i].Status != queen.PushError || got[i].MessageID != rows[i].MessageID {
				t.Errorf("verdict %d of %s is %+v", i, body, got[i])
			}
		}
	})
}
