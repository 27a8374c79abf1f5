package queentest

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func rollbackCases() []testCase {
	return []testCase{
		{name: "Rollback/LostLease", rule: "queen-contract.md §8.3", run: rollbackLostLease},
		{name: "Rollback/OneOfTwoPartitionsLost", rule: "queen-real-1.3.md, Transaction (measured)", run: rollbackOneOfTwo},
		{name: "Rollback/UnknownMessage", rule: "queen-contract.md §8.3", run: rollbackUnknownMessage},
		{name: "Rollback/DuplicatePush", rule: "queen-contract.md §8.3", run: rollbackDuplicate},
		{name: "Rollback/LostKey", rule: "queen-contract.md §8.3", run: rollbackLostKey},
		{name: "Rollback/KeysAreCheckedFirst", rule: "queen-contract.md §8.3 (measured)", run: rollbackKeysFirst, only: 1},
		{name: "Rollback/PushesAreCheckedBeforeAcks", rule: "queen-contract.md §8.3 (measured)", run: rollbackPushesBeforeAcks, only: 1},
		{name: "Rollback/MissingGroup", rule: "queen-contract.md §8", run: rollbackNoGroup, only: 1},
		{name: "Rollback/ShapeErrors", rule: "queen-contract.md §8.3 (measured)", run: rollbackShapes, only: 1},
		{name: "Rollback/Limits", rule: "queen-contract.md §8.5 (measured)", run: rollbackLimits, only: 1},
		{name: "Rollback/GarbagePartition", rule: "queen-contract.md §8.3 (measured)", run: rollbackGarbage, only: 1},
		{name: "Fence/AckWithoutLeaseIsUnfenced", rule: "queen-contract.md §8.1", run: fenceNoLease, only: 1},
		{name: "Fence/RequiredLeasesIsNone", rule: "queen-contract.md §8.1 (measured)", run: fenceRequiredLeases},
	}
}

// rolledBack commits a transaction that must be refused for a reason.
func (k *kit) rolledBack(t queen.Transaction, want queen.RollbackReason) queen.RollbackError {
	k.Helper()
	_, err := k.client.Commit(k.Context(), prepared(k, t))
	var e *queen.RollbackError
	if !errors.As(err, &e) || e.Reason != want {
		k.Fatalf("Commit() = %v, want a rollback for %s", err, want)
	}
	return *e
}

// riders are a push, a key and a timer, and a check that none was committed.
func (k *kit) riders() (t queen.Transaction, unharmed func()) {
	out, key := unique("out"), unique("key")
	t = queen.Transaction{Pushes: []queen.Item{item(out, "a")}, KV: []queen.KVOp{incr(key)}, Timers: []queen.Timer{far(out, "k")}}
	return t, func() {
		k.Helper()
		k.none(out)
		k.same("key", k.value(key), "")
		k.same("timers", k.timers(out), 0)
	}
}

func rollbackLostLease(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	k.popIDs(queue, []string{"a"})
	t, unharmed := k.riders()
	t.Acks = acks(p, completed)
	e := k.rolledBack(t, queen.RollbackAckRejected)
	if !strings.Contains(e.Text, p.Messages[0].PartitionID) {
		k.Errorf("the text %q does not name the partition", e.Text)
	}
	unharmed()
}

func rollbackOneOfTwo(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", "a")
	k.push(queue, "p2", "b")
	p := k.pop(queue, partitions(2))
	k.same("messages", len(p.Messages), 2)
	k.ack(p, failed)
	k.rolledBack(queen.Transaction{Acks: every(p, completed)}, queen.RollbackAckRejected)
	k.ack(p, "", completed) // the other is still held
}

func rollbackUnknownMessage(k *kit) {
	queue, p := k.five()
	t, unharmed := k.riders()
	t.Acks = acks(p, completed)
	t.Acks[0].TransactionID = "nobody's"
	if e := k.rolledBack(t, queen.RollbackAckRejected); !e.UnknownTransactionID() {
		k.Errorf("text %q", e.Text)
	}
	unharmed()
	k.none(queue)
}

func rollbackDuplicate(k *kit) {
	queue, p := k.five()
	t, unharmed := k.riders()
	dup := unique("dup")
	k.push(dup, "p", "d")
	t.Acks, t.Pushes = every(p, completed), append(t.Pushes, item(dup, "d"))
	if e := k.rolledBack(t, queen.RollbackDuplicate); !strings.Contains(e.Text, dup) {
		k.Errorf("the text %q does not name the queue", e.Text)
	}
	unharmed()
	k.none(queue) // the lease stays
	k.complete(p)
}

