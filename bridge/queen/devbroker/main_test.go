package devbroker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// api talks to a broker the way any client does, in process.
type api struct {
	t      testing.TB
	broker *devbroker.Broker
	token  string

	popLeased popped // what a test has leased
}

func open(t testing.TB, cfg devbroker.Config) *api {
	t.Helper()
	b, err := devbroker.Open(cfg)
	if err != nil {
		t.Fatalf("Open(%+v): %v", cfg, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &api{t: t, broker: b}
}

func memory(t testing.TB) *api { return open(t, devbroker.Config{}) }

type reply struct {
	status int
	header http.Header
	text   string
}

// json decodes the body.
func (r reply) json(t testing.TB) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(r.text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("body of %d is not JSON: %v: %s", r.status, err, r.text)
	}
	return v
}

// do sends a request. The body is JSON text, or anything else to be encoded,
// or nil.
func (a *api) do(method, path string, body any) reply {
	a.t.Helper()
	r := a.request(method, path, body)
	w := httptest.NewRecorder()
	a.broker.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

func (a *api) request(method, path string, body any) *http.Request {
	a.t.Helper()
	var reader io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			a.t.Fatal(err)
		}
		reader = strings.NewReader(string(text))
	}
	r := httptest.NewRequestWithContext(a.t.Context(), method, path, reader)
	r.RemoteAddr = "" // in process, like Transport
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return r
}

type obj = map[string]any

// message is one popped message.
type message struct {
	ID, TransactionID, PartitionID, Partition, LeaseID, CreatedAt string
	TraceID                                                       *string
	Data                                                          json.RawMessage
	DeliveryAttempt                                               int
	Offset                                                        uint64
}

type popped struct {
	Queue, Partition, PartitionID, LeaseID, ConsumerGroup string
	Messages                                              []message
	PartitionsClaimed                                     int
}

// txns lists the transaction ids of a pop.
func (p popped) txns() string {
	ids := make([]string, len(p.Messages))
	for i, m := range p.Messages {
		ids[i] = m.TransactionID
	}
	return strings.Join(ids, " ")
}

// pop pops with everything a group would send; query is added.
func (a *api) pop(path, group, query string) popped {
	a.t.Helper()
	r := a.do("GET", "/api/v1/pop"+path+sep(path)+"consumerGroup="+group+"&subscriptionMode=all&"+query, nil)
	switch r.status {
	case http.StatusNoContent:
		if r.text != "" {
			a.t.Errorf("204 with a body: %q", r.text)
		}
		return popped{}
	case http.StatusOK:
	default:
		a.t.Fatalf("pop %s: %d %s", path, r.status, r.text)
	}
	var p popped
	if err := json.Unmarshal([]byte(r.text), &p); err != nil {
		a.t.Fatalf("pop %s: %v: %s", path, err, r.text)
	}
	return p
}

func sep(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// push pushes ids, each with itself as payload, and returns the verdicts.
func (a *api) push(queue, partition string, ids ...string) []string {
	a.t.Helper()
	items := make([]obj, len(ids))
	for i, id := range ids {
		items[i] = obj{"queue": queue, "partition": partition, "transactionId": id, "payload": obj{"id": id}}
	}
	r := a.do("POST", "/api/v1/push", obj{"items": items})
	if r.status != http.StatusCreated {
		a.t.Fatalf("push: %d %s", r.status, r.text)
	}
	var verdicts []struct{ Status string }
	if err := json.Unmarshal([]byte(r.text), &verdicts); err != nil {
		a.t.Fatal(err)
	}
	out := make([]string, len(verdicts))
	for i, v := range verdicts {
		out[i] = v.Status
	}
	return out
}

// numbered returns m1 … mn.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("m%d", i+1)
	}
	return ids
}

// verdict is one row of an ack answer.
type verdict struct {
	Success, Noop, LeaseReleased, DLQ bool
	Error                             *string
}

func (v verdict) String() string {
	switch {
	case v.Success && v.Noop:
		return "noop"
	case v.Success:
		return "ok"
	case v.Error != nil:
		return *v.Error
	}
	return "refused"
}

// ack acks messages of a pop as "m1 completed", "m2 failed", …
func (a *api) ack(p popped, group string, acks ...string) []string {
	a.t.Helper()
	return a.ackWith(p.LeaseID, p, group, acks...)
}

func (a *api) ackWith(lease string, p popped, group string, acks ...string) []string {
	a.t.Helper()
	items := make([]obj, len(acks))
	for i, text := range acks {
		items[i] = ackOf(lease, p.PartitionID, text)
	}
	r := a.do("POST", "/api/v1/ack/batch", obj{"consumerGroup": group, "acknowledgments": items})
	if r.status != http.StatusOK {
		a.t.Fatalf("ack: %d %s", r.status, r.text)
	}
	var verdicts []verdict
	if err := json.Unmarshal([]byte(r.text), &verdicts); err != nil {
		a.t.Fatal(err)
	}
	out := make([]string, len(verdicts))
	for i, v := range verdicts {
		out[i] = v.String()
	}
	return out
}

// ackOf builds an ack from "id status error".
func ackOf(lease, partition, text string) obj {
	parts := strings.SplitN(text, " ", 3)
	a := obj{"transactionId": parts[0], "partitionId": partition, "status": parts[1]}
	if len(parts) > 2 {
		a["error"] = parts[2]
	}
	if lease != "" {
		a["leaseId"] = lease
	}
	return a
}

// configure sets options of a queue.
func (a *api) configure(queue string, options obj) {
	a.t.Helper()
	if r := a.do("POST", "/api/v1/configure", obj{"queue": queue, "options": options}); r.status != http.StatusOK {
		a.t.Fatalf("configure: %d %s", r.status, r.text)
	}
}

// transact sends a transaction and returns its answer.
func (a *api) transact(body any) obj {
	a.t.Helper()
	r := a.do("POST", "/api/v1/transaction", body)
	if r.status != http.StatusOK {
		a.t.Fatalf("transaction: %d %s", r.status, r.text)
	}
	answer, ok := r.json(a.t).(obj)
	if !ok {
		a.t.Fatalf("transaction: %s", r.text)
	}
	return answer
}
