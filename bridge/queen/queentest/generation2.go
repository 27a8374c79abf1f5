package queentest

import (
	"regexp"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// generation2Cases are the rules of Queen 2.x that differ from 1.3.0, as far as
// they are documented: none was measured.
func generation2Cases() []testCase {
	cases := []testCase{
		{name: "Generation2/PartitionIdsAreDigits", rule: "queen-contract.md §0", run: secondIDs},
		{name: "Generation2/StatusWords", rule: "queen-contract.md §5.1", run: secondStatus},
		{name: "Generation2/RefusedAcks", rule: "queen-contract.md §5, §5.2", run: secondRefusals},
		{name: "Generation2/SameAckAgain", rule: "queen-contract.md §5.2", run: secondRepeat},
		{name: "Generation2/AcksAboveADeadLetterCount", rule: "queen-contract.md §5.2", run: secondAbove},
		{name: "Generation2/RejectedAck", rule: "queen-contract.md §8.3", run: secondRejected},
		{name: "Generation2/AcksAreCheckedFirst", rule: "queen-contract.md §8.3", run: secondOrder},
		{name: "Generation2/TheOnlyLeaseFences", rule: "queen-contract.md §8.1", run: secondFence},
		{name: "Generation2/FireIsDeduplicated", rule: "queen-contract.md §9.1", run: secondFire},
		{name: "Generation2/Names", rule: "queen-contract.md §3", run: secondNames},
		{name: "Generation2/PopBounds", rule: "queen-contract.md §4, §11", run: secondPop},
		{name: "Generation2/RidersAreFree", rule: "queen-contract.md §8.5", run: secondRate, alone: true},
	}
	for i := range cases {
		cases[i].only = 2
	}
	return cases
}

func secondIDs(k *kit) {
	_, p := k.five()
	if id := p.Messages[0].PartitionID; !regexp.MustCompile(`^[0-9]+$`).MatchString(id) {
		k.Errorf("partition id %q, want digits", id)
	}
	h, err := k.client.Health(k.Context())
	k.must(err)
	k.same("engine", h.Engine, "raft")
	k.same("healthy", h.Healthy, true)
}

func secondStatus(k *kit) {
	for word, completes := range map[string]bool{"banana": true, "": true, "Completed": true, "FAILED": false, "Retry": false, "DLQ": true} {
		queue := k.queue()
		k.push(queue, "p", "a")
		p := k.popIDs(queue, []string{"a"})
		k.same("verdict of "+word, k.list(k.send("POST", "/api/v1/ack", rawAck(p, 0, word)), 200)[0]["success"], any(true))
		n, err := k.client.Depth(k.Context(), queue, "g")
		k.must(err)
		if (n == 0) != completes {
			k.Errorf("%d messages pending after %q", n, word)
		}
	}
}

func secondRefusals(k *kit) {
	_, p := k.five()
	for part, want := range map[string]string{
		"": "partitionId is not a partition id", "zz": "partitionId is not a partition id",
		"987654321": "transaction is unresolvable, already committed, or acknowledgment is stale",
	} {
		rows := k.list(k.send("POST", "/api/v1/ack", merge(rawAck(p, 0, "completed"), obj{"partitionId": part})), 200)
		k.has("partition "+part, rows[0], obj{"success": false, "error": want})
	}
	rows := k.list(k.send("POST", "/api/v1/ack", merge(rawAck(p, 0, "completed"), obj{"transactionId": "unknown"})), 200)
	k.has("unknown id", rows[0], obj{"success": false, "error": "transaction is unresolvable, already committed, or acknowledgment is stale"})
}

// secondRepeat: the answer to an ack that released its lease may be lost; the
// same ack is answered with success again, another is not.
func secondRepeat(k *kit) {
	queue, p := k.five()
	for range 2 {
		k.ack(p, completed, failed)
	}
	k.refused("another ack", acks(p, completed))
	again := k.popIDs(queue, []string{"m2", "m3", "m4", "m5"})
	t := queen.Transaction{Acks: every(again, completed)}
	k.commit(t)
	k.rolledBack(t, queen.RollbackAckRejected)
}

func secondAbove(k *kit) {
	queue, p := k.five()
	k.ack(p, completed, dlq, completed)
	p = k.popIDs(queue, []string{"m4", "m5"})
	k.ack(p, dlq, dlq)
	k.gone(queue, "g")
	k.same("dead letters", len(k.deadLetters(queue)), 3)

	queue, p = k.five()
	k.ack(p, dlq, "", completed) // a gap ends it
	p = k.popIDs(queue, []string{"m2", "m3", "m4", "m5"})
	k.ack(p, dlq, retry, completed, completed)
	p = k.popIDs(queue, []string{"m3", "m4", "m5"})
	k.ack(p, dlq, failed, completed) // within the budget
	k.popIDs(queue, []string{"m4", "m5"})

	queue = k.queue(retryLimit(0))
	k.push(queue, "p", numbered("m", 3)...)
	k.ack(k.popIDs(queue, numbered("m", 3)), failed, failed, completed)
	k.gone(queue, "g")
	k.same("dead letters over the budget", len(k.deadLetters(queue)), 2)
}

func secondRejected(k *kit) {
	_, p := k.five()
	body := merge(rawAck(p, 0, "completed"), obj{"type": "ack"})
	k.refusedAs("garbage partition id", obj{"operations": arr{merge(body, obj{"partitionId": "zz"})}}, 200, "rejected_ack")
	k.refusedAs("unknown id", obj{"operations": arr{merge(body, obj{"transactionId": "unknown"})}}, 200, "rejected_ack")
	k.refusedAs("another lease", obj{"operations": arr{merge(body, obj{"leaseId": "unknown"})}}, 200, "rejected_ack")
	k.complete(p)
	k.rolledBack(queen.Transaction{Acks: every(p, completed)}, queen.RollbackAckRejected)
}

func secondOrder(k *kit) {
	_, p := k.five()
	key, dup := unique("key"), unique("dup")
	k.push(dup, "p", "d")
	k.commit(queen.Transaction{KV: []queen.KVOp{once(key)}})
	t := queen.Transaction{Acks: acks(p, completed), Pushes: []queen.Item{item(dup, "d")}, KV: []queen.KVOp{once(key)}}
	k.rolledBack(t, queen.RollbackDuplicate) // pushes before keys
	k.ack(p, failed)                         // the lease is gone
	k.rolledBack(t, queen.RollbackAckRejected)
}

func secondFence(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	k.popIDs(queue, []string{"a"}) // somebody else's now
	body := without(merge(rawAck(p, 0, "completed"), obj{"type": "ack"}), "leaseId")
	k.refusedAs("the one lease that is named", obj{"operations": arr{body}, "requiredLeases": arr{p.Lease.ID}}, 200, "rejected_ack")
	got := k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{body}}), 200)
	k.has("no lease at all", got, obj{"success": true})
	k.gone(queue, "g")
}

