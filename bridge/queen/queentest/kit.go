package queentest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// kit is what a case works with.
type kit struct {
	*testing.T
	*suite
	late []string // what took longer than it may
}

type (
	obj = map[string]any
	arr = []any
)

// unique makes a name nobody else uses.
func unique(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:10]) }

// patience is how long a case waits for something that must happen.
const patience = 20 * time.Second

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// same compares what was seen with the rule.
func (k *kit) same(what string, got, want any) {
	k.Helper()
	if d := cmp.Diff(want, got); d != "" {
		k.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// has checks some fields of an object and that others are there at all.
func (k *kit) has(what string, got, want obj, present ...string) {
	k.Helper()
	for name, value := range want {
		if d := cmp.Diff(value, got[name]); d != "" {
			k.Errorf("%s, %s (-want +got):\n%s", what, name, d)
		}
	}
	for _, name := range present {
		if _, ok := got[name]; !ok {
			k.Errorf("%s: no field %s in %v", what, name, got)
		}
	}
}

// queue configures a queue of the case's own. Options not set are: lease 30 s,
// retry limit 3, dedup window one hour.
func (k *kit) queue(change ...func(*queen.QueueOptions)) string {
	k.Helper()
	o := queen.QueueOptions{Queue: unique("q"), Lease: 30 * time.Second, RetryLimit: 3, DedupWindow: time.Hour}
	for _, c := range change {
		c(&o)
	}
	k.must(k.client.Configure(k.Context(), o))
	return o.Queue
}

func retryLimit(n int) func(*queen.QueueOptions) {
	return func(o *queen.QueueOptions) { o.RetryLimit = n }
}

func dedup(d time.Duration) func(*queen.QueueOptions) {
	return func(o *queen.QueueOptions) { o.DedupWindow = d }
}

// push stores messages with these ids into one partition; each must be queued.
func (k *kit) push(queue, partition string, ids ...string) {
	k.Helper()
	verdicts := k.tryPush(queue, partition, ids...)
	for i, id := range ids {
		if verdicts[i].Status != queen.PushQueued {
			k.Fatalf("push of %s: %+v", id, verdicts[i])
		}
	}
}

func (k *kit) tryPush(queue, partition string, ids ...string) []queen.PushVerdict {
	k.Helper()
	items := make([]queen.Item, len(ids))
	for i, id := range ids {
		payload, err := json.Marshal(obj{"id": id})
		k.must(err)
		items[i] = queen.Item{Queue: queue, Partition: partition, TransactionID: id, Payload: payload}
	}
	verdicts, err := k.client.Push(k.Context(), items)
	k.must(err)
	return verdicts
}

// request is the pop of a case that does not say otherwise.
func request(queue string, change ...func(*queen.PopRequest)) queen.PopRequest {
	r := queen.PopRequest{Queue: queue, Group: "g", Batch: 100, Partitions: 1, Lease: 30 * time.Second, SubscriptionMode: "all"}
	for _, c := range change {
		c(&r)
	}
	return r
}

func group(name string) func(*queen.PopRequest)     { return func(r *queen.PopRequest) { r.Group = name } }
func batch(n int) func(*queen.PopRequest)           { return func(r *queen.PopRequest) { r.Batch = n } }
func partitions(n int) func(*queen.PopRequest)      { return func(r *queen.PopRequest) { r.Partitions = n } }
func lease(d time.Duration) func(*queen.PopRequest) { return func(r *queen.PopRequest) { r.Lease = d } }
func pinned(partition string) func(*queen.PopRequest) {
	return func(r *queen.PopRequest) { r.Partition = partition }
}
func waiting(d time.Duration) func(*queen.PopRequest) {
	return func(r *queen.PopRequest) { r.Wait = d }
}
func subscribe(mode string) func(*queen.PopRequest) {
	return func(r *queen.PopRequest) { r.SubscriptionMode = mode }
}
func discovery(namespace, task string) func(*queen.PopRequest) {
	return func(r *queen.PopRequest) { r.Queue, r.Namespace, r.Task = "", namespace, task }
}

// pop waits for messages, which must come. A discovery of 2.x does not wait
// (queen-contract.md §4): it is repeated.
func (k *kit) pop(queue string, change ...func(*queen.PopRequest)) queen.Popped {
	k.Helper()
	p := k.tryPop(queue, append(change, waiting(patience))...)
	if queue == "" && len(p.Messages) == 0 {
		k.eventually("a discovery finds something", func() bool { p = k.tryPop(queue, change...); return len(p.Messages) > 0 })
	}
	if len(p.Messages) == 0 {
		k.Fatalf("pop of %s: nothing within %v", queue, patience)
	}
	return p
}

// tryPop pops once.
func (k *kit) tryPop(queue string, change ...func(*queen.PopRequest)) queen.Popped {
	k.Helper()
	p, err := k.client.Pop(k.Context(), request(queue, change...))
	k.must(err)
	return p
}

// none checks that there is nothing to pop now.
func (k *kit) none(queue string, change ...func(*queen.PopRequest)) {
	k.Helper()
	if p := k.tryPop(queue, change...); len(p.Messages) > 0 {
		k.Errorf("pop of %s: %v, want nothing", queue, ids(p))
	}
}

// gone checks that a group has consumed a queue.
func (k *kit) gone(queue, group string) {
	k.Helper()
	n, err := k.client.Depth(k.Context(), queue, group)
	k.must(err)
	if n != 0 {
		k.Errorf("%d messages of %s are still pending for %s", n, queue, group)
	}
}

func ids(p queen.Popped) []string {
	out := make([]string, len(p.Messages))
	for i, m := range p.Messages {
		out[i] = m.TransactionID
	}
	return out
}

// popIDs pops and checks which messages came.
func (k *kit) popIDs(queue string, want []string, change ...func(*queen.PopRequest)) queen.Popped {
	k.Helper()
	p := k.pop(queue, change...)
	k.same("messages popped", ids(p), want)
	if k.Failed() {
		k.FailNow()
	}
	return p
}

// acks settles the messages of a pop in order; "" leaves one out.
func acks(p queen.Popped, statuses ...queen.AckStatus) []queen.Ack {
	var out []queen.Ack
	for i, s := range statuses {
		if s != "" {
			m := p.Messages[i]
			out = append(out, queen.Ack{TransactionID: m.TransactionID, PartitionID: m.PartitionID, Lease: p.Lease, Status: s})
		}
	}
	return out
}

// every settles all messages of a pop alike.
func every(p queen.Popped, s queen.AckStatus) []queen.Ack {
	statuses := make([]queen.AckStatus, len(p.Messages))
	for i := range statuses {
		statuses[i] = s
	}
	return acks(p, statuses...)
}

// ack settles and expects every verdict to be a success.
func (k *kit) ack(p queen.Popped, statuses ...queen.AckStatus) {
	k.Helper()
	for i, v := range k.tryAck(acks(p, statuses...)) {
		if !v.Success {
			k.Fatalf("ack %d: %+v", i, v)
		}
	}
}

// complete settles all messages of a pop as completed.
func (k *kit) complete(p queen.Popped) {
	k.Helper()
	for i, v := range k.tryAck(every(p, completed)) {
		if !v.Success {
			k.Fatalf("ack %d: %+v", i, v)
		}
	}
}

func (k *kit) tryAck(acks []queen.Ack) []queen.AckVerdict {
	k.Helper()
	v, err := k.client.AckBatch(k.Context(), acks)
	k.must(err)
	return v
}

// refused checks that every ack is refused.
func (k *kit) refused(what string, acks []queen.Ack) {
	k.Helper()
	for i, v := range k.tryAck(acks) {
		if v.Success {
			k.Errorf("%s: ack %d is accepted: %+v", what, i, v)
		}
	}
}

// eventually tries until the event has come.
func (k *kit) eventually(what string, happened func() bool) {
	k.Helper()
	k.within(patience, what, happened)
}

// within is eventually with a bound of its own.
func (k *kit) within(bound time.Duration, what string, happened func() bool) {
	k.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(bound); ; <-tick.C {
		if happened() {
			return
		}
		if time.Now().After(end) {
			k.Fatalf("%s: not within %v", what, bound)
		}
	}
}

// inTime notes what took too long: the case is then run again, and fails where
// it does each time.
func (k *kit) inTime(what string, took, bound time.Duration) {
	if took > bound {
		k.late = append(k.late, fmt.Sprintf("%s took %v, at most %v was allowed", what, took, bound))
	}
}

// until waits for a time: the expiry of something that nothing announces.
func (k *kit) until(at time.Time) {
	k.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-k.Context().Done():
		k.Fatal(k.Context().Err())
	}
}

// numbered makes ids prefix1 to prefixN.
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i+1)
	}
	return out
}

const (
	completed = queen.AckCompleted
	failed    = queen.AckFailed
	retry     = queen.AckRetry
	dlq       = queen.AckDLQ
)
