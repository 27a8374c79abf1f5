package queen_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func ack(id string, status queen.AckStatus) queen.Ack {
	return queen.Ack{TransactionID: id, PartitionID: "pid", Lease: queen.Lease{ID: "L", Group: "g"}, Status: status}
}

func TestAckCarriesItsFence(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "ack", "ack one completed of five")
	v, err := c.Ack(t.Context(), ack("a", queen.AckCompleted))
	if err != nil || v != (queen.AckVerdict{Success: true}) {
		t.Fatalf("Ack() = %+v, %v", v, err)
	}
	want := `{"transactionId":"a","partitionId":"pid","leaseId":"L","consumerGroup":"g","status":"completed"}`
	if got := b.last(t); got.body != want || got.uri != "/api/v1/ack" || got.method != "POST" {
		t.Errorf("sent %s %s\n%s\nwant\n%s", got.method, got.uri, got.body, want)
	}
}

func TestAckBatchCarriesItsFence(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "ack", "ack batch ok failed ok ok ok")
	acks := []queen.Ack{ack("m1", queen.AckCompleted), ack("m2", queen.AckFailed), ack("m3", queen.AckCompleted), ack("m4", queen.AckRetry), ack("m5", queen.AckDLQ)}
	acks[1].Error = "a\x00b\xff\n"
	v, err := c.AckBatch(t.Context(), acks)
	if err != nil || len(v) != 5 || !v[4].Success {
		t.Fatalf("AckBatch() = %+v, %v", v, err)
	}
	want := `{"consumerGroup":"g","acknowledgments":[` +
		`{"transactionId":"m1","partitionId":"pid","leaseId":"L","status":"completed"},` +
		`{"transactionId":"m2","partitionId":"pid","leaseId":"L","status":"failed","error":"ab` + "\uFFFD" + `\u000a"},` +
		`{"transactionId":"m3","partitionId":"pid","leaseId":"L","status":"completed"},` +
		`{"transactionId":"m4","partitionId":"pid","leaseId":"L","status":"retry"},` +
		`{"transactionId":"m5","partitionId":"pid","leaseId":"L","status":"dlq"}]}`
	if got := b.last(t); got.body != want || got.uri != "/api/v1/ack/batch" {
		t.Errorf("sent %s\n%s\nwant\n%s", got.uri, got.body, want)
	}
}

func TestRecordedAckVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, name, id string
		want           queen.AckVerdict
		temporary      bool
	}{
		{file: "ack", name: "ack below the cursor is a noop", id: "a", want: queen.AckVerdict{Success: true, Noop: true}},
		{file: "ack", name: "nack below the cursor is refused", id: "b", want: queen.AckVerdict{Error: "already committed: the cursor moved past this message before this ack"}},
		{file: "ack", name: "ack with a wrong lease", id: "d", want: queen.AckVerdict{Error: "invalid or expired lease"}},
		{file: "errors", name: "ack unknown partition", id: "a", want: queen.AckVerdict{Error: "consumer not found"}},
		{file: "dlq", name: "dead-lettering a payload with NUL fails", id: "t1", want: queen.AckVerdict{Error: "db error"}},
		{file: "ack", name: "nack number 3 of retryLimit 2", id: "m1", want: queen.AckVerdict{Success: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := replaying(t, tt.file, tt.name)
			got, err := c.AckBatch(t.Context(), []queen.Ack{ack(tt.id, queen.AckDLQ)})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]queen.AckVerdict{tt.want}, got); d != "" {
				t.Error(d)
			}
			if got[0].Temporary() != tt.temporary {
				t.Errorf("Temporary() = %t", got[0].Temporary())
			}
		})
	}
	c, _ := replaying(t, "outage", "ack batch while away")
	got, err := c.AckBatch(t.Context(), []queen.Ack{ack("b1", queen.AckCompleted), ack("b2", queen.AckCompleted)})
	if err != nil || !got[0].Temporary() || got[1].Success {
		t.Errorf("AckBatch() while the database is away = %+v, %v; want temporary refusals", got, err)
	}
	c, _ = replaying(t, "ack", "ack of an unknown transactionId")
	v, err := c.Ack(t.Context(), ack("nope", queen.AckCompleted))
	if err != nil || v.Success || !v.Unresolvable() || v.Temporary() {
		t.Errorf("Ack() of an unknown id = %+v, %v; want unresolvable", v, err)
	}
}

func TestAckRefusesAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`[]`, `[{"transactionId":"other","success":true}]`, `[{"success":true},{"success":true}]`, `{"error":"x"}`, `[{"success":"yes"}]`} {
		c, _ := answering(t, 200, body)
		if v, err := c.Ack(t.Context(), ack("a", queen.AckCompleted)); err == nil || !queen.Uncertain(err) {
			t.Errorf("Ack() answered %s = %+v, %v", body, v, err)
		}
	}
}

func TestAckRefusesToGoUnfenced(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*queen.Ack){
		"no lease":     func(a *queen.Ack) { a.Lease.ID = "" },
		"no group":     func(a *queen.Ack) { a.Lease.Group = "" },
		"no partition": func(a *queen.Ack) { a.PartitionID = "" },
		"no status":    func(a *queen.Ack) { a.Status = "" },
		"a misspelt status, which 2.x takes for completed": func(a *queen.Ack) { a.Status = "Failed" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := answering(t, 200, `[{"success":true}]`)
			a := ack("a", queen.AckFailed)
			spoil(&a)
			_, err1 := c.Ack(t.Context(), a)
			_, err2 := c.AckBatch(t.Context(), []queen.Ack{a})
			_, err3 := queen.Transaction{Acks: []queen.Ack{a}}.Prepare()
			if err1 == nil || err2 == nil || err3 == nil || len(b.requests()) > 0 {
				t.Errorf("errors %v, %v, %v after %d requests", err1, err2, err3, len(b.requests()))
			}
		})
	}
}

// Acks of two groups, or of leases of two nodes, cannot share a call.
func TestAckBatchGoesToTheNodesOfItsLeases(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		_ = r.Write(body)
		n := strings.Count(body.String(), `"status"`)
		_, _ = w.Write([]byte("[" + strings.TrimSuffix(strings.Repeat(`{"success":true},`, n), ",") + "]"))
	}
	one, two := newBroker(t, echo), newBroker(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	c := client(t, queen.Config{URLs: []string{one.URL, two.URL}})
	acks := []queen.Ack{ack("a", queen.AckCompleted), ack("b", queen.AckCompleted), ack("c", queen.AckCompleted)}
	acks[0].Lease.Node, acks[1].Lease.Node, acks[2].Lease.Node = one.URL, two.URL, one.URL
	got, err := c.AckBatch(t.Context(), acks)
	if err == nil || !queen.Uncertain(err) {
		t.Errorf("error = %v; want the second node's", err)
	}
	want := []queen.AckVerdict{{Success: true}, {Error: "not answered"}, {Success: true}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(one.requests()) != 1 || len(two.requests()) != 1 || strings.Contains(one.last(t).body, `"b"`) {
		t.Errorf("sent %v and %v", one.requests(), two.requests())
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"extend two partitions": 2, "extend after one partition was acked": 1, "extend unknown lease": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := replaying(t, "lease", name)
			got, err := c.Extend(t.Context(), queen.Lease{ID: "L/1"}, 1500*time.Millisecond)
			if err != nil || got != want {
				t.Errorf("Extend() = %d, %v; want %d", got, err, want)
			}
			if s := b.last(t); s.method != "POST" || s.uri != "/api/v1/lease/L%2F1/extend" || s.body != `{"seconds":2}` {
				t.Errorf("sent %+v", s)
			}
		})
	}
	for _, body := range []string{`{}`, `{"success":true,"renewed":0}`, `{"success":false,"renewed":1}`, `{"success":true}`, `[]`, ``} {
		c, _ := answering(t, 200, body)
		if n, err := c.Extend(t.Context(), queen.Lease{ID: "L"}, time.Second); err == nil || !queen.Uncertain(err) {
			t.Errorf("Extend() answered %s = %d, %v", body, n, err)
		}
	}
	c, b := answering(t, 200, `{"success":false,"renewed":0}`)
	if _, err := c.Extend(t.Context(), queen.Lease{}, time.Second); err == nil || len(b.requests()) > 0 {
		t.Error("an extend without lease was sent")
	}
	if _, err := c.Extend(t.Context(), queen.Lease{ID: "L"}, -time.Second); err != nil || b.last(t).body != `{"seconds":1}` {
		t.Errorf("a negative extend sent %s, %v; want one second", b.last(t).body, err)
	}
	c, _ = answering(t, 500, `{"error":"pool"}`)
	var status *queen.StatusError
	if _, err := c.Extend(t.Context(), queen.Lease{ID: "L"}, time.Second); !errors.As(err, &status) || !queen.Temporary(err) {
		t.Errorf("error = %v", err)
	}
}
