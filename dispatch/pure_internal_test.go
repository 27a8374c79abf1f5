package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	rollback := func(reason queen.RollbackReason, text string) error {
		return &queen.RollbackError{Status: 200, Reason: reason, Text: text, FailedIndex: -1}
	}
	status := func(code int) error { return &queen.StatusError{Status: code} }
	for _, tt := range []struct {
		name string
		err  error
		want refusal
	}{
		{"nil", nil, accepted},
		{"no answer", &queen.CallError{Sent: true, Err: errors.New("reset")}, indefinite},
		{"not sent", &queen.CallError{Err: errors.New("refused")}, indefinite},
		{"ended context", &queen.CallError{Err: context.Canceled}, indefinite},
		{"500", status(500), indefinite},
		{"503", status(503), indefinite},
		{"408", status(408), indefinite},
		{"429", status(429), indefinite},
		{"unreadable answer", &queen.BadBodyError{Err: errors.New("x")}, indefinite},
		{"unfitting answer", &queen.AnswerError{Text: "x"}, indefinite},
		{"rate limited", rollback(queen.RollbackRateLimited, ""), indefinite},
		{"db_error, misaligned, reserved, unavailable", rollback(queen.RollbackTransient, ""), indefinite},
		{"a word of a later Queen", rollback(queen.RollbackOther, ""), indefinite},
		{"401", status(401), operators},
		{"403", status(403), operators},
		{"404", status(404), operators},
		{"kv or timers off", rollback(queen.RollbackDisabled, ""), operators},
		{"timers ignored", &queen.TimersIgnoredError{Sent: 1}, timersGone},
		{"lease lost", rollback(queen.RollbackAckRejected, "QTXN ack lease invalid or expired"), leaseLost},
		{"id forgotten", rollback(queen.RollbackAckRejected, "QTXN ack references unknown transactionId x"), idForgotten},
		{"duplicate", rollback(queen.RollbackDuplicate, ""), duplicate},
		{"kv precondition", rollback(queen.RollbackKVPrecondition, ""), precondition},
		{"bad request", rollback(queen.RollbackBadRequest, ""), atFault},
		{"too large", rollback(queen.RollbackPayloadTooLarge, ""), atFault},
		{"too far", rollback(queen.RollbackTimerHorizon, ""), atFault},
		{"413", status(413), atFault},
		{"400", status(400), atFault},
	} {
		if got := classify(tt.err); got != tt.want {
			t.Errorf("classify(%s) = %d, want %d", tt.name, got, tt.want)
		}
	}
}

// of makes a settlement of some messages of one partition.
func of(partition string, messages int) *settlement {
	s := &settlement{lease: &lease{Lease: queen.Lease{ID: "l", Group: "g"}}, entries: make([]entry, messages)}
	for i := range s.entries {
		s.entries[i].ack = queen.Ack{PartitionID: partition, TransactionID: partition}
	}
	return s
}

func TestCulprit(t *testing.T) {
	t.Parallel()
	uuid := "0199a7c2-5e1b-7f3a-8c21-4d9e0b6a1f37"
	unit := []*settlement{of("4", 1), of("42", 1), of(uuid, 2), {lease: &lease{}}}
	for _, tt := range []struct {
		text string
		want int
	}{
		{"ack rejected: partition 42", 1},
		{"lease of " + uuid + " is not held.", 2},
		{"partition=4, group g", 0},
		{"4 of 42 acks", -1},
		{"partition 142", -1},
		{"invalid or expired lease", -1},
		{"", -1},
	} {
		if got := culprit(tt.text, unit); got != tt.want {
			t.Errorf("culprit(%q) = %d, want %d", tt.text, got, tt.want)
		}
	}
}

