package queentest

import (
	"errors"
	"fmt"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func fireCases() []testCase {
	return []testCase{
		{name: "Fire/IsAPushAndADelete", rule: "queen-contract.md §9.1", run: fireOnce},
		{name: "Fire/NotBeforeItsTime", rule: "queen-contract.md §9.1", run: fireNotBefore},
		{name: "Fire/WithinTwoSeconds", rule: "queen-contract.md §9.1 (measured, with the cure)", run: firePrompt},
		{name: "Fire/SkipsDedup", rule: "queen-contract.md §9.1", run: fireSkipsDedup, only: 1},
		{name: "Fire/LaterPushIsDuplicate", rule: "queen-contract.md §9.1", run: fireThenPush},
		{name: "Fire/SameKeyAgainAfterDelivery", rule: "queen-real-1.3.md, finding 8 (measured)", run: fireAgain, only: 1},
		{name: "Fire/InDueOrder", rule: "queen-contract.md §9.1", run: fireOrder},
		{name: "Fire/CancelledNever", rule: "queen-contract.md §9", run: fireCancelled},
		{name: "Fire/CreatesItsQueue", rule: "queen-contract.md §9.1 (measured)", run: fireCreatesQueue},
		{name: "Fire/DiscoveryKeepsRoutesApart", rule: "queen-contract.md §9.1 (measured)", run: fireApart},
		{name: "Fire/QueueScopedPopIsWoken", rule: "queen-contract.md §14", run: fireWakes},
		{name: "Fire/AfterItsQueueWasDeleted", rule: "queen-contract.md §2.2 (measured)", run: fireDeletedQueue},
		{name: "Fire/NonJSONPayloadSpoilsThePop", rule: "queen-contract.md §9.1 (measured)", run: fireNonJSON},
		{name: "Fire/Many", rule: "queen-contract.md §9.1 (measured)", run: fireMany},
	}
}

// fired receives a fired message by a pinned pop, which reads the database.
func (k *kit) fired(queue, partition string, want ...string) queen.Popped {
	k.Helper()
	return k.popIDs(queue, want, pinned(partition))
}

func soon(queue, key string, delay time.Duration) queen.Timer {
	return queen.Timer{Queue: queue, Key: key, Partition: "p", Delay: delay, TransactionID: "txn-" + key, Payload: []byte(`{"key":"` + key + `"}`)}
}

func fireOnce(k *kit) {
	queue := unique("t")
	payload := "{ \"z\":1, \"a\":[1.0,12345678901234567890123], \"u\":\"\\u00e9\" }"
	t := soon(queue, "k", 0)
	t.Payload = []byte(payload)
	got := k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "timerKey": "k", "partition": "p", "delayMs": 700, "txn": "txn-k",
		"payload": "eyAieiI6MSwgImEiOlsxLjAsMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjNdLCAidSI6Ilx1MDBlOSIgfQ=="})}), 200)
	results, _ := got["results"].(arr)
	row, _ := results[0].(obj)
	p := k.fired(queue, "p", "txn-k")
	m := p.Messages[0]
	k.same("id", m.ID, fmt.Sprint(row["messageId"]))
	k.same("data", string(m.Data), payload)
	k.ack(p, completed)
	cancel, err := k.client.CancelTimer(k.Context(), queue, "k")
	k.must(err)
	k.same("cancel after the fire", cancel, queen.TimerAbsent)
	k.none(queue, pinned("p"))
}

func fireNotBefore(k *kit) {
	queue := unique("t")
	start := time.Now()
	k.schedule(soon(queue, "k", 1500*time.Millisecond))
	k.fired(queue, "p", "txn-k")
	if d := time.Since(start); d < 1500*time.Millisecond {
		k.Errorf("delivered after %v", d)
	}
}

// firePrompt bounds what a consumer sees: 2.0 s at most was measured with a
// pending far timer and pinned pops, and a second is for the machine.
func firePrompt(k *kit) {
	queue := unique("t")
	for i := range 3 {
		key := fmt.Sprint("k", i)
		due := time.Now().Add(200 * time.Millisecond)
		k.schedule(soon(queue, key, 200*time.Millisecond))
		k.ack(k.fired(queue, "p", "txn-"+key), completed)
		k.inTime("a timer that was due", time.Since(due), 3*time.Second)
	}
}

func fireSkipsDedup(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "txn-k")
	k.ack(k.popIDs(queue, []string{"txn-k"}, pinned("p")), completed)
	k.schedule(soon(queue, "k", 0))
	k.fired(queue, "p", "txn-k")
}

func fireThenPush(k *kit) {
	queue := k.queue()
	k.schedule(soon(queue, "k", 0))
	k.ack(k.fired(queue, "p", "txn-k"), completed)
	k.same("push of the fired id", k.tryPush(queue, "p", "txn-k")[0].Status, queen.PushDuplicate)
}

