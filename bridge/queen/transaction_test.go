package queen_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// recordedBundle is the transaction of the exchange "ack three, push two, kv
// four, timers two".
func recordedBundle() queen.Transaction {
	lease := queen.Lease{ID: "01a22b82-2ab8-7000-931b-c4c4bc16fcd6", Group: "g"}
	var t queen.Transaction
	for _, id := range []string{"m1", "m2", "m3"} {
		t.Acks = append(t.Acks, queen.Ack{TransactionID: id, PartitionID: "3e56411b-9dee-4bdb-ace6-d022e9803d04", Lease: lease, Status: queen.AckCompleted})
	}
	t.Pushes = []queen.Item{
		{Queue: "ret-38fb59", Partition: "l1", TransactionID: "reply-1", Payload: []byte(`{"ok":1}`)},
		{Queue: "ret-38fb59", Partition: "l2", TransactionID: "reply-2", Payload: []byte(`2`)},
	}
	t.KV = []queen.KVOp{
		{Op: "put", Namespace: "probe", Key: "a/38fb59", Value: []byte(`{"n":1}`), TTL: 10 * time.Minute},
		{Op: "incr", Namespace: "probe", Key: "c/38fb59", Delta: 1, TTL: 10 * time.Minute},
		{Op: "putIfAbsent", Namespace: "probe", Key: "o/38fb59", Value: []byte(`1`), TTL: 10 * time.Minute},
		{Op: "get", Namespace: "probe", Key: "zz"},
	}
	t.Timers = []queen.Timer{
		{Queue: "ret-38fb59", Key: "r/1", Partition: "l1", Delay: 10 * time.Minute, TransactionID: "x", Payload: []byte(`{"k": "r/1"}`)},
		{Queue: "ret-38fb59", Key: "r/2", Partition: "l1", TransactionID: "y", Payload: []byte(`{"k": "r/2"}`)},
	}
	return t
}