// secondFire: a timer whose id its partition knows completes without a message.
func secondFire(k *kit) {
	queue := unique("t")
	k.push(queue, "p", "txn-k")
	k.ack(k.popIDs(queue, []string{"txn-k"}), completed)
	k.schedule(soon(queue, "k", 0), soon(queue, "other", 0))
	k.ack(k.fired(queue, "p", "txn-other"), completed)
	k.eventually("both are gone", func() bool { return k.timers(queue) == 0 })
	k.schedule(soon(queue, "other", 0))
	k.eventually("a repeat is gone", func() bool { return k.timers(queue) == 0 })
	k.none(queue, pinned("p"))

	off := k.queue(dedup(0))
	k.push(off, "p", "txn-k")
	k.schedule(soon(off, "k", 0))
	k.eventually("without a window it fires", func() bool {
		n, err := k.client.Depth(k.Context(), off, "g")
		return err == nil && n == 2
	})
}

func secondNames(k *kit) {
	queue := k.queue()
	k.list(k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": queue, "partition": "", "transactionId": "a", "payload": 1}}}), 201)
	k.same("partition", k.popIDs(queue, []string{"a"}).Messages[0].Partition, "Default")
	v := k.list(k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": strings.Repeat("x", 500), "payload": 1}}}), 201)
	k.has("a name too long", v[0], obj{"status": "error"}) // never buffered
}

func secondPop(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	k.push(queue, "q", "b")
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all&partitions=0", nil), 200)
	k.has("partitions=0", got, obj{"partitionsClaimed": 1.0})
	start := time.Now()
	if r := k.send("GET", "/api/v1/pop?namespace="+unique("ns")+"&consumerGroup=g&wait=true&timeout=20000", nil); r.status != 204 {
		k.Errorf("discovery: %v", r)
	}
	if d := time.Since(start); d > 5*time.Second {
		k.Errorf("a discovery waits %v", d)
	}
}

func secondRate(k *kit) {
	for range 400 {
		r := k.sendBy(k.bare, "POST", "/api/v1/transaction", obj{"operations": arr{}, "kv": arr{obj{"op": "delete", "ns": "queentest", "key": "none"}}})
		if r.status != 200 {
			k.Fatalf("a rider of a transaction: %v", r)
		}
	}
}