func fireAgain(k *kit) {
	queue := k.queue()
	for range 2 {
		k.same("schedule", k.schedule(soon(queue, "k", 0)), []queen.TimerStatus{queen.TimerScheduled})
		k.ack(k.fired(queue, "p", "txn-k"), completed)
	}
}

func fireOrder(k *kit) {
	queue := k.queue()
	var timers []queen.Timer
	var want []string
	for i := range 10 {
		key := fmt.Sprint("k", (i*7)%10)
		timers = append(timers, soon(queue, key, time.Duration(500+20*((i*7)%10))*time.Millisecond))
		want = append(want, fmt.Sprint("txn-k", i))
	}
	k.schedule(timers...)
	var got []string
	for len(got) < len(want) {
		p := k.pop(queue, pinned("p"))
		got = append(got, ids(p)...)
		k.complete(p)
	}
	k.same("order", got, want)
}

func fireCancelled(k *kit) {
	queue := k.queue()
	k.schedule(soon(queue, "k", 4*time.Second), soon(queue, "after", 4300*time.Millisecond))
	got, err := k.client.CancelTimer(k.Context(), queue, "k")
	k.must(err)
	k.same("cancel", got, queen.TimerCancelled)
	k.fired(queue, "p", "txn-after") // later than k would have been
}

func fireCreatesQueue(k *kit) {
	namespace := unique("a-b")
	k.schedule(soon(namespace+".c", "k", 0))
	p := k.popIDs("", []string{"txn-k"}, discovery(namespace, "c"), partitions(4))
	k.ack(p, completed)
	k.gone(namespace+".c", "g")
}

func fireApart(k *kit) {
	namespace := unique("retry")
	k.schedule(soon(namespace+".one", "k1", 0), soon(namespace+".two", "k2", 0))
	k.popIDs("", []string{"txn-k1"}, discovery(namespace, "one"), partitions(64))
	k.none("", discovery(namespace, "one"), partitions(64))
	k.popIDs("", []string{"txn-k2"}, discovery(namespace, "two"), partitions(64))
}

func fireWakes(k *kit) {
	queue := k.queue()
	k.schedule(soon(queue, "k", 600*time.Millisecond))
	start := time.Now()
	k.popIDs(queue, []string{"txn-k"})
	k.inTime("a timer's way to a parked queue-scoped pop", time.Since(start), 600*time.Millisecond+prompt)
}

func fireDeletedQueue(k *kit) {
	queue := k.queue()
	k.schedule(soon(queue, "k", 3*time.Second))
	k.has("delete", k.object(k.send("DELETE", "/api/v1/resources/queues/"+queue, nil), 200), obj{"deleted": true, "existed": true})
	k.fired(queue, "p", "txn-k")
}

// A foreign payload that is no JSON makes the pop that meets it unreadable;
// popped alone and read tolerantly it can be completed.
func fireNonJSON(k *kit) {
	queue := k.queue()
	k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "partition": "p", "delayMs": 0, "txn": "foreign", "payload": "PHhtbC8+"})}), 200)
	short := request(queue, pinned("p"), lease(time.Second), waiting(patience))
	_, err := k.client.Pop(k.Context(), short)
	var bad *queen.BadBodyError
	if !errors.As(err, &bad) {
		k.Fatalf("Pop() error = %v, want a *BadBodyError", err)
	}
	k.same("what stood before the fault", []string{bad.Partition, bad.TransactionID}, []string{"p", "foreign"})
	p := k.pop(queue, pinned("p"), batch(1), func(r *queen.PopRequest) { r.Tolerant = true })
	m := p.Messages[0]
	if string(m.Data) != "<xml/>" || !m.BadData || m.TransactionID != "foreign" {
		k.Fatalf("tolerant pop: %+v", m)
	}
	k.refused("dlq of what is no JSON", acks(p, dlq))
	k.ack(p, completed)
	k.gone(queue, "g")
}

func fireMany(k *kit) {
	namespace := unique("many")
	queue := namespace + ".t"
	var timers []queen.Timer
	for i := range 200 {
		t := soon(queue, fmt.Sprint("k", i), 500*time.Millisecond)
		t.Partition = fmt.Sprint(i % 64)
		timers = append(timers, t)
	}
	k.schedule(timers...)
	seen := map[string]int{}
	k.eventually("all fire", func() bool {
		p := k.tryPop("", discovery(namespace, "t"), partitions(64), batch(256), waiting(time.Second))
		for _, id := range ids(p) {
			seen[id]++
		}
		if len(p.Messages) > 0 {
			k.complete(p)
		}
		k.Logf("%d of 200 have fired", len(seen))
		return len(seen) == 200
	})

	for id, n := range seen {
		if n != 1 {
			k.Errorf("%s came %d times", id, n)
		}
	}
}
