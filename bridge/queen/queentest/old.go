package queentest

import (
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// OldBroker is a broker that can be made to forget transaction ids, as 1.x
// does with those of messages that are old, pending or not.
type OldBroker struct {
	Broker
	// Forget makes the ids of all messages of a queue old. The broker may take
	// a few seconds to forget them.
	Forget func(t *testing.T, queue string)
	// Keeps says that completed retention keeps ids, as on 1.3.0.
	Keeps bool
}

// RunOld checks what a broker does with messages whose ids it has forgotten
// (queen-contract.md §5.2, measured 1.3.0).
func RunOld(t *testing.T, newBroker func(t *testing.T) OldBroker) {
	b := newBroker(t)
	s := newSuite(t, b.Broker)
	rule := "queen-contract.md §5.2 (measured)"
	for name, run := range oldCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.run(t, testCase{name: name, rule: rule, run: func(k *kit) { run(k, b) }})
		})
	}
}

// oldCases are the cases of RunOld.
func oldCases() map[string]func(*kit, OldBroker) {
	return map[string]func(*kit, OldBroker){
		"PartialAcksAreUnresolvable":    oldPartial,
		"NacksAreUnresolvable":          oldNacks,
		"TransactionIsRefusedAsUnknown": oldTransaction,
		"WholeBatchAckSucceeds":         oldWhole,
		"SeveralPartitionsInOneCall":    oldPartitions,
		"PoppedAgainItIsAckable":        oldAgain,
		"NotAfterARefusedNack":          oldAfterNack,
		"PushOfAForgottenIdIsQueued":    oldPush,
		"CompletedRetentionKeepsTheIds": oldKept,
		"ForgottenMessageIsStillPopped": oldPopped,
		"RidersFirstThenThePlainAck":    oldRiders,
	}
}

// forgotten pushes m1 to m5 into p and two messages into a partition of their
// own, pops the five and waits until the ids of all are forgotten.
func (k *kit) forgotten(b OldBroker) (string, queen.Popped) {
	k.Helper()
	queue := k.queue(dedup(time.Second))
	k.push(queue, "p", numbered("m", 5)...)
	p := k.popIDs(queue, numbered("m", 5), pinned("p"), lease(time.Minute))
	k.forget(b, queue)
	return queue, p
}

// forget waits until the ids of a queue are forgotten. It shows by a message
// acknowledged again and again, which is a no-op while its id is known.
func (k *kit) forget(b OldBroker, queue string) {
	k.Helper()
	k.push(queue, "probe", "first", "second")
	p := k.popIDs(queue, []string{"first", "second"}, pinned("probe"), group("probe"), lease(10*time.Minute))
	b.Forget(k.T, queue)
	k.within(30*time.Second, "ids are forgotten", func() bool { return k.tryAck(acks(p, completed))[0].Unresolvable() })
}

func oldPartial(k *kit, b OldBroker) {
	queue, p := k.forgotten(b)
	v := k.tryAck(acks(p, completed))[0]
	if v.Success || !v.Unresolvable() {
		k.Errorf("verdict %+v, want unresolvable", v)
	}
	k.none(queue, pinned("p"))
}

func oldNacks(k *kit, b OldBroker) {
	queue, p := k.forgotten(b)
	for _, s := range []queen.AckStatus{failed, retry, dlq} {
		if v := k.tryAck(acks(p, s))[0]; v.Success || !v.Unresolvable() {
			k.Errorf("%s: verdict %+v, want unresolvable", s, v)
		}
	}
	k.none(queue, pinned("p"))
	k.same("dead letters", len(k.deadLetters(queue)), 0)
}

// The lease is kept, and the plain ack still works: the bridge settles in two
// steps.
func oldTransaction(k *kit, b OldBroker) {
	queue, p := k.forgotten(b)
	t, unharmed := k.riders()
	t.Acks = every(p, completed)
	if e := k.rolledBack(t, queen.RollbackAckRejected); !e.UnknownTransactionID() {
		k.Errorf("text %q", e.Text)
	}
	unharmed()
	k.none(queue, pinned("p"))
	k.complete(p)
	k.none(queue, pinned("p"))
	k.push(queue, "p", "m6")
	k.popIDs(queue, []string{"m6"}, pinned("p"))
}

func oldWhole(k *kit, b OldBroker) {
	queue, p := k.forgotten(b)
	k.renewed(p.Lease, 2*time.Minute, 1)
	k.complete(p)
	k.push(queue, "p", "m6")
	k.popIDs(queue, []string{"m6"}, pinned("p"))
}

func oldPartitions(k *kit, b OldBroker) {
	queue := k.queue(dedup(time.Second))
	k.push(queue, "p1", "a", "b")
	k.push(queue, "p2", "c", "d")
	p := k.pop(queue, partitions(10), lease(time.Minute))
	k.same("messages", len(p.Messages), 4)
	k.forget(b, queue)
	k.complete(p)
	k.renewed(p.Lease, time.Minute, 0)
}

func oldAgain(k *kit, b OldBroker) {
	queue := k.queue(dedup(time.Second))
	k.push(queue, "p", "a", "b")
	k.popIDs(queue, []string{"a", "b"}, pinned("p"), lease(time.Second))
	k.forget(b, queue)
	k.ack(k.popIDs(queue, []string{"a", "b"}, pinned("p")), completed, completed)
	k.none(queue, pinned("p"))
}

func oldAfterNack(k *kit, b OldBroker) {
	for _, s := range []queen.AckStatus{retry, dlq} {
		_, p := k.forgotten(b)
		k.refused(string(s), acks(p, s))
		k.refused("the whole batch after it", every(p, completed))
	}
}

func oldPush(k *kit, b OldBroker) {
	queue, _ := k.forgotten(b)
	k.same("push again", k.tryPush(queue, "p", "m1")[0].Status, queen.PushQueued)
}

func oldKept(k *kit, b OldBroker) {
	if !b.Keeps {
		k.Skip("this broker forgets by age alone")
	}
	queue, other := unique("q"), k.queue(dedup(time.Second))
	k.must(k.client.Configure(k.Context(), queen.QueueOptions{Queue: queue, Lease: time.Minute, CompletedRetention: 30 * 24 * time.Hour, DedupWindow: time.Second}))
	k.push(queue, "p", "a", "b")
	p := k.popIDs(queue, []string{"a", "b"})
	b.Forget(k.T, queue)
	k.forget(b, other) // by then a round of retention has passed over both
	k.ack(p, completed)
	k.commit(queen.Transaction{Acks: acks(p, "", completed)})
	k.gone(queue, "g")
}

func oldPopped(k *kit, b OldBroker) {
	queue := k.queue(dedup(time.Second))
	k.push(queue, "p", "a")
	k.forget(b, queue)
	k.ack(k.popIDs(queue, []string{"a"}, pinned("p")), completed)
}

func oldRiders(k *kit, b OldBroker) {
	_, p := k.forgotten(b)
	t, _ := k.riders()
	k.commit(t) // step one
	k.complete(p)
}
