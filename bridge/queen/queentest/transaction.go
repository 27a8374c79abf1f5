package queentest

import (
	"fmt"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func transactionCases() []testCase {
	return []testCase{
		{name: "Transaction/AckPushKVTimer", rule: "queen-contract.md §8, §8.2", run: transactionAll},
		{name: "Transaction/ResultShape", rule: "queen-contract.md §8.2", run: transactionShape},
		{name: "Transaction/PushOrder", rule: "queen-real-1.3.md, Transaction (measured)", run: transactionPushOrder},
		{name: "Transaction/DuplicateInsideTheBundleCommits", rule: "queen-contract.md §8.2", run: transactionInnerDuplicate},
		{name: "Transaction/AckRulesHold", rule: "queen-contract.md §8.4", run: transactionAckRules},
		{name: "Transaction/RetryOfTheRest", rule: "queen-contract.md §8.4 (measured)", run: transactionRetry},
		{name: "Transaction/FailedUsesTheBudget", rule: "queen-contract.md §8.4", run: transactionFailed},
		{name: "Transaction/DlqEndsTheBatch", rule: "queen-contract.md §5.2, §8.3 (measured)", run: transactionDlq, only: 1},
		{name: "Transaction/DlqAsTheLast", rule: "queen-contract.md §5.2, §8.3 (measured)", run: transactionDlqLast},
		{name: "Transaction/DlqOfPoisonIsAnsweredSuccess", rule: "queen-contract.md §8.3 (measured)", run: transactionDlqPoison, only: 1},
		{name: "Transaction/NackBelowTheCursorDoesNothing", rule: "queen-contract.md §8.3 (measured)", run: transactionNackBelow},
		{name: "Transaction/SeveralPartitions", rule: "queen-contract.md §8.5", run: transactionPartitions},
		{name: "Transaction/NoOperations", rule: "queen-real-1.3.md, Transaction (measured)", run: transactionEmpty},
		{name: "Transaction/Large", rule: "queen-contract.md §16 (measured)", run: transactionLarge},
		{name: "Transaction/AckResetsTheBudget", rule: "queen-contract.md §5.2 (measured)", run: transactionResetsBudget},
		{name: "Transaction/CreatesTheQueue", rule: "queen-contract.md §13", run: transactionCreates},
		{name: "Transaction/CancelOfNothingCommits", rule: "queen-contract.md §9 (measured)", run: transactionCancel},
	}
}

func prepared(k *kit, t queen.Transaction) queen.Prepared {
	k.Helper()
	p, err := t.Prepare()
	k.must(err)
	return p
}

// commit commits a transaction, which must be accepted.
func (k *kit) commit(t queen.Transaction) queen.Commit {
	k.Helper()
	done, err := k.client.Commit(k.Context(), prepared(k, t))
	k.must(err)
	return done
}

// far is a timer that does not fire during a test.
func far(queue, key string) queen.Timer {
	return queen.Timer{Queue: queue, Key: key, Partition: "p", Delay: time.Hour, TransactionID: key, Payload: []byte(`1`)}
}

// once is a key that must not exist.
func once(key string) queen.KVOp {
	return queen.KVOp{Op: "putIfAbsent", Namespace: "queentest", Key: key, Value: []byte(`1`), TTL: 10 * time.Minute, Required: true}
}

func incr(key string) queen.KVOp {
	return queen.KVOp{Op: "incr", Namespace: "queentest", Key: key, Delta: 1, TTL: 10 * time.Minute}
}

func item(queue, id string) queen.Item {
	return queen.Item{Queue: queue, Partition: "p", TransactionID: id, Payload: []byte(`{"v":1}`)}
}

func (k *kit) timers(queue string) int {
	k.Helper()
	n, err := k.client.CountTimers(k.Context(), queue, 10_000)
	k.must(err)
	return n
}

// value reads a key; "" where it is not there.
func (k *kit) value(key string) string {
	k.Helper()
	r, err := k.client.KV(k.Context(), []queen.KVOp{{Op: "get", Namespace: "queentest", Key: key}})
	k.must(err)
	if !r[0].Found {
		return ""
	}
	return string(r[0].Value)
}

func transactionAll(k *kit) {
	queue, p := k.five()
	out, key := unique("out"), unique("key")
	done := k.commit(queen.Transaction{Acks: every(p, completed), Pushes: []queen.Item{item(out, "a"), item(out, "b")},
		KV: []queen.KVOp{once(key), incr(key + "/n"), {Op: "get", Namespace: "queentest", Key: key + "/none"}}, Timers: []queen.Timer{far(out, "k1"), far(out, "k2")}})
	k.same("timers", done.Timers, []queen.TimerStatus{queen.TimerScheduled, queen.TimerScheduled})
	k.same("kv", []bool{done.KV[0].Applied, done.KV[1].Applied, done.KV[2].Found}, []bool{true, true, false})
	k.gone(queue, "g")
	k.popIDs(out, []string{"a", "b"})
	k.same("timers pending", k.timers(out), 2)
	k.same("key", k.value(key), "1")
}

func transactionShape(k *kit) {
	_, p := k.five()
	out, key := unique("out"), unique("key")
	got := k.object(k.send("POST", "/api/v1/transaction", obj{
		"operations": arr{merge(rawAck(p, 0, "completed"), obj{"type": "ack"}), obj{"type": "push", "items": arr{obj{"queue": out, "partition": "p", "transactionId": "a", "payload": 1}}}},
		"kv":         arr{obj{"op": "putIfAbsent", "ns": "queentest", "key": key, "value": obj{"s": 1}, "ttlSeconds": 600}},
		"timers":     arr{obj{"op": "schedule", "queue": out, "timerKey": "k", "delayMs": 600000, "txn": "t", "payload": "MQ=="}},
	}), 200)
	k.has("answer", got, obj{"success": true}, "transactionId")
	results, _ := got["results"].(arr)
	if len(results) != 4 {
		k.Fatalf("results %v", results)
	}
	row := func(i int) obj { r, _ := results[i].(obj); return r }
	k.has("ack", row(0), obj{"index": 0.0, "type": "ack", "success": true, "transactionId": "m1", "error": nil, "dlq": false})
	k.has("push", row(1), obj{"index": 1.0, "type": "push", "success": true, "transactionId": "a", "queueName": out}, "messageId")
	k.has("kv", row(2), obj{"index": 2.0, "type": "kv", "opIndex": 0.0, "op": "putIfAbsent", "applied": true, "key": key, "value": obj{"s": 1.0}}, "version")
	k.has("timer", row(3), obj{"index": 3.0, "type": "timer", "opIndex": 0.0, "ok": true, "status": "scheduled", "queue": out, "timerKey": "k", "txn": "t"}, "messageId", "deliverAt")
}

func merge(a, b obj) obj {
	for name, v := range b {
		a[name] = v
	}
	return a
}

func transactionPushOrder(k *kit) {
	out, want := unique("out"), numbered("m", 12)
	var t queen.Transaction
	for _, id := range want {
		t.Pushes = append(t.Pushes, item(out, id))
	}
	k.commit(t)
	k.popIDs(out, want)
}

func transactionInnerDuplicate(k *kit) {
	out := unique("out")
	k.commit(queen.Transaction{Pushes: []queen.Item{item(out, "a"), item(out, "a")}})
	k.popIDs(out, []string{"a"})
}

func transactionAckRules(k *kit) {
	queue, p := k.five()
	k.commit(queen.Transaction{Acks: acks(p, "", "", completed)})
	k.none(queue)
	k.commit(queen.Transaction{Acks: acks(p, "", "", "", "", completed)})
	k.gone(queue, "g")
	k.push(queue, "p", "m6")
	k.popIDs(queue, []string{"m6"})
}

func transactionRetry(k *kit) {
	queue, p := k.five()
	out := unique("out")
	t := queen.Transaction{Acks: acks(p, completed, retry), Timers: []queen.Timer{far(out, "k")}}
	k.commit(t)
	k.popIDs(queue, []string{"m2", "m3", "m4", "m5"})
	k.rolledBack(t, queen.RollbackAckRejected)
}

func transactionFailed(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a", "b")
	k.commit(queen.Transaction{Acks: acks(k.popIDs(queue, []string{"a", "b"}), failed)})
	k.same("dead letters", len(k.deadLetters(queue)), 0)
	k.commit(queen.Transaction{Acks: acks(k.popIDs(queue, []string{"a", "b"}), failed)})
	k.same("dead letters", len(k.deadLetters(queue)), 1)
	k.popIDs(queue, []string{"b"})
}

func transactionDlq(k *kit) {
	queue, p := k.five()
	out := unique("out")
	k.commit(queen.Transaction{Acks: acks(p, completed, dlq, completed, completed, completed), Timers: []queen.Timer{far(out, "k")}})
	k.popIDs(queue, []string{"m3", "m4", "m5"})
	k.same("dead letters", len(k.deadLetters(queue)), 1)
	k.same("timers", k.timers(out), 1)
}

func transactionDlqLast(k *kit) {
	queue, p := k.five()
	t := queen.Transaction{Acks: acks(p, completed, completed, completed, completed, dlq)}
	k.commit(t)
	k.gone(queue, "g")
	k.same("dead letters", len(k.deadLetters(queue)), 1)
	k.rolledBack(t, queen.RollbackAckRejected)
}

// 1.3.0 files dead letters after the commit: one that cannot be filed is
// answered success, its riders are committed, and the message stays leased.
func transactionDlqPoison(k *kit) {
	queue, out := k.queue(), unique("out")
	p := k.poison(queue, "t")
	k.commit(queen.Transaction{Acks: acks(p, dlq), Timers: []queen.Timer{far(out, "k")}})
	k.same("timers", k.timers(out), 1)
	k.same("dead letters", len(k.deadLetters(queue)), 0)
	k.none(queue)
	k.ack(p, completed)
}

func transactionNackBelow(k *kit) {
	queue, p := k.five()
	k.ack(p, "", completed)
	k.commit(queen.Transaction{Acks: acks(p, failed)})
	k.none(queue)
	k.ack(p, "", "", completed, completed, completed)
	k.gone(queue, "g")
}

func transactionPartitions(k *kit) {
	queue := k.queue()
	for i := range 8 {
		k.push(queue, fmt.Sprint("p", i), "a", "b")
	}
	p := k.pop(queue, partitions(8))
	k.same("messages", len(p.Messages), 16)
	k.commit(queen.Transaction{Acks: every(p, completed)})
	k.gone(queue, "g")
	k.renewed(p.Lease, time.Minute, 0)
}

func transactionEmpty(k *kit) {
	k.has("answer", k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{}}), 200), obj{"success": true, "results": arr{}})
}