func rollbackLostKey(k *kit) {
	queue, p := k.five()
	t, unharmed := k.riders()
	key := unique("key")
	k.commit(queen.Transaction{KV: []queen.KVOp{{Op: "put", Namespace: "queentest", Key: key, Value: []byte(`{"w":0}`), TTL: time.Minute}}})
	t.Acks, t.KV = acks(p, completed, completed), append(t.KV, once(key))
	e := k.rolledBack(t, queen.RollbackKVPrecondition)
	k.same("failed index, in the flat space", e.FailedIndex, 2+1+1)
	k.same("kv reason", e.KVReason, "exists")
	var value any
	k.must(json.Unmarshal(e.Value, &value))
	k.same("value", value, any(obj{"w": 0.0}))
	unharmed()
	k.complete(p)
	k.gone(queue, "g")
}

func rollbackKeysFirst(k *kit) {
	_, p := k.five()
	k.ack(p, failed) // the lease is gone
	key, dup := unique("key"), unique("dup")
	k.push(dup, "p", "d")
	k.commit(queen.Transaction{KV: []queen.KVOp{once(key)}})
	k.rolledBack(queen.Transaction{Acks: acks(p, completed), Pushes: []queen.Item{item(dup, "d")}, KV: []queen.KVOp{once(key)}}, queen.RollbackKVPrecondition)
}

func rollbackPushesBeforeAcks(k *kit) {
	_, p := k.five()
	dup := unique("dup")
	t := queen.Transaction{Acks: every(p, completed), Pushes: []queen.Item{item(dup, "d")}}
	k.commit(t)
	k.rolledBack(t, queen.RollbackDuplicate) // not ack_rejected
}

func rollbackNoGroup(k *kit) {
	queue, p := k.five()
	body := merge(rawAck(p, 0, "completed"), obj{"type": "ack"})
	delete(body, "consumerGroup")
	got := k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{body}}), 200)
	k.has("answer", got, obj{"success": false, "reason": "ack_rejected", "results": arr{}}, "error", "transactionId")
	k.none(queue)
}

// refusedAs sends a raw transaction that must be refused.
func (k *kit) refusedAs(what string, body any, status int, reason string) {
	k.Helper()
	r := k.send("POST", "/api/v1/transaction", body)
	var got obj
	if err := json.Unmarshal(r.body, &got); err != nil || r.status != status || got["reason"] != reason || got["success"] != false {
		k.Errorf("%s: %v, want %d %s", what, r, status, reason)
	}
}

func timerOp(change obj) obj {
	return merge(obj{"op": "schedule", "queue": "refused", "timerKey": "k", "delayMs": 600000, "txn": "t", "payload": "MQ=="}, change)
}

func without(o obj, name string) obj {
	delete(o, name)
	return o
}

func rollbackShapes(k *kit) {
	out := unique("out")
	push := obj{"type": "push", "items": arr{obj{"queue": out, "partition": "p", "transactionId": "a", "payload": 1}}}
	k.refusedAs("unknown operation", obj{"operations": arr{push, obj{"type": "noop"}}}, 400, "bad_request")
	k.refusedAs("kv inside operations", obj{"operations": arr{push, obj{"type": "kv", "op": "get"}}}, 400, "bad_request")
	k.refusedAs("timer without txn", obj{"operations": arr{push}, "timers": arr{without(timerOp(nil), "txn")}}, 200, "bad_request")
	k.refusedAs("unknown timer operation", obj{"operations": arr{push}, "timers": arr{timerOp(obj{"op": "snooze"})}}, 200, "bad_request")
	k.refusedAs("timer with empty partition", obj{"operations": arr{push}, "timers": arr{timerOp(obj{"partition": ""})}}, 200, "bad_request")
	k.refusedAs("a timer key twice", obj{"operations": arr{push}, "timers": arr{timerOp(nil), timerOp(nil)}}, 200, "bad_request")
	k.refusedAs("kv without expiry", obj{"operations": arr{push}, "kv": arr{obj{"op": "put", "ns": "queentest", "key": "x", "value": 1}}}, 200, "bad_request")
	k.refusedAs("getPrefix", obj{"operations": arr{push}, "kv": arr{obj{"op": "getPrefix", "ns": "queentest", "prefix": "x"}}}, 400, "bad_request")
	k.refusedAs("push without queue", obj{"operations": arr{obj{"type": "push", "items": arr{obj{"partition": "p", "transactionId": "a", "payload": 1}}}}}, 200, "ack_rejected")
	k.none(out)
}

func rollbackLimits(k *kit) {
	out := unique("out")
	timers := func(n int) arr {
		var a arr
		for _, key := range numbered("k", n) {
			a = append(a, timerOp(obj{"queue": out, "timerKey": key}))
		}
		return a
	}
	keys := func(n int) arr {
		var a arr
		for _, key := range numbered(out+"/", n) {
			a = append(a, obj{"op": "get", "ns": "queentest", "key": key})
		}
		return a
	}
	k.refusedAs("257 timers", obj{"operations": arr{}, "timers": timers(257)}, 400, "bad_request")
	k.refusedAs("65 kv", obj{"operations": arr{}, "kv": keys(65)}, 400, "bad_request")
	k.has("64 kv", k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{}, "kv": keys(64)}), 200), obj{"success": true})
	k.refusedAs("a timer beyond 90 days", obj{"operations": arr{}, "timers": arr{timerOp(obj{"queue": out, "delayMs": 7776000001})}}, 403, "timer_horizon_exceeded")
	big := strings.Repeat("MTEx", 1<<20/3+1) // 1 MiB and a little, decoded
	k.refusedAs("a timer payload over 1 MiB", obj{"operations": arr{}, "timers": arr{timerOp(obj{"queue": out, "payload": big})}}, 413, "payload_too_large")
	k.refusedAs("a queue name over 255", obj{"operations": arr{obj{"type": "push", "items": arr{obj{"queue": strings.Repeat("x", 256), "partition": "p", "transactionId": "a", "payload": 1}}}}}, 200, "payload_too_large")
	k.same("timers", k.timers(out), 0)
}