func prepare(t testing.TB, tx queen.Transaction) queen.Prepared {
	t.Helper()
	p, err := tx.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTransactionIsSentAsRecorded(t *testing.T) {
	t.Parallel()
	const name = "ack three, push two, kv four, timers two"
	c, b := replaying(t, "transaction", name)
	p := prepare(t, recordedBundle())
	done, err := c.Commit(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := queen.Commit{
		Timers: []queen.TimerStatus{queen.TimerScheduled, queen.TimerScheduled},
		KV: []queen.KVResult{
			{Applied: true, Key: "a/38fb59", Value: []byte("{\n       \"n\": 1\n      }"), Version: 1},
			{Applied: true, Key: "c/38fb59", Value: []byte("1"), Version: 2},
			{Applied: true, Key: "o/38fb59", Value: []byte("1"), Version: 3},
			{Key: "zz"},
		},
	}
	if d := cmp.Diff(want, done); d != "" {
		t.Error(d)
	}
	// The recording pushed with a traceId and scheduled into Default.
	body := string(recorded(t, "transaction", name).Request.Body)
	body = strings.ReplaceAll(body, `"traceId": "014262ee-8ee8-4bcb-beca-7a868837c741"`, `"q":0`)
	got := strings.ReplaceAll(b.last(t).body, `"partition":"l1","delayMs"`, `"delayMs"`)
	got = strings.Replace(got, `"payload":{"ok":1}`, `"payload":{"ok":1},"q":0`, 1)
	sameJSON(t, "body", got, body)
	if p.Len() != len(b.last(t).body) {
		t.Errorf("Len() = %d; %d bytes were sent", p.Len(), len(b.last(t).body))
	}
}

func TestTransactionGoldenBody(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 429, ``)
	tx := queen.Transaction{
		Acks: []queen.Ack{
			{TransactionID: "a", PartitionID: "1", Lease: queen.Lease{ID: "L1", Group: "g"}, Status: queen.AckCompleted},
			{TransactionID: "b", PartitionID: "2", Lease: queen.Lease{ID: "L2", Group: "g"}, Status: queen.AckDLQ, Error: "why"},
			{TransactionID: "c", PartitionID: "1", Lease: queen.Lease{ID: "L1", Group: "g"}, Status: queen.AckRetry},
		},
		Pushes: []queen.Item{{Queue: "d", Partition: "0", TransactionID: "t", Payload: []byte(`"x"`)}},
		KV: []queen.KVOp{
			{Op: "put", Namespace: "n", Key: "k", Value: []byte(`1`), TTL: 1500 * time.Millisecond, Expect: queen.Int(0), Required: true},
			{Op: "put", Namespace: "n", Key: "f", Value: []byte(`null`)},
			{Op: "delete", Namespace: "n", Key: "d", Expect: queen.Int(7)},
			{Op: "incr", Namespace: "n", Key: "i", Delta: -2, Min: queen.Int(-5), Max: queen.Int(5), TTL: time.Minute},
			{Op: "getMany", Namespace: "n", Keys: []string{"x", `y"`}},
		},
		Timers: []queen.Timer{
			{Queue: "r", Key: "l/1", Partition: "3", Delay: 1500 * time.Microsecond, TransactionID: "l/1/n", Payload: []byte(`{}`)},
			{Queue: "r", Key: "l/2", Partition: "3", Delay: -time.Second, TransactionID: "l/2/n", Payload: []byte(`[1]`)},
		},
	}
	_, _ = c.Commit(t.Context(), prepare(t, tx))
	want := `{"operations":[` +
		`{"type":"ack","transactionId":"a","partitionId":"1","leaseId":"L1","consumerGroup":"g","status":"completed"},` +
		`{"type":"ack","transactionId":"b","partitionId":"2","leaseId":"L2","consumerGroup":"g","status":"dlq","error":"why"},` +
		`{"type":"ack","transactionId":"c","partitionId":"1","leaseId":"L1","consumerGroup":"g","status":"retry"},` +
		`{"type":"push","items":[{"queue":"d","partition":"0","transactionId":"t","payload":"x"}]}],` +
		`"requiredLeases":["L1","L2"],` +
		`"kv":[{"op":"put","ns":"n","key":"k","value":1,"ttlSeconds":2,"expect":0,"required":true},` +
		`{"op":"put","ns":"n","key":"f","value":null,"forever":true},` +
		`{"op":"delete","ns":"n","key":"d","expect":7},` +
		`{"op":"incr","ns":"n","key":"i","delta":-2,"min":-5,"max":5,"ttlSeconds":60},` +
		`{"op":"getMany","ns":"n","keys":["x","y\""]}],` +
		`"timers":[{"op":"schedule","queue":"r","timerKey":"l/1","partition":"3","delayMs":1.5,"txn":"l/1/n","payload":"e30="},` +
		`{"op":"schedule","queue":"r","timerKey":"l/2","partition":"3","delayMs":-1000,"txn":"l/2/n","payload":"WzFd"}]}`
	if got := b.last(t).body; got != want {
		t.Errorf("body =\n%s\nwant\n%s", got, want)
	}
}

func TestPreparedBytesStayTheSame(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 500, `{"error":"pool"}`)
	tx := recordedBundle()
	p := prepare(t, tx)
	for i := range 3 {
		tx.Pushes[0].Payload[2] ^= byte(i)
		tx.Acks[0].TransactionID, tx.Timers[0].Key, tx.KV[0].Key = "changed", "changed", "changed"
		if _, err := c.Commit(t.Context(), p); !queen.Uncertain(err) || !queen.Temporary(err) {
			t.Errorf("Commit() error = %v; want uncertain and temporary", err)
		}
	}
	all := b.requests()
	if all[0].body != all[1].body || all[1].body != all[2].body || strings.Contains(all[2].body, "changed") {
		t.Error("the bytes of a resend differ")
	}
}

