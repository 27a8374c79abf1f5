package devbroker_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	a := open(t, devbroker.Config{Token: "secret"})
	if r := a.do("GET", "/health", nil); r.status != 200 ||
		r.text != `{"status":"healthy","database":"connected","engine":"queenbridge","version":"1.3.0"}` {
		t.Errorf("/health = %d %s", r.status, r.text)
	}
	for _, path := range []string{"/metrics", "/metrics/prometheus"} {
		if r := a.do("GET", path, nil); r.status != 200 {
			t.Errorf("%s without a token = %d", path, r.status)
		}
	}
	if r := a.do("GET", "/status", nil); r.status != 401 {
		t.Errorf("/status without a token = %d", r.status)
	}
	a.token = "secret"
	if r := a.do("GET", "/status", nil); r.status != 200 || r.text != `{"status":"ok","engine":"queenbridge"}` {
		t.Errorf("/status = %d %s", r.status, r.text)
	}
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	a := open(t, devbroker.Config{Token: "secret"})
	for _, tt := range []struct{ header, want string }{
		{"", "Authentication required"},
		{"Basic c2VjcmV0", "Bad token header"},
		{"Bearer wrong", "Invalid token signature"},
	} {
		r := a.request("POST", "/api/v1/nope", "{}")
		if tt.header != "" {
			r.Header.Set("Authorization", tt.header)
		}
		resp, err := a.broker.Transport().RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), tt.want) {
			t.Errorf("%q = %d %s, want 401 %s", tt.header, resp.StatusCode, body, tt.want)
		}
	}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	a := memory(t)
	for _, tt := range []struct {
		method, path string
		status       int
		contentType  string
	}{
		{"GET", "/api/v1/nope", 404, "application/json"},
		{"DELETE", "/nope", 404, "application/json"},
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"OPTIONS", "/api/v1/push", 405, ""},
		{"HEAD", "/health", 200, "application/json"},
		{"GET", "/api/v1/pop/queue/", 404, "application/json"},
		{"GET", "/api/v1/pop/queue/q?wait=1", 400, "text/plain; charset=utf-8"},
		{"GET", "/api/v1/pop?namespace=n&conflation=true", 400, "application/json"},
		{"POST", "/api/v1/fetch", 404, "application/json"},
		{"PUT", "/api/v1/kv/n/k?x=1", 400, "application/json"},
	} {
		r := a.do(tt.method, tt.path, nil)
		if r.status != tt.status || r.header.Get("Content-Type") != tt.contentType {
			t.Errorf("%s %s = %d %q, want %d %q", tt.method, tt.path, r.status, r.header.Get("Content-Type"), tt.status, tt.contentType)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	a := memory(t)
	r := a.do("POST", "/api/v1/push", strings.Repeat(" ", 64<<20+1))
	if r.status != 413 || r.text != "Failed to buffer the request body: length limit exceeded" ||
		r.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("413 = %d %q %q", r.status, r.text, r.header.Get("Content-Type"))
	}
}

func TestPushLimits(t *testing.T) {
	t.Parallel()
	a := memory(t)
	item := func(member, value string) string {
		return `{"items":[{"queue":"q","payload":1,` + `"` + member + `":"` + value + `"}]}`
	}
	for _, tt := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"an id of 65535 bytes", item("transactionId", strings.Repeat("x", 65535)), 201, `"status":"queued"`},
		{"an id of 65536 bytes", item("transactionId", strings.Repeat("x", 65536)), 400, "bad body: transactionId of item 0 exceeds the 65535-byte limit"},
		{"no items", `{"items":[]}`, 201, "[]"},
		{"an empty id", item("transactionId", ""), 201, `"transaction_id":""`},
		{"a null id", `{"items":[{"queue":"q","payload":null,"transactionId":null,"partition":null}]}`, 201, `"status":"queued"`},
		{"an empty partition", item("partition", ""), 201, `"status":"queued"`},
		{"a queue of 255 characters", `{"items":[{"queue":"` + strings.Repeat("ü", 255) + `","payload":1}]}`, 201, `"status":"queued"`},
		{"a queue of 256 characters", `{"items":[{"queue":"` + strings.Repeat("ü", 256) + `","payload":1}]}`, 201, `"status":"buffered"`},
		{"data instead of payload", `{"items":[{"queue":"q","data":1}]}`, 400, "missing field `payload`"},
		{"a raw control character", "{\"items\":[{\"queue\":\"q\",\"payload\":\"a\x01b\"}]}", 400, "control character"},
		{"an escaped one in a name", item("partition", `a\u001fb`), 400, "control characters are not allowed"},
		{"trailing text", `{"items":[]} x`, 400, "trailing characters"},
		{"gzip", "\x1f\x8b\x08\x00", 400, "bad body"},
	} {
		r := a.do("POST", "/api/v1/push", tt.body)
		if r.status != tt.status || !strings.Contains(r.text, tt.want) {
			t.Errorf("push of %s = %d %.200s, want %d %s", tt.name, r.status, r.text, tt.status, tt.want)
		}
	}
	if r := a.do("GET", "/api/v1/resources/queues", nil); strings.Contains(r.text, strings.Repeat("ü", 256)) {
		t.Error("the queue with the long name exists")
	}
}

