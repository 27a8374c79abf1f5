package devbroker

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// far sends a request as a client at the other end of a connection does: its
// leases outlive the broker's process.
func far(t *testing.T, b *Broker, method, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.1:1"
	b.ServeHTTP(w, r)
	return w.Body.String()
}

// What conflates still does after a start: the group, and the lease it has out.
func TestConflationOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	const pop = "/api/v1/pop/queue/q?consumerGroup=g&subscriptionMode=all&leaseSeconds=60"
	send(t, b, "POST", "/api/v1/push", pushText("a", 1))
	send(t, b, "POST", "/api/v1/push", pushText("b", 1))
	got := far(t, b, "GET", pop+"&conflation=true", "")
	lease, part := textMember(got, "leaseId"), textMember(got, "partitionId")
	if !strings.Contains(got, `"transactionId":"b"`) || strings.Contains(got, `"transactionId":"a"`) {
		t.Fatalf("pop = %s, want the newest", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	ack := fmt.Sprintf(`{"transactionId":"b","partitionId":"%s","leaseId":"%s","consumerGroup":"g"}`, part, lease)
	if got := send(t, b, "POST", "/api/v1/ack", ack).Body.String(); !strings.Contains(got, `"conflated":1`) {
		t.Errorf("ack under the lease of before = %s, want one passed over", got)
	}
	send(t, b, "POST", "/api/v1/push", pushText("c", 1))
	send(t, b, "POST", "/api/v1/push", pushText("d", 1))
	if got := far(t, b, "GET", pop, ""); !strings.Contains(got, `"conflation":true`) || strings.Contains(got, `"transactionId":"c"`) {
		t.Errorf("pop of the group = %s, want the newest", got)
	}
}

// textMember reads a string member of an answer, its first.
func textMember(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// A claim that does not fit into an answer is given back, with all that it
// passes over.
func TestConflatedClaimIsGivenBackWhole(t *testing.T) {
	t.Parallel()
	b, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	for _, id := range []string{"a", "b", "c"} {
		send(t, b, "POST", "/api/v1/push", pushText(id, 1))
	}
	req := &popRequest{queue: "q", scope: scope{group: "g"}, batch: 1, partitions: 1, mode: "all", conflation: conflation{true, true}}
	b.mu.Lock()
	d := b.claim(req)
	b.mu.Unlock()
	b.shorten(d.lease, &d.claims[0], d.claims[0].from)
	b.mu.Lock()
	again := b.claim(req)
	b.mu.Unlock()
	if len(again.claims) != 1 || again.claims[0].from != 2 || again.claims[0].cursor.next != 0 {
		t.Errorf("the next claim = %+v, want the newest of three again", again.claims)
	}
}

// A compressed payload stays compressed until it fires, also over a start.
func TestZstdTimerOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	payload := base64.StdEncoding.EncodeToString(pack(t, []byte(`{"a": 1}`)))
	timer := func(delay int) string {
		return fmt.Sprintf(`[{"op":"schedule","queue":"q","timerKey":"k%d","partition":"p","delayMs":%d,"txn":"t","payload":"%s","payloadZstd":true}]`, delay, delay, payload)
	}
	send(t, b, "POST", "/api/v1/timers", timer(600_000))
	send(t, b, "POST", "/api/v1/timers", timer(300))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if got := send(t, b, "GET", "/api/v1/timers/q/k600000", "").Body.String(); !strings.Contains(got, payload) || !strings.Contains(got, `"payloadZstd":true`) {
		t.Errorf("peek = %s, want the compressed payload", got)
	}
	if got := send(t, b, "GET", "/api/v1/pop/queue/q?wait=true&timeout=5000", "").Body.String(); !strings.Contains(got, `"data":{"a": 1}`) {
		t.Errorf("pop = %s, want it unpacked", got)
	}
}

// What fires at once is bounded in bytes: the rest waits until that is stored.
func TestFiresAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	b := newBroker(Config{}) // nothing runs: the test is the clock
	if err := b.openStore(); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	const n = 40
	mint := newMinter(b.now())
	for i := range n {
		b.scheduleTimer(&timerOp{op: "schedule", queue: "q", key: fmt.Sprint(i), partition: "p", txn: "t", payload: make([]byte, maxTimerPayload)}, &mint)
	}
	rounds := 1
	for b.fireDue() {
		rounds++
	}
	if want := n * maxTimerPayload / fireBytes; rounds <= want-1 || b.st.pending.len() != 0 {
		t.Errorf("%d MiB fired in %d rounds with %d left, want %d rounds", n, rounds, b.st.pending.len(), want)
	}
}