func TestOnlyRidersAreAllowed(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"success":true,"results":[{"index":0,"type":"timer","opIndex":0,"ok":false,"status":"too_late","queue":"r","timerKey":"k"}]}`)
	tx := queen.Transaction{Timers: []queen.Timer{{Queue: "r", Key: "k", Partition: "p", TransactionID: "t", Payload: []byte(`1`)}}}
	done, err := c.Commit(t.Context(), prepare(t, tx))
	if err != nil || len(done.Timers) != 1 || done.Timers[0] != queen.TimerTooLate {
		t.Errorf("Commit() = %+v, %v; want too_late, which is no error", done, err)
	}
	if got := b.last(t).body; !strings.HasPrefix(got, `{"operations":[],"timers":[`) {
		t.Errorf("body = %s", got)
	}
}

func TestRecordedRollbacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file string
		want       queen.RollbackReason
		status     int
		text       string
	}{
		{name: "the same settle repeated after success", want: queen.RollbackAckRejected, status: 200, text: "invalid or expired lease"},
		{name: "repeat with a pushed id already stored: duplicate", want: queen.RollbackDuplicate, status: 200, text: "QDUP"},
		{name: "ack of a garbage partitionId", want: queen.RollbackTransient, status: 200, text: "invalid input syntax"},
		{name: "timer beyond the horizon", want: queen.RollbackTimerHorizon, status: 403, text: "7776000000 ms horizon"},
		{name: "timer without txn", want: queen.RollbackBadRequest, status: 200, text: "txn is required"},
		{name: "riders over the write rate: 429, nothing committed", want: queen.RollbackRateLimited, status: 429, text: "not committed"},
		{name: "transaction unknown op type", file: "errors", want: queen.RollbackBadRequest, status: 400, text: "supports only push and ack"},
		{name: "body over 64 MiB", file: "errors", want: queen.RollbackPayloadTooLarge, status: 413, text: "length limit exceeded"},
		{name: "pop bad batch", file: "errors", want: queen.RollbackBadRequest, status: 400, text: "invalid digit"},
		{name: "write rate limit", file: "kv", want: queen.RollbackRateLimited, status: 429},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := tt.file
			if file == "" {
				file = "transaction"
			}
			c, _ := replaying(t, file, tt.name)
			_, err := c.Commit(t.Context(), prepare(t, recordedBundle()))
			var got *queen.RollbackError
			if !errors.As(err, &got) {
				t.Fatalf("Commit() error = %v; want a *RollbackError", err)
			}
			if got.Reason != tt.want || got.Status != tt.status || !strings.Contains(got.Text, tt.text) || got.FailedIndex != -1 {
				t.Errorf("rollback = %+v; want %s, %d, %q", got, tt.want, tt.status, tt.text)
			}
			temporary := tt.want == queen.RollbackTransient || tt.want == queen.RollbackRateLimited
			if queen.Uncertain(err) || queen.Temporary(err) != temporary {
				t.Errorf("uncertain %t, temporary %t", queen.Uncertain(err), queen.Temporary(err))
			}
		})
	}
}

func TestRollbackOfALostKey(t *testing.T) {
	t.Parallel()
	c, _ := replaying(t, "transaction", "required kv lost: kv_precondition")
	_, err := c.Commit(t.Context(), prepare(t, recordedBundle()))
	var got *queen.RollbackError
	if !errors.As(err, &got) || got.Reason != queen.RollbackKVPrecondition || got.FailedIndex != 2 || got.KVReason != "exists" {
		t.Fatalf("Commit() error = %+v", err)
	}
	sameJSON(t, "value", string(got.Value), `{"w":0}`)
	if strings.Contains(err.Error(), `"w"`) {
		t.Errorf("error shows the value: %v", err)
	}
}

func TestRollbackSpellings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   queen.RollbackReason
		denied bool
	}{
		{200, `{"success":false,"reason":"rejected_ack"}`, queen.RollbackAckRejected, false},
		{200, `{"success":false,"reason":"too_large"}`, queen.RollbackPayloadTooLarge, false},
		{413, `{"error":"name","code":"name_too_long"}`, queen.RollbackPayloadTooLarge, false},
		{200, `{"success":false,"reason":"reserved"}`, queen.RollbackTransient, false},
		{200, `{"success":false,"reason":"misaligned"}`, queen.RollbackTransient, false},
		{200, `{"success":false,"reason":"unavailable"}`, queen.RollbackTransient, false},
		{429, `{"error":"x","code":"overloaded"}`, queen.RollbackRateLimited, false},
		{429, ``, queen.RollbackRateLimited, false},
		{403, `{"success":false,"error":"paused","reason":"kv_disabled","results":[]}`, queen.RollbackDisabled, true},
		{403, `{"error":"timers_disabled","reason":"paused by the operator"}`, queen.RollbackDisabled, true},
		{403, `{"success":false,"reason":"quota"}`, queen.RollbackOther, true},
		{200, `{"success":false,"reason":"queue_not_found"}`, queen.RollbackOther, false},
		{200, `{"success":false,"error":"ACK operation failed: Invalid or expired lease"}`, queen.RollbackOther, false},
		{400, `{"success":false,"reason":"kv_something_new"}`, queen.RollbackBadRequest, false},
		{400, `null`, queen.RollbackBadRequest, false},
	} {
		c, _ := answering(t, tt.status, tt.body)
		_, err := c.Commit(t.Context(), prepare(t, recordedBundle()))
		var got *queen.RollbackError
		if !errors.As(err, &got) || got.Reason != tt.want || queen.Uncertain(err) || queen.Denied(err) != tt.denied {
			t.Errorf("%d %s: error = %#v; want %s", tt.status, tt.body, err, tt.want)
		}
	}
}

func TestTransactionAnswersThatAreNoRollback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status                       int
		body                         string
		uncertain, temporary, denied bool
	}{
		{401, `{"error":"Authentication required"}`, false, false, true},
		{403, `{"error":"Insufficient permissions"}`, false, false, true},
		{404, `{"error":"Not Found","code":"no_such_route"}`, false, false, false},
		{500, `{"error":"pool"}`, true, true, false},
		{503, `{"error":"who knows","code":"outcome_unknown","success":false,"reason":"ack_rejected"}`, true, true, false},
		{507, `{"error":"full","code":"storage_full"}`, true, true, false},
		{502, `<html>`, true, true, false},
	} {
		c, _ := answering(t, tt.status, tt.body)
		_, err := c.Commit(t.Context(), prepare(t, recordedBundle()))
		var got *queen.StatusError
		if !errors.As(err, &got) || queen.Uncertain(err) != tt.uncertain || queen.Temporary(err) != tt.temporary || queen.Denied(err) != tt.denied {
			t.Errorf("%d %s: error = %#v", tt.status, tt.body, err)
		}
	}
}

func TestUnknownTransactionID(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, `{"success":false,"reason":"ack_rejected","error":"QTXN ack references unknown transactionId m1","results":[]}`)
	_, err := c.Commit(t.Context(), prepare(t, recordedBundle()))
	var got *queen.RollbackError
	if !errors.As(err, &got) || !got.UnknownTransactionID() {
		t.Errorf("error = %v; want an unknown transaction id", err)
	}
}

func TestIgnoredTimersAreNoticed(t *testing.T) {
	t.Parallel()
	acked := `{"index":0,"type":"ack","success":true,"transactionId":"a"}`
	timer := `{"index":1,"type":"timer","opIndex":0,"ok":true,"status":"scheduled","queue":"r","timerKey":"k1"}`
	tx := queen.Transaction{Acks: []queen.Ack{ack("a", queen.AckCompleted)}, Timers: []queen.Timer{
		{Queue: "r", Key: "k1", Partition: "p", TransactionID: "t", Payload: []byte(`1`)},
		{Queue: "r", Key: "k2", Partition: "p", TransactionID: "t", Payload: []byte(`1`)},
	}}
	for answered, results := range map[int]string{0: acked, 1: acked + "," + timer} {
		c, _ := answering(t, 200, `{"success":true,"results":[`+results+`]}`)
		_, err := c.Commit(t.Context(), prepare(t, tx))
		var got *queen.TimersIgnoredError
		if !errors.As(err, &got) || got.Sent != 2 || got.Answered != answered || queen.Temporary(err) || !queen.Uncertain(err) {
			t.Errorf("error = %v; want a *TimersIgnoredError of %d answered", err, answered)
		}
	}
}

func TestCommitRefusesAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	ackRow := `{"type":"ack","success":true}`
	pushRow := `{"type":"push","success":true}`
	kvRow := `{"type":"kv","opIndex":0,"op":"get","found":false,"key":"k"}`
	timerRow := `{"type":"timer","opIndex":0,"ok":true,"status":"scheduled","queue":"r","timerKey":"k"}`
	tx := queen.Transaction{Acks: []queen.Ack{ack("a", queen.AckCompleted)}, Pushes: items("b"),
		KV:     []queen.KVOp{{Op: "get", Namespace: "n", Key: "k"}},
		Timers: []queen.Timer{{Queue: "r", Key: "k", Partition: "p", TransactionID: "t", Payload: []byte(`1`)}}}
	all := func(rows ...string) string {
		return `{"success":true,"results":[` + strings.Join(rows, ",") + `]}`
	}
	c, _ := answering(t, 200, all(ackRow, pushRow, kvRow, timerRow, `{"type":"position"}`))
	if _, err := c.Commit(t.Context(), prepare(t, tx)); err != nil {
		t.Fatalf("Commit() of a good answer: %v", err)
	}
	for name, body := range map[string]string{
		"no ack":             all(pushRow, kvRow, timerRow),
		"ack not done":       all(`{"type":"ack","success":false}`, pushRow, kvRow, timerRow),
		"no push":            all(ackRow, kvRow, timerRow),
		"no kv":              all(ackRow, pushRow, timerRow),
		"a timer twice":      all(ackRow, pushRow, kvRow, timerRow, timerRow),
		"a timer nobody set": all(ackRow, pushRow, kvRow, strings.Replace(timerRow, `"opIndex":0`, `"opIndex":5`, 1)),
		"another's timer":    all(ackRow, pushRow, kvRow, strings.Replace(timerRow, `"k"`, `"other"`, 1)),
		"timer status":       all(ackRow, pushRow, kvRow, strings.Replace(timerRow, `scheduled`, `absent`, 1)),
		"timer not ok":       all(ackRow, pushRow, kvRow, strings.Replace(timerRow, `true`, `false`, 1)),
		"no index":           all(ackRow, pushRow, kvRow, strings.Replace(timerRow, `"opIndex":0,`, ``, 1)),
		"kv of another op":   all(ackRow, pushRow, strings.Replace(kvRow, `get`, `put`, 1), timerRow),
		"kv of another key":  all(ackRow, pushRow, strings.Replace(kvRow, `"k"`, `"z"`, 1), timerRow),
		"kv without verdict": all(ackRow, pushRow, strings.Replace(kvRow, `"found":false,`, ``, 1), timerRow),
		"no success":         `{"results":[]}`,
		"an array":           `[]`,
		"cut":                `{"success":true,"results":[`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 200, body)
			if done, err := c.Commit(t.Context(), prepare(t, tx)); !queen.Uncertain(err) {
				t.Errorf("Commit() = %+v, %v; want an uncertain error", done, err)
			}
		})
	}
}

func TestPrepareRefusesHarm(t *testing.T) {
	t.Parallel()
	timer := queen.Timer{Queue: "r", Key: "k", Partition: "p", TransactionID: "t", Payload: []byte(`1`)}
	for name, tx := range map[string]queen.Transaction{
		"timer payload not JSON":  {Timers: []queen.Timer{{Queue: "r", Key: "k", Partition: "p", TransactionID: "t", Payload: []byte(`<xml/>`)}}},
		"timer without payload":   {Timers: []queen.Timer{{Queue: "r", Key: "k", Partition: "p", TransactionID: "t"}}},
		"timer without txn":       {Timers: []queen.Timer{{Queue: "r", Key: "k", Partition: "p", Payload: timer.Payload}}},
		"timer with a long txn":   {Timers: []queen.Timer{{Queue: "r", Key: "k", Partition: "p", TransactionID: strings.Repeat("x", 65536), Payload: timer.Payload}}},
		"timer without partition": {Timers: []queen.Timer{{Queue: "r", Key: "k", TransactionID: "t", Payload: timer.Payload}}},
		"push without queue":      {Pushes: []queen.Item{{Partition: "p", TransactionID: "t", Payload: []byte(`1`)}}},
		"kv op nobody knows":      {KV: []queen.KVOp{{Op: "cas", Namespace: "n", Key: "k"}}},
		"kv value not JSON":       {KV: []queen.KVOp{{Op: "put", Namespace: "n", Key: "k", Value: []byte(`x`)}}},
		"kv negative ttl":         {KV: []queen.KVOp{{Op: "incr", Namespace: "n", Key: "k", TTL: -1}}},
		"kv key with NUL":         {KV: []queen.KVOp{{Op: "get", Namespace: "n", Key: "k\x00"}}},
	} {
		if _, err := tx.Prepare(); err == nil {
			t.Errorf("%s: Prepare() succeeded", name)
		}
	}
	if _, err := (&queen.Client{}).Commit(t.Context(), queen.Prepared{}); err == nil {
		t.Error("Commit() of nothing prepared succeeded")
	}
}
