package queentest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func popCases() []testCase {
	return []testCase{
		{name: "Pop/EmptyIs204WithoutBody", rule: "queen-contract.md §0, §4", run: popEmpty},
		{name: "Pop/Shape", rule: "queen-contract.md §4", run: popShape},
		{name: "Pop/BatchBoundsAllPartitions", rule: "queen-contract.md §4", run: popBatch},
		{name: "Pop/BatchBelowOneIsOne", rule: "queen-contract.md §4 (measured)", run: popBatchBelowOne},
		{name: "Pop/OnePartitionByDefault", rule: "queen-contract.md §4", run: popOnePartition},
		{name: "Pop/PartitionsBelowOneMeansAll", rule: "queen-contract.md §4", run: popAllPartitions, only: 1},
		{name: "Pop/PinnedTakesItsPartitionOnly", rule: "queen-contract.md §4", run: popPinned},
		{name: "Pop/OneLeasePerPartitionAndGroup", rule: "queen-contract.md §4.1 (measured)", run: popExclusive},
		{name: "Pop/GroupsAreIndependent", rule: "queen-contract.md §4.1", run: popGroups},
		{name: "Pop/LeaseCoversSeveralPartitions", rule: "queen-contract.md §4.1", run: popManyPartitions},
		{name: "Pop/LeaseSecondsBeatsTheQueue", rule: "queen-contract.md §4", run: popLeaseSeconds},
		{name: "Pop/QueueLeaseByDefault", rule: "queen-contract.md §4", run: popQueueLease},
		{name: "Pop/ExpiryRedeliversWithoutCharge", rule: "queen-contract.md §4.1", run: popExpiry},
		{name: "Pop/RedeliveredBatchMayGrow", rule: "queen-contract.md §4.1", run: popGrows},
		{name: "Pop/DiscoveryNeedsAScope", rule: "queen-contract.md §4", run: popNoScope},
		{name: "Pop/DiscoveryByNamespaceAndTask", rule: "queen-contract.md §4, §9.1", run: popDiscovery},
		{name: "Pop/DiscoveryObeysLeaseSeconds", rule: "queen-contract.md §4 (measured)", run: popDiscoveryLease},
		{name: "Pop/AutoAckLeasesNothing", rule: "queen-contract.md §4", run: popAutoAck},
		{name: "Pop/QueueModeIsAGroupThatStartsAtTheOldest", rule: "queen-contract.md §4.1", run: popQueueMode},
	}
}

func popEmpty(k *kit) {
	queue := k.queue()
	for _, path := range []string{"/api/v1/pop/queue/" + queue, "/api/v1/pop/queue/" + queue + "/partition/p", "/api/v1/pop?namespace=" + queue} {
		r := k.send("GET", path+sep(path)+"consumerGroup=g&subscriptionMode=all", nil)
		if r.status != 204 || len(r.body) > 0 || r.header.Get("Content-Type") != "" {
			k.Errorf("%s: %v, content type %q; want a bare 204", path, r, r.header.Get("Content-Type"))
		}
	}
}

func sep(path string) string {
	if u, err := url.Parse(path); err == nil && u.RawQuery != "" {
		return "&"
	}
	return "?"
}

func popShape(k *kit) {
	queue := k.queue()
	k.push(queue, "p 1", "a", "b")
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all&batch=10&leaseSeconds=30", nil), 200)
	k.has("answer", got, obj{"success": true, "queue": queue, "partition": "p 1", "consumerGroup": "g", "partitionsClaimed": 1.0}, "partitionId", "leaseId")
	messages, _ := got["messages"].(arr)
	if len(messages) != 2 {
		k.Fatalf("messages %v", messages)
	}
	first, _ := messages[0].(obj)
	k.has("message", first, obj{"transactionId": "a", "data": obj{"id": "a"}, "partition": "p 1", "partitionId": got["partitionId"],
		"leaseId": got["leaseId"], "consumerGroup": "g", "traceId": nil, "producerSub": nil}, "id", "createdAt")
	if _, err := time.Parse("2006-01-02T15:04:05.000000Z", fmt.Sprint(first["createdAt"])); err != nil {
		k.Errorf("createdAt: %v", err)
	}
}

func popBatch(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", numbered("a", 4)...)
	k.push(queue, "p2", numbered("b", 4)...)
	p := k.pop(queue, batch(6), partitions(10))
	k.same("messages", len(p.Messages), 6)
	p = k.pop(queue, batch(6), partitions(10), group("other"), pinned("p1"))
	k.same("messages of a pinned pop", ids(p), numbered("a", 4))
}

func popBatchBelowOne(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a", "b")
	for i, n := range []string{"0", "-1"} {
		got := k.object(k.send("GET", fmt.Sprintf("/api/v1/pop/queue/%s?consumerGroup=g%d&subscriptionMode=all&batch=%s", queue, i, n), nil), 200)
		k.same("messages of batch "+n, len(got["messages"].(arr)), 1)
	}
}