func transactionLarge(k *kit) {
	queue, out := k.queue(), unique("out")
	k.push(queue, "p", numbered("m", 500)...)
	p := k.pop(queue, batch(500))
	k.same("messages", len(p.Messages), 500)
	t := queen.Transaction{Acks: every(p, completed)}
	for _, key := range numbered("k", 256) {
		t.Timers = append(t.Timers, far(out, key))
	}
	k.commit(t)
	k.gone(queue, "g")
	k.same("timers", k.timers(out), 256)
}

func transactionResetsBudget(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a")
	k.ack(k.popIDs(queue, []string{"a"}), failed)
	k.commit(queen.Transaction{Acks: acks(k.popIDs(queue, []string{"a"}), completed)})
	k.push(queue, "p", "b")
	k.ack(k.popIDs(queue, []string{"b"}), failed)
	k.popIDs(queue, []string{"b"})
}

func transactionCreates(k *kit) {
	namespace := unique("ns")
	k.commit(queen.Transaction{Pushes: []queen.Item{item(namespace+".t", "a")}})
	k.popIDs("", []string{"a"}, discovery(namespace, "t"))
}

func transactionCancel(k *kit) {
	out := unique("out")
	got := k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{}, "timers": arr{
		obj{"op": "cancel", "queue": out, "timerKey": "none"},
		obj{"op": "schedule", "queue": out, "timerKey": "k", "delayMs": 600000, "txn": "t", "payload": "MQ=="},
	}}), 200)
	k.has("answer", got, obj{"success": true})
	results, _ := got["results"].(arr)
	first, _ := results[0].(obj)
	k.has("cancel", first, obj{"ok": false, "status": "absent"})
	k.same("timers", k.timers(out), 1)
}
