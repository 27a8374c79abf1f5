package dispatch_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

// Replies ride in the ack transaction, byte for byte though Queen encodes them
// again, and over a network that loses answers each is there once.
func TestRealReplies(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	r.Reply.Queue = r.Queue + ".answers"
	k.fn.answers(func(_ context.Context, c call) bridge.Response {
		return bridge.Response{Status: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("\x00\xff" + c.body + " 1e400 \\u0000")}
	})
	k.start(k.connect(0.1), r)
	sent := map[string]bool{}
	for i := range 30 {
		body := `{"n":` + string(rune('0'+i%10)) + `,"p":` + string(rune('0'+i/10)) + `}`
		sent["\x00\xff"+body+" 1e400 \\u0000"] = true
		k.push(r.Queue, string(rune('a'+i%3)), body)
	}
	k.until("all is done", 2*time.Minute, func() bool { return k.empty(r) })
	got := map[string]int{}
	k.until("every reply is read", time.Minute, func() bool {
		popped, err := k.client.Pop(k.Context(), queen.PopRequest{Queue: r.Reply.Queue, Group: "g", Batch: 100, Partitions: 10, Lease: time.Minute, SubscriptionMode: "all"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range popped.Messages {
			e, ours, err := bridge.DecodeEvent(m.Data)
			if err != nil || !ours || e.Source != r.Name {
				t.Fatalf("reply: %+v, %v", e, err)
			}
			got[string(e.Body)]++
		}
		return len(got) == len(sent)
	})
	for body, n := range got {
		if !sent[body] || n != 1 {
			t.Errorf("%d replies %q", n, body)
		}
	}
}

// A payload too large for a timer is read back from Queen for each attempt, and
// redriven.
func TestRealLargeEvent(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	r.Retry.Backoff, r.Retry.MaxAttempts = []time.Duration{time.Second}, 2
	for _, q := range managed(r) {
		if err := k.client.Configure(k.Context(), queen.QueueOptions{Queue: q.Name, Namespace: q.Namespace, Task: q.Task, Lease: q.Lease,
			RetryLimit: q.RetryLimit, DedupWindow: q.DedupWindow, Retention: q.Retention, CompletedRetention: q.CompletedRetention}); err != nil {
			t.Fatal(err)
		}
	}
	k.fn.statuses(500, 500, 500)
	k.start(k.client, r)
	payload, body := largeEvent("large", 3<<20)
	if _, err := k.client.Push(k.Context(), []queen.Item{{Queue: r.Queue, Partition: "p", TransactionID: "large", Payload: payload}}); err != nil {
		t.Fatal(err)
	}
	k.until("it is a dead letter", time.Minute, func() bool { return len(k.deadLetters(r)) == 1 && k.empty(r) })
	o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: k.client, Accepts: func(context.Context, string) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	page, err := o.DeadLetters(k.Context(), r.Name, dispatch.DeadLetterQuery{WithPayload: true})
	if err != nil || len(page.Letters) != 1 || !bytes.Equal(page.Letters[0].Payload, payload) {
		t.Fatalf("%d dead letters, %v", len(page.Letters), err)
	}
	if err := o.RedriveOne(k.Context(), r.Name, page.Letters[0].ID); err != nil {
		t.Fatal(err)
	}
	k.until("it is delivered", time.Minute, func() bool { return len(k.fn.all()) == 4 && k.empty(r) })
	if n := len(k.fn.of(body)); n != 4 || len(k.deadLetters(r)) != 0 {
		t.Errorf("%d calls with the exact body, %d dead letters", n, len(k.deadLetters(r)))
	}
}

// A waiting retry fires at once when an operator asks for it.
func TestRealRetryNow(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	r.Retry.Backoff = []time.Duration{time.Hour}
	k.fn.statuses(500)
	k.start(k.client, r)
	k.push(r.Queue, "p", `{"n":1}`)
	o, err := dispatch.NewOperator(dispatch.OperatorConfig{Queen: k.client, Accepts: func(context.Context, string) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	var page dispatch.RetryPage
	k.until("its retry waits", 40*time.Second, func() bool {
		page, err = o.Retries(k.Context(), r.Name, dispatch.RetryQuery{Details: true})
		return err == nil && len(page.Retries) == 1
	})
	if page.Retries[0].Attempt != 1 || page.Retries[0].Last.Status != 500 {
		t.Errorf("retry = %+v", page.Retries[0])
	}
	if err := o.RetryNow(k.Context(), r.Name, page.Retries[0].Key); err != nil {
		t.Fatal(err)
	}
	k.until("it is delivered", 40*time.Second, func() bool { return len(k.fn.all()) == 2 && k.empty(r) })
}