func popOnePartition(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", "a")
	k.push(queue, "p2", "b")
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all&batch=10", nil), 200)
	k.same("messages", len(got["messages"].(arr)), 1)
}

func popAllPartitions(k *kit) {
	queue := k.queue()
	for i := range 20 {
		k.push(queue, fmt.Sprint("p", i), fmt.Sprint("m", i))
	}
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all&batch=100&partitions=0", nil), 200)
	k.same("messages", len(got["messages"].(arr)), 20)
}

func popPinned(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", "a")
	k.push(queue, "p2", "b")
	k.popIDs(queue, []string{"b"}, pinned("p2"))
	k.none(queue, pinned("p2"))
	k.none(queue, pinned("unknown"))
	k.popIDs(queue, []string{"a"})
}

func popExclusive(k *kit) {
	queue := k.queue()
	k.push(queue, "p", numbered("m", 5)...)
	var mu sync.Mutex
	got := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p, err := k.client.Pop(k.Context(), request(queue, batch(1)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				k.Error(err)
			}
			got += len(p.Messages)
		})
	}
	wg.Wait()
	k.same("messages of eight pops at once", got, 1)
	k.none(queue, pinned("p"))
}

func popGroups(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	k.ack(k.popIDs(queue, []string{"a"}), completed)
	k.none(queue)
	k.popIDs(queue, []string{"a"}, group("h"))
}

func popManyPartitions(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", "a1", "a2")
	k.push(queue, "p2", "b1", "b2")
	p := k.pop(queue, partitions(10))
	k.same("messages", len(p.Messages), 4)
	at := func(partition string) queen.Popped {
		one := queen.Popped{Lease: p.Lease}
		for _, m := range p.Messages {
			if m.Partition == partition {
				one.Messages = append(one.Messages, m)
			}
		}
		return one
	}
	k.renewed(p.Lease, 60*time.Second, 2)
	k.ack(at("p1"), completed, completed)
	k.renewed(p.Lease, 60*time.Second, 1)
	k.refused("ack of the released partition", acks(at("p1"), completed))
	k.ack(at("p2"), completed, failed)
	k.renewed(p.Lease, 60*time.Second, 0)
	k.popIDs(queue, []string{"b2"})
}

func popLeaseSeconds(k *kit) {
	queue := k.queue(func(o *queen.QueueOptions) { o.Lease = time.Hour })
	k.push(queue, "p", "a")
	k.popIDs(queue, []string{"a"}, lease(4*time.Second))
	k.none(queue)
	k.popIDs(queue, []string{"a"})
}

func popQueueLease(k *kit) {
	queue := k.queue(func(o *queen.QueueOptions) { o.Lease = 4 * time.Second })
	k.push(queue, "p", "a")
	k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all", nil), 200)
	k.none(queue)
	k.popIDs(queue, []string{"a"})
}

func popExpiry(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a")
	for range 3 {
		k.popIDs(queue, []string{"a"}, lease(time.Second))
	}
	k.ack(k.popIDs(queue, []string{"a"}), failed) // the one redelivery the limit allows
	k.popIDs(queue, []string{"a"})
}

func popGrows(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	k.popIDs(queue, []string{"a"}, lease(4*time.Second))
	k.push(queue, "p", "b")
	k.popIDs(queue, []string{"a", "b"})
}

func popNoScope(k *kit) {
	got := k.object(k.send("GET", "/api/v1/pop?consumerGroup=g", nil), 400)
	k.has("answer", got, obj{"success": false, "error": "namespace or task is required"})
}

func popDiscovery(k *kit) {
	namespace := unique("ns-a")
	k.push(namespace+".one", "p", "a") // creates the queue, names its namespace and task
	k.push(namespace+".two", "p", "b")
	p := k.popIDs("", []string{"a"}, discovery(namespace, "one"), partitions(10))
	k.ack(p, completed)
	k.gone(namespace+".one", "g")
	k.none("", discovery(namespace, "one"))
	got := k.pop("", discovery(namespace, ""), partitions(10), group("h"))
	names := ids(got)
	slices.Sort(names)
	k.same("both queues of the namespace", names, []string{"a", "b"})
}

func popDiscoveryLease(k *kit) {
	namespace := unique("ns")
	k.push(namespace+".t", "p", "a")
	k.popIDs("", []string{"a"}, discovery(namespace, "t"), lease(4*time.Second))
	k.none("", discovery(namespace, "t"))
	k.popIDs("", []string{"a"}, discovery(namespace, "t"))
}

func popAutoAck(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a", "b")
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all&batch=1&autoAck=true", nil), 200)
	k.has("answer", got, obj{"leaseId": ""})
	k.popIDs(queue, []string{"b"})
}

func popQueueMode(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?subscriptionMode=new&batch=10", nil), 200)
	k.has("answer", got, obj{"consumerGroup": "__QUEUE_MODE__"})
	k.same("messages", len(got["messages"].(arr)), 1)
}