// Payloads come back byte for byte from a push, and encoded again from a
// transaction push.
func TestPayloadBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ payload, again string }{
		{`{"z":1,"a":2}`, `{"a":2,"z":1}`},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{`{ "a" : [ 1 , 2.0 ] }`, `{"a":[1,2.0]}`},
		{`12345678901234567890123456789`, `1.2345678901234568e28`},
		{`9223372036854775807`, `9223372036854775807`},
		{`18446744073709551615`, `18446744073709551615`},
		{`9007199254740993`, `9007199254740993`},
		{`1.10`, `1.1`},
		{`1e2`, `100.0`},
		{`-0`, `-0.0`},
		{`1e-7`, `1e-7`},
		{`0.00012`, `0.00012`},
		{`1.5e17`, `1.5e17`},
		{`"a\u0000b"`, `"a\u0000b"`},
		{`"\u00e9\/\n"`, `"é/\n"`},
		{`"\ud83d\ude00"`, `"😀"`},
		{`"\ud800"`, ""},
		{`1e400`, ""},
		{`null`, `null`},
		{`""`, `""`},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), ""},
	} {
		a := memory(t)
		if r := a.do("POST", "/api/v1/push", `{"items":[{"queue":"q","partition":"p","transactionId":"x","payload": `+tt.payload+` }]}`); r.status != 201 {
			t.Errorf("push of %s = %d %s", tt.payload, r.status, r.text)
			continue
		}
		if got := string(a.pop("/queue/q", "g", "").Messages[0].Data); got != tt.payload {
			t.Errorf("popped %s, want %s", got, tt.payload)
		}
		r := a.do("POST", "/api/v1/transaction", `{"operations":[{"type":"push","items":[{"queue":"t","partition":"p","transactionId":"x","payload":`+tt.payload+`}]}]}`)
		if tt.again == "" {
			if r.status != 400 || !strings.HasPrefix(r.text, `{"error":"bad body: `) {
				t.Errorf("transaction push of %s = %d %s, want 400", tt.payload, r.status, r.text)
			}
			continue
		}
		if got := string(a.pop("/queue/t", "g", "").Messages[0].Data); got != tt.again {
			t.Errorf("transaction push of %s gave %s, want %s", tt.payload, got, tt.again)
		}
	}
}

