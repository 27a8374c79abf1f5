package devbroker_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The worked examples of queen-contract.md §5.2: five messages delivered, then
// acks, then what the next pop gives.
func TestAckWorkedExamples(t *testing.T) {
	t.Parallel()
	const expired = "invalid or expired lease"
	tests := []struct {
		name  string
		calls []string // each: acks separated by commas; a leading ! sends no lease
		want  []string // verdicts of each call
		next  string   // what a pop gives then
	}{
		{"the last acks all", []string{"m5 completed"}, []string{"ok"}, ""},
		{"all five", []string{"m1 completed,m2 completed,m3 completed,m4 completed,m5 completed"}, []string{"ok ok ok ok ok"}, ""},
		{"a later ack settles the earlier", []string{"m3 completed", "m1 completed", "m2 failed"},
			[]string{"ok", "noop", "already committed: the cursor moved past this message before this ack"}, ""},
		{"a lone nack below leaves all", []string{"m2 failed"}, []string{"ok"}, "m1 m2 m3 m4 m5"},
		{"a nack ends the lease", []string{"m2 failed", "m3 completed"}, []string{"ok", expired}, "m1 m2 m3 m4 m5"},
		{"a lease-less ack passes the nack", []string{"m2 failed", "!m3 completed"}, []string{"ok", "ok"}, "m4 m5"},
		{"ok failed ok ok ok", []string{"m1 completed,m2 failed,m3 completed,m4 completed,m5 completed"}, []string{"ok ok ok ok ok"}, "m2 m3 m4 m5"},
		{"in any order", []string{"m5 completed,m4 completed,m2 failed,m3 completed,m1 completed"}, []string{"ok ok ok ok ok"}, "m2 m3 m4 m5"},
		{"ok retry", []string{"m1 completed,m2 retry"}, []string{"ok ok"}, "m2 m3 m4 m5"},
		{"dlq ends the batch", []string{"m1 completed,m2 dlq,m3 completed,m4 completed,m5 completed"}, []string{"ok ok ok ok ok"}, "m3 m4 m5"},
		{"dlq last is complete", []string{"m1 completed,m5 dlq", "m5 dlq"}, []string{"ok ok", expired}, ""},
		{"five dlq file one", []string{"m1 dlq,m2 dlq,m3 dlq,m4 dlq,m5 dlq"}, []string{"ok ok ok ok ok"}, "m2 m3 m4 m5"},
		{"an unknown id", []string{"nope completed,m1 completed"}, []string{
			"unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the message redelivers ok"}, ""},
		{"a partial ack keeps the lease", []string{"m2 completed"}, []string{"ok"}, ""},
		{"any other word is failed", []string{"m1 FAILED"}, []string{"ok"}, "m1 m2 m3 m4 m5"},
		{"other words for completed", []string{"m1 success,m2 acked,m3 ok,m4 completed,m5 completed"}, []string{"ok ok ok ok ok"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := memory(t)
			a.push("q", "p", numbered(5)...)
			p := a.pop("/queue/q", "g", "batch=5")
			for i, call := range tt.calls {
				lease := p.LeaseID
				if rest, ok := strings.CutPrefix(call, "!"); ok {
					lease, call = "", rest
				}
				got := strings.Join(a.ackWith(lease, p, "g", strings.Split(call, ",")...), " ")
				if got != tt.want[i] {
					t.Errorf("ack(%s) = %q, want %q", call, got, tt.want[i])
				}
			}
			if got := a.pop("/queue/q", "g", "batch=5").txns(); got != tt.next {
				t.Errorf("next pop = %q, want %q", got, tt.next)
			}
		})
	}
}

// retryLimit N is N+1 deliveries; the budget belongs to the partition; retry
// and expiry do not charge it.
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options obj
		acks    []string
		dead    int
		left    string
	}{
		{"limit 2: the third nack buries", obj{"retryLimit": 2}, []string{"m1 failed", "m1 failed", "m1 failed boom"}, 1, "m2"},
		{"limit 0: the first", obj{"retryLimit": 0}, []string{"m1 failed"}, 1, "m2"},
		{"retry is free", obj{"retryLimit": 0}, []string{"m1 retry", "m1 retry", "m1 retry"}, 0, "m1 m2"},
		{"both flags off: dropped", obj{"retryLimit": 0, "deadLetterQueue": false, "dlqAfterMaxRetries": false}, []string{"m1 failed"}, 0, "m2"},
		{"one flag on: buried", obj{"retryLimit": 0, "deadLetterQueue": false, "dlqAfterMaxRetries": true}, []string{"m1 failed"}, 1, "m2"},
		{"dlq ignores the flags", obj{"retryLimit": 9, "deadLetterQueue": false, "dlqAfterMaxRetries": false}, []string{"m1 dlq"}, 1, "m2"},
		{"a burial resets", obj{"retryLimit": 1}, []string{"m1 failed", "m1 failed", "m2 failed"}, 1, "m2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := memory(t)
			a.configure("q", tt.options)
			a.push("q", "p", "m1", "m2")
			for _, ack := range tt.acks {
				p := a.pop("/queue/q", "g", "batch=10")
				if got := a.ack(p, "g", ack); got[0] != "ok" {
					t.Fatalf("ack(%s) = %v", ack, got)
				}
			}
			dead := a.do("GET", "/api/v1/dlq?queue=q", nil).json(t).(obj)["messages"].([]any)
			if len(dead) != tt.dead {
				t.Errorf("dead letters = %v, want %d", dead, tt.dead)
			}
			if got := a.pop("/queue/q", "g", "batch=10").txns(); got != tt.left {
				t.Errorf("left = %q, want %q", got, tt.left)
			}
		})
	}
}