func rollbackGarbage(k *kit) {
	_, p := k.five()
	body := merge(rawAck(p, 0, "completed"), obj{"type": "ack", "partitionId": "zz"})
	k.refusedAs("garbage partition id", obj{"operations": arr{body}}, 200, "db_error")
}

// Without a leaseId 1.x takes the ack under whoever holds the lease now: the
// client refuses to send one.
func fenceNoLease(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	k.popIDs(queue, []string{"a"}) // somebody else's now
	body := without(merge(rawAck(p, 0, "completed"), obj{"type": "ack"}), "leaseId")
	got := k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{body}, "requiredLeases": arr{p.Lease.ID}}), 200)
	k.has("answer", got, obj{"success": true})
	k.gone(queue, "g")
}

func fenceRequiredLeases(k *kit) {
	queue, p := k.five()
	var ops arr
	for i := range p.Messages {
		ops = append(ops, merge(rawAck(p, i, "completed"), obj{"type": "ack"}))
	}
	got := k.object(k.send("POST", "/api/v1/transaction", obj{"operations": ops, "requiredLeases": arr{"b92ae408-6520-4d9b-9758-404a1a4b841b"}}), 200)
	k.has("answer", got, obj{"success": true})
	k.gone(queue, "g")
}

func repeatCases() []testCase {
	return []testCase{
		{name: "Repeat/WholeBatchIsRejected", rule: "queen-contract.md §8.4 (measured)", run: repeatWhole},
		{name: "Repeat/OneOfManyCopiesCommits", rule: "queen-contract.md §8.4 (measured)", run: repeatRace},
		{name: "Repeat/PartialBatchRunsItsRidersAgain", rule: "queen-contract.md §8.4 (measured)", run: repeatPartial},
		{name: "Repeat/KeyIsAGate", rule: "queen-contract.md §8.4", run: repeatKey},
		{name: "Repeat/LastIdTwiceIsNoGate", rule: "queen-contract.md §8.4 (measured)", run: repeatTwice},
	}
}

func repeatWhole(k *kit) {
	_, p := k.five()
	key, out := unique("key"), unique("out")
	t := queen.Transaction{Acks: every(p, completed), KV: []queen.KVOp{incr(key)}, Timers: []queen.Timer{far(out, "k")}}
	k.commit(t)
	for range 2 {
		k.rolledBack(t, queen.RollbackAckRejected)
	}
	k.same("key", k.value(key), "1")
}

func repeatRace(k *kit) {
	_, p := k.five()
	key := unique("key")
	t := prepared(k, queen.Transaction{Acks: every(p, completed), KV: []queen.KVOp{incr(key)}})
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = k.client.Commit(k.Context(), t) })
	}
	wg.Wait()
	committed := 0
	for _, err := range errs {
		var e *queen.RollbackError
		switch {
		case err == nil:
			committed++
		case !errors.As(err, &e) || e.Reason != queen.RollbackAckRejected:
			k.Errorf("copy: %v", err)
		}
	}
	k.same("copies committed", committed, 1)
	k.same("key", k.value(key), "1")
}

func repeatPartial(k *kit) {
	_, p := k.five()
	key, out := unique("key"), unique("out")
	t := queen.Transaction{Acks: acks(p, completed), KV: []queen.KVOp{incr(key)}, Timers: []queen.Timer{far(out, "k")}}
	k.commit(t)
	k.same("timers", k.commit(t).Timers, []queen.TimerStatus{queen.TimerRescheduled})
	k.same("key", k.value(key), "2")
}

func repeatKey(k *kit) {
	_, p := k.five()
	t := queen.Transaction{Acks: acks(p, completed), KV: []queen.KVOp{once(unique("key"))}}
	k.commit(t)
	k.rolledBack(t, queen.RollbackKVPrecondition)
}

func repeatTwice(k *kit) {
	queue := k.queue(dedup(0))
	for _, id := range []string{"x", "y", "x"} {
		k.push(queue, "p", id)
	}
	p := k.popIDs(queue, []string{"x", "y", "x"})
	key := unique("key")
	t := queen.Transaction{Acks: every(p, completed), KV: []queen.KVOp{incr(key)}}
	k.commit(t)
	k.none(queue) // the lease stays, before the last x
	k.commit(t)
	k.same("key", k.value(key), "2")
}