// A transaction happens whole or not at all, and its guards are tested in the
// order of 1.x: KV, timers, pushes, acks.
func TestTransactionGuards(t *testing.T) {
	t.Parallel()
	timer := obj{"op": "schedule", "queue": "q", "timerKey": "t", "delayMs": 60000, "txn": "t", "payload": "MQ=="}
	good := obj{"op": "put", "ns": "n", "key": "new", "value": 1, "forever": true}
	push := func(id string) obj {
		return obj{"type": "push", "queue": "q", "partition": "out", "transactionId": id, "payload": 1}
	}
	lost := obj{"op": "putIfAbsent", "ns": "n", "key": "there", "value": 2, "forever": true, "required": true}
	tests := []struct {
		name   string
		bundle func(ack obj) obj
		reason string
	}{
		{"all lost: KV first", func(ack obj) obj {
			return obj{"operations": []obj{merge(ack, obj{"leaseId": "x"}), push("dup")}, "kv": []obj{good, lost}, "timers": []obj{merge(timer, obj{"txn": ""})}}
		}, "kv_precondition"},
		{"then timers", func(ack obj) obj {
			return obj{"operations": []obj{merge(ack, obj{"leaseId": "x"}), push("dup")}, "kv": []obj{good}, "timers": []obj{merge(timer, obj{"txn": ""})}}
		}, "bad_request"},
		{"then pushes", func(ack obj) obj {
			return obj{"operations": []obj{merge(ack, obj{"leaseId": "x"}), push("new"), push("dup")}, "kv": []obj{good}, "timers": []obj{timer}}
		}, "duplicate"},
		{"then acks", func(ack obj) obj {
			return obj{"operations": []obj{merge(ack, obj{"leaseId": "x"}), push("new")}, "kv": []obj{good}, "timers": []obj{timer}}
		}, "ack_rejected"},
		{"an unknown id", func(ack obj) obj {
			return obj{"operations": []obj{ack, merge(ack, obj{"transactionId": "nope"}), push("new")}, "kv": []obj{good}, "timers": []obj{timer}}
		}, "ack_rejected"},
		{"a foreign partition", func(ack obj) obj {
			return obj{"operations": []obj{ack, merge(ack, obj{"partitionId": "22622f9a-69e8-4c70-9ff1-4c4d8647cf50"}), push("new")}, "kv": []obj{good}, "timers": []obj{timer}}
		}, "ack_rejected"},
		{"a push without a queue", func(ack obj) obj {
			return obj{"operations": []obj{ack, {"type": "push", "payload": 1}}, "kv": []obj{good}, "timers": []obj{timer}}
		}, "ack_rejected"},
		{"no expiry", func(ack obj) obj {
			return obj{"operations": []obj{ack}, "kv": []obj{good, {"op": "put", "ns": "n", "key": "x", "value": 1}}, "timers": []obj{timer}}
		}, "bad_request"},
		{"a key twice", func(ack obj) obj {
			return obj{"operations": []obj{ack}, "kv": []obj{good, good}, "timers": []obj{timer}}
		}, "bad_request"},
		{"a timer twice", func(ack obj) obj {
			return obj{"operations": []obj{ack}, "kv": []obj{good}, "timers": []obj{timer, timer}}
		}, "bad_request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := memory(t)
			a.do("POST", "/api/v1/kv", obj{"operations": []obj{forever2("there", 1)}})
			a.push("q", "out", "dup")
			a.push("q", "p", "m1")
			p := a.pop("/queue/q/partition/p", "g", "")
			ack := obj{"type": "ack", "transactionId": "m1", "partitionId": p.PartitionID, "leaseId": p.LeaseID, "consumerGroup": "g", "status": "completed"}
			got := a.transact(tt.bundle(ack))
			if got["success"] != false || got["reason"] != tt.reason || len(got["results"].([]any)) != 0 {
				t.Errorf("answer = %v, want a rollback for %s", got, tt.reason)
			}
			if r := a.do("GET", "/api/v1/kv/n/new", nil); !strings.Contains(r.text, `"found":false`) {
				t.Errorf("KV was written: %s", r.text)
			}
			if r := a.do("GET", "/api/v1/timers/q/t", nil); !strings.HasPrefix(r.text, `{"found":false`) {
				t.Errorf("a timer was scheduled: %s", r.text)
			}
			if got := a.pop("/queue/q/partition/out", "h", "").txns(); got != "dup" {
				t.Errorf("pushed: %q", got)
			}
			if got := a.ack(p, "g", "m1 completed"); got[0] != "ok" {
				t.Errorf("the ack alone = %v", got)
			}
		})
	}
}

func forever2(key string, value any) obj {
	return obj{"op": "put", "ns": "n", "key": key, "value": value, "forever": true}
}

// A settle that ends its batch is done at most once, however often it is sent;
// one that does not runs its riders again.
func TestRepeatedSettle(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2} {
		a := memory(t)
		a.push("q", "p", numbered(batch)...)
		p := a.pop("/queue/q", "g", "")
		bundle := obj{
			"operations": []obj{{"type": "ack", "transactionId": "m1", "partitionId": p.PartitionID, "leaseId": p.LeaseID, "consumerGroup": "g"}},
			"kv":         []obj{{"op": "incr", "ns": "n", "key": "c", "delta": 1, "forever": true}},
		}
		a.transact(bundle)
		again := a.transact(bundle)
		want, count := any(true), "2"
		if batch == 1 {
			want, count = false, "1"
		}
		if again["success"] != want {
			t.Errorf("batch of %d: the repeat = %v", batch, again)
		}
		if r := a.do("GET", "/api/v1/kv/n/c", nil); !strings.Contains(r.text, `"value":`+count+`,`) {
			t.Errorf("batch of %d: counted %s, want %s", batch, r.text, count)
		}
	}
}