func TestWhoseCountWon(t *testing.T) {
	t.Parallel()
	count := func(by string) json.RawMessage {
		b, _ := json.Marshal(count{MessageID: "m", N: 2, FirstFailed: time.Unix(1, 0).UTC(), By: by})
		return b
	}
	mine, other := of("1", 2), of("2", 1)
	mine.kv, other.kv = &queen.KVOp{Value: count("mine")}, &queen.KVOp{Value: count("other")}
	unit := []*settlement{of("0", 3), mine, other}
	for _, tt := range []struct {
		name  string
		value string
		want  int
	}{
		{"ours, as Queen re-encodes it", `{"by": "mine", "id": "m", "n": 2, "first_failed": "1970-01-01T00:00:01Z"}`, 1},
		{"the other's", string(count("other")), 2},
		{"the same count by somebody else", string(count("stranger")), -1},
		{"none", "null", -1},
		{"nothing", "", -1},
		{"something else", `{"by":7}`, -1},
	} {
		if got := ours(json.RawMessage(tt.value), unit); got != tt.want {
			t.Errorf("ours(%s) = %d, want %d", tt.name, got, tt.want)
		}
	}
	// Six acks come first, then the two KV operations.
	for index, want := range map[int]int{5: -1, 6: 1, 7: 2, 8: -1, -1: -1} {
		if got := kvCulprit(index, unit); got != want {
			t.Errorf("kvCulprit(%d) = %d, want %d", index, got, want)
		}
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	timers := func(partition string, n int) *settlement {
		s := of(partition, n)
		for i := range s.entries {
			s.entries[i].timer = &queen.Timer{}
		}
		return s
	}
	heavy := of("h", 1)
	heavy.bytes = maxRiderBytes + 1
	counted := func(n int) []*settlement {
		all := make([]*settlement, n)
		for i := range all {
			all[i] = &settlement{lease: &lease{Lease: queen.Lease{Group: "g"}}, kv: &queen.KVOp{}}
		}
		return all
	}
	for _, tt := range []struct {
		name    string
		waiting []*settlement
		n       int
		full    bool
	}{
		{"one", []*settlement{timers("a", 3)}, 1, false},
		{"two fit", []*settlement{timers("a", 100), timers("b", 100)}, 2, false},
		{"exactly full", []*settlement{timers("a", 200), timers("b", 56)}, 2, true},
		{"third does not fit", []*settlement{timers("a", 200), timers("b", 50), timers("c", 7)}, 2, true},
		{"one too large goes alone", []*settlement{heavy, timers("b", 1)}, 1, true},
		{"a partition twice", []*settlement{timers("a", 1), timers("b", 1), timers("a", 1)}, 2, true},
		{"65 counts", counted(65), 64, true},
		{"63 counts", counted(63), 63, false},
	} {
		if n, full := pack(tt.waiting); n != tt.n || full != tt.full {
			t.Errorf("pack(%s) = %d, %v; want %d, %v", tt.name, n, full, tt.n, tt.full)
		}
	}
}

func TestVerdictOfAcks(t *testing.T) {
	t.Parallel()
	ok := queen.AckVerdict{Success: true}
	for _, tt := range []struct {
		text string
		want ackAnswer
	}{
		{"pool", ackAgain},
		{"ack flush failed; lease will expire and redeliver", ackAgain},
		{"invalid or expired lease", ackRefused},
		{"db error", ackRefused},
		{"consumer not found", ackRefused},
		{"transaction is unresolvable, already committed, or acknowledgment is stale", ackRefused}, // 2.x, lost leases too
		{"unresolvable: transaction not in the ack window", ackForgotten},
		{"", ackRefused},
	} {
		if got := verdictOf([]queen.AckVerdict{ok, {Error: tt.text}, ok}); got.answer != tt.want {
			t.Errorf("verdictOf(%q) = %d, want %d", tt.text, got.answer, tt.want)
		}
	}
	if got := verdictOf([]queen.AckVerdict{ok, {Success: true, Noop: true}}); got.answer != ackDone {
		t.Errorf("verdictOf(all well) = %d", got.answer)
	}
}

func TestVersionsThatFireLate(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"1.3.0": true, "1.5.1": true, "1.5.2-beta.1": true, "1.5": true, "1.5.2": false, "1.6.0": false, "2.0.0": false, "dev": false, "": false,
	} {
		if got := firesLate(queen.Health{Engine: "segments-rust", Version: version}); got != want {
			t.Errorf("firesLate(%s) = %v, want %v", version, got, want)
		}
	}
	if firesLate(queen.Health{Engine: "raft", Version: "1.3.0"}) || firesLate(queen.Health{}) {
		t.Error("another engine fires late")
	}
}

func TestRoomCountsWhatWaits(t *testing.T) {
	t.Parallel()
	l := newLimiter(100, nil)
	s := l.newShare(10, bridge.Target{Name: "fn"})
	s.adaptive.limit, s.max = 10, 10
	a, b := l.newClaim(s, 10, 1), l.newClaim(s, 4, 1)
	room := func(c *claim) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		n, _ := l.room(c, time.Now(), 1)
		return n
	}
	if room(a) != 10 || room(b) != 4 {
		t.Fatalf("room = %d, %d; want 10, 4", room(a), room(b))
	}
	var permits []permit
	for range 10 {
		got, err := l.acquire(t.Context(), a, 0)
		if err != nil {
			t.Fatal(err)
		}
		permits = append(permits, got)
	}
	if room(a) != 0 || room(b) != 0 {
		t.Errorf("room of a full target = %d, %d", room(a), room(b))
	}
	permits[0].release()
	l.expect(a, 1)
	if room(b) != 0 {
		t.Errorf("room = %d although the free slot is asked for", room(b))
	}
	l.expect(a, -1)
	if room(b) != 1 {
		t.Errorf("room = %d, want 1", room(b))
	}
	s.latency = 0.05 // calls of 50 ms: each slot makes two in 100 ms
	if room(a) != 21 {
		t.Errorf("room of a quick target = %d, want one free slot and 20 ahead", room(a))
	}
	s.latency = 0.001 // but many are not taken from other processes
	if room(a) != 1+fewAhead {
		t.Errorf("room of a very quick target = %d, want one free slot and %d ahead", room(a), fewAhead)
	}
	l.popped(a, a.maxUnset)
	if room(a) != 0 {
		t.Errorf("room = %d with nothing settled", room(a))
	}
}

func TestDetachedRetryOutlastsTheLastAttempt(t *testing.T) {
	t.Parallel()
	policy, problems := bridge.NewPolicy(bridge.Route{Retry: bridge.RetryPolicy{
		MaxAttempts: 1, MaxAge: time.Hour, Backoff: []time.Duration{5 * time.Second}, Jitter: "none",
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := &route{policy: policy}
	if got := r.backoff(1, time.Now()); got != 5*time.Second {
		t.Errorf("backoff of the last attempt = %v, want 5s", got)
	}
}

func TestSizeOfAVersionedTally(t *testing.T) {
	t.Parallel()
	c := count{MessageID: "m", N: 3, FirstFailed: time.Unix(1, 0).UTC(), By: "x"}
	op := (tally{version: 7}).put("k", c, time.Hour)
	if op.Expect == nil || *op.Expect != 7 || !op.Required || op.TTL != time.Hour {
		t.Errorf("put = %+v", op)
	}
	var back count
	if err := json.Unmarshal(op.Value, &back); err != nil || back != c {
		t.Errorf("value = %s, %v", op.Value, err)
	}
}