// renewed extends a lease and checks how many partitions it still holds.
func (k *kit) renewed(l queen.Lease, d time.Duration, want int) {
	k.Helper()
	got, err := k.client.Extend(k.Context(), l, d)
	k.must(err)
	k.same("partitions renewed", got, want)
}

func wakeCases() []testCase {
	rule := "queen-contract.md §4.1 (measured)"
	return []testCase{
		{name: "LongPoll/EndsAtItsTimeout", rule: rule, run: wakeTimeout},
		{name: "LongPoll/WokenByPush", rule: rule, run: wakePush},
		{name: "LongPoll/WokenByNack", rule: rule, run: func(k *kit) { wakeAck(k, failed) }},
		{name: "LongPoll/WokenByRetry", rule: rule, run: func(k *kit) { wakeAck(k, retry) }},
		{name: "LongPoll/WokenByAckWithMorePending", rule: rule, run: wakeAckMore},
		{name: "LongPoll/WokenByLeaseExpiry", rule: rule, run: wakeExpiry},
		{name: "LongPoll/WokenByTransactionPush", rule: rule, run: wakeTransaction},
		{name: "LongPoll/DiscoveryWaitsToo", rule: rule, run: wakeDiscovery, only: 1}, // Generation2/PopBounds: it does not
		{name: "LongPoll/AbandonedOneTakesNothing", rule: rule, run: wakeAbandoned},
	}
}

func wakeTimeout(k *kit) {
	start := time.Now()
	k.none(k.queue(), waiting(time.Second))
	d := time.Since(start)
	if k.inTime("a wait of 1 s", d, 3*time.Second); d < 990*time.Millisecond {
		k.Errorf("a wait of 1 s took %v", d)
	}
}

// prompt is the bound of a wake: 1.3.0 took 16 to 65 ms, its fallback poll a
// second.
const prompt = 900 * time.Millisecond

// parked starts a long poll and waits for its end after event.
func (k *kit) parked(r queen.PopRequest, want []string, event func()) {
	k.Helper()
	r.Wait = 10 * time.Second
	type result struct {
		p   queen.Popped
		err error
		at  time.Time
	}
	done := make(chan result, 1)
	go func() {
		p, err := k.client.Pop(k.Context(), r)
		done <- result{p, err, time.Now()}
	}()
	select { // long enough to be parked, and for a wrong early answer to show
	case early := <-done:
		k.Fatalf("the parked pop ended before the event: %v, %v", ids(early.p), early.err)
	case <-time.After(300 * time.Millisecond):
	}
	start := time.Now()
	event()
	got := <-done
	k.must(got.err)
	k.same("messages", ids(got.p), want)
	k.inTime("waking a parked pop", got.at.Sub(start), prompt)
}

func wakePush(k *kit) {
	queue := k.queue()
	k.parked(request(queue), []string{"a"}, func() { k.push(queue, "p", "a") })
}

func wakeAck(k *kit, status queen.AckStatus) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"})
	k.parked(request(queue), []string{"a"}, func() { k.ack(p, status) })
}

func wakeAckMore(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a", "b")
	p := k.popIDs(queue, []string{"a"}, batch(1))
	k.parked(request(queue), []string{"b"}, func() { k.ack(p, completed) })
}

func wakeExpiry(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	k.popIDs(queue, []string{"a"})
	d := time.Since(p.Asked)
	if k.inTime("the redelivery after a lease of 1 s", d, 2500*time.Millisecond); d < 990*time.Millisecond {
		k.Errorf("a lease of 1 s came again after %v", d)
	}
}

func wakeTransaction(k *kit) {
	queue := k.queue()
	k.parked(request(queue), []string{"a"}, func() {
		k.commit(queen.Transaction{Pushes: []queen.Item{{Queue: queue, Partition: "p", TransactionID: "a", Payload: []byte(`1`)}}})
	})
}

func wakeDiscovery(k *kit) {
	namespace := unique("ns")
	r := request("", discovery(namespace, "t"))
	r.Wait = patience
	done := make(chan queen.Popped, 1)
	go func() {
		p, err := k.client.Pop(k.Context(), r)
		if err != nil {
			k.Error(err)
		}
		done <- p
	}()
	k.push(namespace+".t", "p", "a")
	k.same("messages", ids(<-done), []string{"a"})
}

func wakeAbandoned(k *kit) {
	queue := k.queue()
	ctx, cancel := context.WithCancel(k.Context())
	done := make(chan error, 1)
	go func() {
		_, err := k.client.Pop(ctx, request(queue, waiting(30*time.Second)))
		done <- err
	}()
	select {
	case err := <-done:
		k.Fatalf("the pop ended early: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		k.Fatalf("the abandoned pop ended with %v", err)
	}
	k.eventually("the broker noticed, and the message comes at once", func() bool {
		id := unique("m")
		k.push(queue, "p", id)
		p := k.tryPop(queue, waiting(300*time.Millisecond))
		return slices.Contains(ids(p), id)
	})
}