// A dead letter that a real Queen could not store fails a plain ack, and fails
// in silence in a transaction: riders committed, lease kept.
func TestUnstorableDeadLetter(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.do("POST", "/api/v1/push", `{"items":[{"queue":"q","partition":"p","transactionId":"ok","payload":1},{"queue":"q","partition":"p","transactionId":"bad","payload":"\ud800"}]}`)
	p := a.pop("/queue/q", "g", "")
	if got := a.ack(p, "g", "ok completed", "bad dlq"); !cmp.Equal(got, []string{"db error", "db error"}) {
		t.Errorf("ack = %v", got)
	}
	ack := func(id, status string) obj {
		return obj{"type": "ack", "transactionId": id, "partitionId": p.PartitionID, "leaseId": p.LeaseID, "consumerGroup": "g", "status": status}
	}
	got := a.transact(obj{"operations": []obj{ack("ok", "completed"), ack("bad", "dlq")}, "kv": []obj{forever2("rider", 1)}})
	if got["success"] != true {
		t.Errorf("transaction = %v", got)
	}
	if r := a.do("GET", "/api/v1/kv/n/rider", nil); !strings.Contains(r.text, `"found":true`) {
		t.Errorf("the rider = %s", r.text)
	}
	if got := a.ack(p, "g", "bad retry"); got[0] != "ok" {
		t.Errorf("the lease is gone: %v", got)
	}
	p = a.pop("/queue/q", "g", "")
	if p.txns() != "bad" {
		t.Errorf("popped %q", p.txns())
	}
	if got := a.ack(p, "g", "bad failed text\x00"); got[0] != "ok" {
		t.Errorf("a nack within the budget = %v", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	var fault devbroker.Fault
	a := open(t, devbroker.Config{Intercept: func(r *http.Request) devbroker.Fault {
		f := fault
		fault = devbroker.Fault{}
		return f
	}})
	via := a.broker.Transport()
	push := func(id string) (*http.Response, error) {
		return via.RoundTrip(a.request("POST", "/api/v1/push", `{"items":[{"queue":"q","partition":"p","transactionId":"`+id+`","payload":1}]}`))
	}
	fault = devbroker.Fault{LoseAnswer: true}
	if resp, err := push("lost"); err == nil {
		t.Errorf("a lost answer arrived: %v", resp.Status)
	}
	fault = devbroker.Fault{Status: 503, Body: `{"error":"unknown","code":"outcome_unknown"}`, RetryAfter: time.Second}
	resp, err := push("refused")
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("503 = %v %v", resp, err)
	}
	fault = devbroker.Fault{Buffered: true}
	if got := a.push("q", "p", "spooled"); got[0] != "buffered" {
		t.Errorf("buffered = %v", got)
	}
	fault = devbroker.Fault{CutAnswer: 5}
	resp, err = push("cut")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || len(body) != 5 {
		t.Errorf("cut answer = %q %v", body, err)
	}
	fault = devbroker.Fault{Lease: time.Nanosecond}
	p := a.pop("/queue/q", "g", "")
	if p.txns() != "lost cut" {
		t.Errorf("stored %q, want what was carried out", p.txns())
	}
	if got := a.ack(p, "g", "lost completed"); got[0] != "invalid or expired lease" {
		t.Errorf("ack under a lease that expired early = %v", got)
	}
}

// One lease id over several partitions: each is settled on its own.
func TestMultiPartitionLease(t *testing.T) {
	t.Parallel()
	a := memory(t)
	for _, name := range []string{"p1", "p2", "p3"} {
		a.push("q", name, name+"a", name+"b")
	}
	p := a.pop("/queue/q", "g", "batch=5&partitions=10")
	if p.PartitionsClaimed != 3 || len(p.Messages) != 5 {
		t.Fatalf("claimed %d partitions, %d messages", p.PartitionsClaimed, len(p.Messages))
	}
	renewed := func() any {
		return a.do("POST", "/api/v1/lease/"+p.LeaseID+"/extend", nil).json(t).(obj)["renewed"]
	}
	if got := renewed(); got != num(3) {
		t.Errorf("renewed %v, want 3", got)
	}
	one := popped{LeaseID: p.LeaseID, PartitionID: p.Messages[0].PartitionID}
	if got := a.ack(one, "g", p.Messages[1].TransactionID+" failed"); got[0] != "ok" {
		t.Errorf("nack = %v", got)
	}
	if got := renewed(); got != num(2) {
		t.Errorf("renewed %v after a nack, want 2", got)
	}
	if got := a.pop("/queue/q", "g", "partitions=10").txns(); got != "p1a p1b" {
		t.Errorf("popped %q, want the nacked partition", got)
	}
}

// Partitions take turns: one that always has more does not starve another.
func TestPartitionsTakeTurns(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.push("q", "hot", numbered(50)...)
	a.push("q", "cold", "c1", "c2")
	var seen []string
	for range 4 {
		p := a.pop("/queue/q", "g", "batch=1")
		seen = append(seen, p.Partition)
		a.push("q", "hot", fmt.Sprint("more", len(seen)))
		a.ack(p, "g", p.Messages[0].TransactionID+" completed")
	}
	if want := []string{"hot", "cold", "hot", "cold"}; !cmp.Equal(seen, want) {
		t.Errorf("turns = %v, want %v", seen, want)
	}
}

func TestSubscription(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ query, want string }{
		{"subscriptionMode=all", "old"},
		{"subscriptionMode=latest", "old"},
		{"subscriptionMode=new", ""},
		{"", ""},
		{"subscriptionMode=all&subscriptionFrom=now", ""},
		{"subscriptionMode=all&subscriptionFrom=garbage", ""},
		{"subscriptionMode=new&subscriptionFrom=2000-01-01T00:00:00Z", "old"},
	} {
		a := memory(t)
		a.push("q", "p", "old")
		pop := func(more string) string {
			r := a.do("GET", "/api/v1/pop/queue/q?consumerGroup=g&"+tt.query+more, nil)
			if r.status == 204 {
				return ""
			}
			return r.json(t).(obj)["messages"].([]any)[0].(obj)["transactionId"].(string)
		}
		if got := pop(""); got != tt.want {
			t.Errorf("first contact with %q = %q, want %q", tt.query, got, tt.want)
		}
		if tt.want == "" {
			a.push("q", "p", "new")
			a.push("q", "later", "first")
			if got := pop("&subscriptionMode=all"); got != "new" {
				t.Errorf("then with %q = %q, want new: the mode is fixed", tt.query, got)
			}
			if got := pop(""); got != "first" {
				t.Errorf("a partition made later with %q = %q, want its first message", tt.query, got)
			}
		}
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.configure("age", obj{"retentionEnabled": true, "retentionSeconds": 60})
		a.configure("done", obj{"retentionEnabled": true, "completedRetentionSeconds": 60})
		a.configure("off", obj{"retentionSeconds": 60})
		for _, q := range []string{"age", "done", "off"} {
			a.push(q, "p", "m1", "m2")
			p := a.pop("/queue/"+q, "g", "batch=1")
			a.ack(p, "g", "m1 completed")
		}
		time.Sleep(70 * time.Second)
		synctest.Wait()
		for q, want := range map[string]string{"age": "", "done": "m2", "off": "m1 m2"} {
			if got := a.pop("/queue/"+q, "late", "").txns(); got != want {
				t.Errorf("%s: a new group sees %q, want %q", q, got, want)
			}
		}
		if got := a.push("age", "p", "m1"); got[0] != "duplicate" {
			t.Errorf("the id of a deleted message = %v, want duplicate", got)
		}
	})
}