// A batch completed in several calls resets the counter, one full-batch ack
// does not (measured 1.3.0).
func TestFullBatchAckKeepsRetryCounter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		calls [][]string
		dead  int
	}{
		{"one call", [][]string{{"m1 completed", "m2 completed"}}, 1},
		{"two calls", [][]string{{"m1 completed"}, {"m2 completed"}}, 0},
		{"the last alone", [][]string{{"m2 completed"}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := memory(t)
			a.configure("q", obj{"retryLimit": 1})
			a.push("q", "p", "m1", "m2")
			a.ack(a.pop("/queue/q", "g", ""), "g", "m1 failed")
			p := a.pop("/queue/q", "g", "")
			for _, call := range tt.calls {
				a.ack(p, "g", call...)
			}
			a.push("q", "p", "m3")
			a.ack(a.pop("/queue/q", "g", ""), "g", "m3 failed")
			dead := a.do("GET", "/api/v1/dlq", nil).json(t).(obj)["messages"].([]any)
			if len(dead) != tt.dead {
				t.Errorf("after m3 failed once: %d dead letters, want %d", len(dead), tt.dead)
			}
		})
	}
}

func TestAckIdTwiceInBatch(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.configure("q", obj{"dedupWindowSeconds": 0})
	for _, id := range []string{"x", "y", "x"} {
		a.push("q", "p", id)
	}
	p := a.pop("/queue/q", "g", "batch=3")
	answer := a.transact(obj{"operations": []obj{
		merge(ackOf(p.LeaseID, p.PartitionID, "x completed"), obj{"type": "ack", "consumerGroup": "g"}),
		merge(ackOf(p.LeaseID, p.PartitionID, "y completed"), obj{"type": "ack", "consumerGroup": "g"}),
		merge(ackOf(p.LeaseID, p.PartitionID, "x completed"), obj{"type": "ack", "consumerGroup": "g"}),
	}})
	if answer["success"] != true {
		t.Fatalf("transaction = %v", answer)
	}
	if got := a.pop("/queue/q", "g", "").txns(); got != "" {
		t.Errorf("pop = %q, want nothing: the lease stays, the last x is not acked", got)
	}
	if got := a.ack(p, "g", "x retry"); got[0] != "ok" {
		t.Errorf("retry of the last x = %v", got)
	}
	if got := a.pop("/queue/q", "g", "").txns(); got != "x" {
		t.Errorf("pop = %q, want the last x", got)
	}
}

func TestPlainFullBatchAckIsByPosition(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.configure("q", obj{"dedupWindowSeconds": 0})
	for _, id := range []string{"x", "y", "x"} {
		a.push("q", "p", id)
	}
	p := a.pop("/queue/q", "g", "batch=3")
	if got := a.ack(p, "g", "x completed", "y completed", "x completed"); !cmp.Equal(got, []string{"ok", "ok", "ok"}) {
		t.Errorf("ack = %v", got)
	}
	if got := a.do("GET", "/api/v1/resources/queues/q/depth?group=g", nil).json(t).(obj)["pending"]; got != num(0) {
		t.Errorf("pending = %v, want 0", got)
	}
}

func TestAckRefusals(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.push("q", "p", "m1")
	p := a.pop("/queue/q", "g", "")
	other := popped{PartitionID: "22622f9a-69e8-4c70-9ff1-4c4d8647cf50"}
	for _, tt := range []struct {
		name, group, want string
		p                 popped
		lease             string
	}{
		{"another lease", "g", "invalid or expired lease", p, "b3eb674c-e192-4ba3-a2dc-e6f0f1c4e13e"},
		{"another group", "h", "consumer not found", p, p.LeaseID},
		{"another partition", "g", "consumer not found", other, p.LeaseID},
		{"no partition", "g", "db error", popped{}, p.LeaseID},
		{"garbage", "g", "db error", popped{PartitionID: "zz"}, p.LeaseID},
	} {
		if got := a.ackWith(tt.lease, tt.p, tt.group, "m1 completed"); got[0] != tt.want {
			t.Errorf("ack with %s = %q, want %q", tt.name, got[0], tt.want)
		}
	}
}
