package queentest

import (
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func ackCases() []testCase {
	return []testCase{
		{name: "Ack/SingleAnswersAnArray", rule: "queen-contract.md §5", run: ackSingle},
		{name: "Ack/IsAPrefixCommit", rule: "queen-contract.md §5.2", run: ackPrefix},
		{name: "Ack/BelowTheCursor", rule: "queen-contract.md §5.2", run: ackBelow},
		{name: "Ack/LastOfTheBatchCompletesAll", rule: "queen-contract.md §5.2", run: ackLast},
		{name: "Ack/StepByStepReleasesAtTheEnd", rule: "queen-contract.md §5.2", run: ackSteps},
		{name: "Ack/AnyOrderInOneCall", rule: "queen-contract.md §5.2", run: ackAnyOrder},
		{name: "Ack/FlagsProveNothing", rule: "queen-contract.md §5.2 (measured)", run: ackFlags},
		{name: "Ack/WrongLeaseIsRefused", rule: "queen-contract.md §5.2", run: ackWrongLease},
		{name: "Ack/AfterExpiryIsRefused", rule: "queen-contract.md §5.2 (measured)", run: ackExpired},
		{name: "Ack/StaleHolderIsRefused", rule: "queen-contract.md §5.2", run: ackStale},
		{name: "Ack/RepeatAfterReleaseIsRefused", rule: "queen-contract.md §5.2 (measured)", run: ackRepeat, only: 1},
		{name: "Ack/UnknownIdIsUnresolvable", rule: "queen-contract.md §5.2", run: ackUnknown},
		{name: "Ack/WithoutLeaseMovesTheCursor", rule: "queen-contract.md §5.2, §13", run: ackLeaseless},
		{name: "Ack/PartitionsAreDecidedApart", rule: "queen-contract.md §5.2", run: ackPartitions},
		{name: "Ack/GroupStandsAtTheTop", rule: "queen-contract.md §5", run: ackGroup},
		{name: "Ack/BadPartitionIds", rule: "queen-contract.md §5 (measured)", run: ackBadPartition},
		{name: "Ack/NothingToAcknowledge", rule: "queen-contract.md §5 (measured)", run: ackNothing},
		{name: "Ack/StatusWords", rule: "queen-contract.md §5.1", run: ackWords, only: 1},
		{name: "Ack/WholeBatchWithAnIdTwice", rule: "queen-contract.md §5.2 (measured)", run: ackTwice, only: 1},
		{name: "Ack/EveryDistinctIdIsTheWholeBatch", rule: "package queen, \"Where a real 1.3.0 surprises\"", run: ackDistinct, only: 1},
		{name: "Ack/DuplicateIdTakesTheLowest", rule: "queen-contract.md §5.2 (measured)", run: ackLowest},
	}
}

// five pushes m1 to m5 into one partition and pops them.
func (k *kit) five(change ...func(*queen.QueueOptions)) (string, queen.Popped) {
	k.Helper()
	queue := k.queue(change...)
	k.push(queue, "p", numbered("m", 5)...)
	return queue, k.popIDs(queue, numbered("m", 5))
}

func rawAck(p queen.Popped, i int, status any) obj {
	m := p.Messages[i]
	return obj{"transactionId": m.TransactionID, "partitionId": m.PartitionID, "leaseId": p.Lease.ID, "consumerGroup": p.Lease.Group, "status": status}
}

func ackSingle(k *kit) {
	_, p := k.five()
	got := k.list(k.send("POST", "/api/v1/ack", rawAck(p, 0, "completed")), 200)
	if len(got) != 1 {
		k.Fatalf("answer %v", got)
	}
	k.has("verdict", got[0], obj{"index": 0.0, "transactionId": "m1", "success": true, "error": nil, "dlq": false, "noop": false}, "leaseReleased")
}

func ackPrefix(k *kit) {
	queue, p := k.five()
	k.ack(p, "", "", completed)
	k.none(queue) // the lease stays for 4 and 5
	k.ack(p, "", "", "", completed, completed)
	k.none(queue)
	k.gone(queue, "g")
}

func ackBelow(k *kit) {
	_, p := k.five()
	k.ack(p, "", "", completed)
	k.same("completed below", k.tryAck(acks(p, completed)), []queen.AckVerdict{{Success: true, Noop: true}})
	k.refused("failed below", acks(p, "", failed))
	k.refused("retry below", acks(p, "", retry))
	k.refused("dlq below", acks(p, "", dlq))
	k.ack(p, "", "", "", "", completed)
}

func ackLast(k *kit) {
	queue, p := k.five()
	k.ack(p, "", "", "", "", completed)
	k.gone(queue, "g")
	k.push(queue, "p", "m6") // the lease is released
	k.popIDs(queue, []string{"m6"})
}

func ackSteps(k *kit) {
	queue, p := k.five()
	k.push(queue, "p", "m6")
	for i := range 5 {
		k.none(queue)
		k.ack(queen.Popped{Lease: p.Lease, Messages: p.Messages[i : i+1]}, completed)
	}
	k.popIDs(queue, []string{"m6"})
}

func ackAnyOrder(k *kit) {
	queue, p := k.five()
	all := every(p, completed)
	slices.Reverse(all)
	for i, v := range k.tryAck(all) {
		if !v.Success {
			k.Errorf("ack %d: %+v", i, v)
		}
	}
	k.gone(queue, "g")
}

func ackFlags(k *kit) {
	queue, p := k.five()
	got := k.list(k.send("POST", "/api/v1/ack", rawAck(p, 0, "completed")), 200)
	if got[0]["leaseReleased"] == true { // said by 1.3.0, and not so
		k.none(queue)
	}
	k.ack(p, "", completed, completed, completed, completed)
}

func ackWrongLease(k *kit) {
	queue, p := k.five()
	wrong := p
	wrong.Lease.ID = "b3eb674c-e192-4ba3-a2dc-e6f0f1c4e13e"
	for _, v := range k.tryAck(every(wrong, completed)) {
		k.same("verdict", v, queen.AckVerdict{Error: "invalid or expired lease"})
	}
	k.none(queue)
	k.complete(p)
}

func ackExpired(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	k.until(p.Asked.Add(1500 * time.Millisecond)) // nobody pops meanwhile
	k.refused("ack after expiry, nobody having popped", acks(p, completed))
	k.popIDs(queue, []string{"a"})
}

func ackStale(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	again := k.popIDs(queue, []string{"a"})
	for _, s := range []queen.AckStatus{completed, failed, retry, dlq} {
		k.refused("stale "+string(s), acks(p, s))
	}
	k.ack(again, completed)
}

func ackRepeat(k *kit) {
	_, p := k.five()
	k.complete(p)
	for _, v := range k.tryAck(every(p, completed)) {
		k.same("verdict", v, queen.AckVerdict{Error: "invalid or expired lease"})
	}
}

func ackUnknown(k *kit) {
	queue, p := k.five()
	unknown := acks(p, completed)
	unknown[0].TransactionID = "nobody's"
	v := k.tryAck(unknown)[0]
	if v.Success || !v.Unresolvable() {
		k.Errorf("verdict %+v, want unresolvable", v)
	}
	k.none(queue)
	k.complete(p)
}

// Without a lease the check is skipped: the nack of 2 is lost. This is why the
// client refuses to send such an ack.
func ackLeaseless(k *kit) {
	queue, p := k.five()
	k.ack(p, "", failed)
	k.refused("under the released lease", acks(p, "", "", completed))
	body := rawAck(p, 2, "completed")
	delete(body, "leaseId")
	k.has("verdict", k.list(k.send("POST", "/api/v1/ack", body), 200)[0], obj{"success": true})
	k.popIDs(queue, []string{"m4", "m5"})
}

func ackPartitions(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", "a1", "a2")
	k.push(queue, "p2", "b1", "b2")
	p := k.pop(queue, partitions(10))
	k.same("messages", len(p.Messages), 4)
	all := every(p, completed)
	for i := range all {
		if all[i].TransactionID == "a1" {
			all[i].Status = failed
		}
	}
	for i, v := range k.tryAck(all) {
		if !v.Success {
			k.Errorf("ack %d: %+v", i, v)
		}
	}
	k.popIDs(queue, []string{"a1", "a2"}, partitions(10))
}

func ackGroup(k *kit) {
	_, p := k.five()
	got := k.list(k.send("POST", "/api/v1/ack/batch", obj{"acknowledgments": arr{rawAck(p, 0, "completed")}}), 200)
	k.has("a group in the item only", got[0], obj{"success": false})
	k.ack(p, completed)
}

func ackBadPartition(k *kit) {
	_, p := k.five()
	for name, id := range map[string]any{"garbage": "zz", "unknown": "22622f9a-69e8-4c70-9ff1-4c4d8647cf50"} {
		body := rawAck(p, 0, "completed")
		body["partitionId"] = id
		k.has(name, k.list(k.send("POST", "/api/v1/ack", body), 200)[0], obj{"success": false})
	}
	k.has("an empty object", k.list(k.send("POST", "/api/v1/ack", obj{}), 200)[0], obj{"success": false})
	if r := k.send("POST", "/api/v1/ack", rawAck(p, 0, 5)); r.status != 400 {
		k.Errorf("a number as status: %v", r)
	}
}

func ackNothing(k *kit) {
	for _, body := range []obj{{"consumerGroup": "g", "acknowledgments": arr{}}, {"consumerGroup": "g"}} {
		if got := k.list(k.send("POST", "/api/v1/ack/batch", body), 200); len(got) != 0 {
			k.Errorf("answer %v", got)
		}
	}
}

// A word nobody knows is failed on 1.x and completed on 2.x: never send one.
func ackWords(k *kit) {
	for _, word := range []any{"completed", "success", "acked", "ok", nil} {
		queue := k.queue()
		k.push(queue, "p", "a")
		k.has("verdict", k.list(k.send("POST", "/api/v1/ack", rawAck(k.popIDs(queue, []string{"a"}), 0, word)), 200)[0], obj{"success": true})
		k.gone(queue, "g")
	}
	for _, word := range []any{"FAILED", "Completed", "", "done"} {
		queue := k.queue(retryLimit(0))
		k.push(queue, "p", "a")
		k.has("verdict", k.list(k.send("POST", "/api/v1/ack", rawAck(k.popIDs(queue, []string{"a"}), 0, word)), 200)[0], obj{"success": true})
		k.same("dead letters after "+word.(string), len(k.deadLetters(queue)), 1)
	}
}

func ackTwice(k *kit) {
	queue := k.queue(dedup(0))
	k.push(queue, "p", "x")
	k.push(queue, "p", "y")
	k.push(queue, "p", "x")
	p := k.popIDs(queue, []string{"x", "y", "x"})
	k.ack(p, completed, completed, completed)
	k.gone(queue, "g")
}

// The broker compares the ids named with those of the leased batch as sets.
func ackDistinct(k *kit) {
	queue := k.queue(dedup(0))
	for _, id := range []string{"x", "y", "x"} {
		k.push(queue, "p", id)
	}
	k.ack(k.popIDs(queue, []string{"x", "y", "x"}), completed, completed)
	k.gone(queue, "g")
}

func ackLowest(k *kit) {
	queue := k.queue(dedup(0))
	for _, id := range []string{"x", "x", "y"} {
		k.push(queue, "p", id)
	}
	p := k.popIDs(queue, []string{"x", "x", "y"})
	for _, pending := range []int{2, 1} {
		k.ack(p, completed)
		n, err := k.client.Depth(k.Context(), queue, "g")
		k.must(err)
		k.same("pending", n, pending)
	}
	k.ack(p, "", "", completed)
	k.gone(queue, "g")
}