// Ids are forgotten, pending or not, where the real behaviour is asked for.
func TestForgetAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := devbroker.Open(devbroker.Config{ForgetAfter: 900 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		a := &api{t: t, broker: b}
		a.push("q", "p", "m1", "m2")
		time.Sleep(901 * time.Second)
		p := a.pop("/queue/q", "g", "")
		got := a.transact(obj{"operations": []obj{{"type": "ack", "transactionId": "m1", "partitionId": p.PartitionID, "leaseId": p.LeaseID, "consumerGroup": "g"}}})
		if got["reason"] != "ack_rejected" || !strings.Contains(got["error"].(string), "unknown transactionId") {
			t.Errorf("transaction = %v", got)
		}
		if got := a.ack(p, "g", "m1 completed", "m2 completed"); !cmp.Equal(got, []string{"ok", "ok"}) {
			t.Errorf("an ack of the whole batch = %v", got)
		}
		a.push("q", "p", "m3")
		time.Sleep(901 * time.Second)
		p = a.pop("/queue/q", "g", "")
		if got := a.ack(p, "g", "m3 dlq"); !strings.HasPrefix(got[0], "unresolvable") {
			t.Errorf("dlq = %v", got)
		}
		if got := a.ack(p, "g", "m3 completed"); !strings.HasPrefix(got[0], "unresolvable") {
			t.Errorf("the whole batch after a refused dlq = %v", got)
		}
	})
}
