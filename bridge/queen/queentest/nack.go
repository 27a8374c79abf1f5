package queentest

import (
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func nackCases() []testCase {
	return []testCase{
		{name: "Nack/RedeliversAllThatIsNotCompleted", rule: "queen-contract.md §5.2", run: nackAlone},
		{name: "Nack/BeatsLaterCompleted", rule: "queen-contract.md §5.2", run: nackBeats},
		{name: "Nack/IsImmediate", rule: "queen-contract.md §5.2", run: nackImmediate},
		{name: "Nack/RetryIsFree", rule: "queen-contract.md §5.2", run: nackRetryFree},
		{name: "Nack/BudgetThenDeadLetter", rule: "queen-contract.md §2.1, §5.2", run: nackBudget},
		{name: "Nack/LimitZeroIsDeadAtOnce", rule: "queen-contract.md §2.1", run: nackLimitZero},
		{name: "Nack/BudgetIsPerPartition", rule: "queen-contract.md §5.2", run: nackBudgetShared},
		{name: "Nack/BudgetStartsAnewAfterADeadLetter", rule: "queen-contract.md §5.2 (measured)", run: nackBudgetReset},
		{name: "Nack/FullBatchAckKeepsTheBudget", rule: "queen-contract.md §5.2 (measured)", run: nackBudgetKept, only: 1},
		{name: "Nack/StepwiseAckResetsTheBudget", rule: "queen-contract.md §5.2 (measured)", run: nackBudgetSteps},
		{name: "Nack/BothSwitchesOffDrops", rule: "queen-contract.md §2.1", run: nackDropped},
		{name: "Nack/ErrorText", rule: "queen-contract.md §5 (measured)", run: nackErrorText},
		{name: "Dlq/EndsTheBatch", rule: "queen-contract.md §5.2 (measured)", run: dlqEndsTheBatch, only: 1},
		{name: "Dlq/AsTheLastCompletesTheBatch", rule: "queen-contract.md §5.2 (measured)", run: dlqLast, only: 1},
		{name: "Dlq/OnePerCall", rule: "queen-contract.md §5.2 (measured)", run: dlqOnePerCall, only: 1},
		{name: "Dlq/IgnoresTheSwitches", rule: "queen-contract.md §5.2 (measured)", run: dlqSwitches},
		{name: "Dlq/RefusesWhatPostgresCannotStore", rule: "queen-contract.md §5.2 (measured)", run: dlqUnstorable, only: 1},
		{name: "Dlq/PoisonIsCompletable", rule: "queen-contract.md §5.2 (measured)", run: dlqPoisonCompletable},
	}
}

func nackAlone(k *kit) {
	queue, p := k.five()
	k.ack(p, "", failed)
	k.popIDs(queue, numbered("m", 5))
	k.refused("under the released lease", acks(p, "", "", completed))
}

func nackBeats(k *kit) {
	for _, status := range []queen.AckStatus{failed, retry} {
		queue, p := k.five()
		all := acks(p, completed, status, completed, completed, completed)
		all[0], all[4], all[1], all[3] = all[4], all[0], all[3], all[1] // the order in the call is nothing
		for i, v := range k.tryAck(all) {
			if !v.Success {
				k.Errorf("ack %d: %+v", i, v)
			}
		}
		k.popIDs(queue, []string{"m2", "m3", "m4", "m5"})
	}
}

func nackImmediate(k *kit) {
	queue, p := k.five()
	k.ack(p, failed)
	start := time.Now()
	k.popIDs(queue, numbered("m", 5))
	k.inTime("the redelivery after a nack", time.Since(start), prompt)
}

func nackRetryFree(k *kit) {
	queue := k.queue(retryLimit(0))
	k.push(queue, "p", "a")
	for range 5 {
		k.ack(k.popIDs(queue, []string{"a"}), retry)
	}
	k.same("dead letters", len(k.deadLetters(queue)), 0)
	k.ack(k.popIDs(queue, []string{"a"}), completed)
}

func nackBudget(k *kit) {
	queue := k.queue(retryLimit(2))
	k.push(queue, "p", "a", "b")
	for range 3 { // N + 1 attempts
		k.same("dead letters before the last", len(k.deadLetters(queue)), 0)
		p := k.popIDs(queue, []string{"a", "b"})
		all := acks(p, failed)
		all[0].Error = "502 from the function"
		k.same("verdict", k.tryAck(all)[0].Success, true)
	}
	dead := k.deadLetters(queue)
	if len(dead) != 1 {
		k.Fatalf("dead letters %+v", dead)
	}
	k.same("dead letter", []string{dead[0].TransactionID, dead[0].Error, dead[0].Group, dead[0].Partition}, []string{"a", "502 from the function", "g", "p"})
	k.ack(k.popIDs(queue, []string{"b"}), completed)
}

func nackLimitZero(k *kit) {
	queue := k.queue(retryLimit(0))
	k.push(queue, "p", "a", "b")
	k.ack(k.popIDs(queue, []string{"a", "b"}), failed)
	k.same("dead letters", len(k.deadLetters(queue)), 1)
	k.popIDs(queue, []string{"b"})
}

func nackBudgetShared(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a", "b")
	k.ack(k.popIDs(queue, []string{"a", "b"}), failed)            // a spends the budget
	k.ack(k.popIDs(queue, []string{"a", "b"}), completed, failed) // and b's first failure is one too many
	dead := k.deadLetters(queue)
	if len(dead) != 1 || dead[0].TransactionID != "b" {
		k.Errorf("dead letters %+v, want b", dead)
	}
}

func nackBudgetReset(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a", "b")
	k.ack(k.popIDs(queue, []string{"a", "b"}), failed)
	k.ack(k.popIDs(queue, []string{"a", "b"}), failed) // dead
	k.ack(k.popIDs(queue, []string{"b"}), failed)      // b has a budget of its own again
	k.popIDs(queue, []string{"b"})
}

func nackBudgetKept(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a")
	k.ack(k.popIDs(queue, []string{"a"}), failed)
	k.ack(k.popIDs(queue, []string{"a"}), completed)
	k.push(queue, "p", "b")
	k.ack(k.popIDs(queue, []string{"b"}), failed)
	k.same("dead letters", len(k.deadLetters(queue)), 1)
}

func nackBudgetSteps(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", "a", "b")
	k.ack(k.popIDs(queue, []string{"a", "b"}), failed)
	p := k.popIDs(queue, []string{"a", "b"})
	k.ack(p, completed)
	k.ack(p, "", completed)
	k.push(queue, "p", "c")
	k.ack(k.popIDs(queue, []string{"c"}), failed)
	k.popIDs(queue, []string{"c"})
}

func nackDropped(k *kit) {
	queue := unique("q")
	k.object(k.send("POST", "/api/v1/configure", obj{"queue": queue, "options": obj{"retryLimit": 0, "deadLetterQueue": false, "dlqAfterMaxRetries": false}}), 200)
	k.push(queue, "p", "a", "b")
	k.ack(k.popIDs(queue, []string{"a", "b"}), failed)
	k.same("dead letters", len(k.deadLetters(queue)), 0)
	k.popIDs(queue, []string{"b"})
}

func nackErrorText(k *kit) {
	queue := k.queue(retryLimit(0))
	long := strings.Repeat("é", 15000)
	k.push(queue, "p", "a", "b")
	all := acks(k.popIDs(queue, []string{"a", "b"}), failed)
	all[0].Error = long
	k.tryAck(all)
	k.ack(k.popIDs(queue, []string{"b"}), failed)
	dead := k.deadLetters(queue)
	if len(dead) != 2 || dead[0].Error != "Retries exhausted" || dead[1].Error != long {
		k.Errorf("dead letters %d", len(dead))
	}
}

func dlqEndsTheBatch(k *kit) {
	queue, p := k.five()
	k.ack(p, completed, dlq, completed, completed, completed)
	k.popIDs(queue, []string{"m3", "m4", "m5"})
	dead := k.deadLetters(queue)
	if len(dead) != 1 || dead[0].TransactionID != "m2" {
		k.Errorf("dead letters %+v, want m2", dead)
	}
}

func dlqLast(k *kit) {
	queue, p := k.five()
	k.ack(p, completed, completed, completed, completed, dlq)
	k.gone(queue, "g")
	k.same("dead letters", len(k.deadLetters(queue)), 1)
	k.refused("repeat", acks(p, completed, completed, completed, completed, dlq))
}

func dlqOnePerCall(k *kit) {
	queue, p := k.five()
	k.ack(p, dlq, dlq, dlq, dlq, dlq)
	k.same("dead letters", len(k.deadLetters(queue)), 1)
	k.popIDs(queue, []string{"m2", "m3", "m4", "m5"})
}

func dlqSwitches(k *kit) {
	queue := unique("q")
	k.object(k.send("POST", "/api/v1/configure", obj{"queue": queue, "options": obj{"deadLetterQueue": false, "dlqAfterMaxRetries": false}}), 200)
	k.push(queue, "p", "a")
	k.ack(k.popIDs(queue, []string{"a"}), dlq)
	k.same("dead letters", len(k.deadLetters(queue)), 1)
}

func (k *kit) poison(queue, id string) queen.Popped {
	k.Helper()
	_, err := k.client.Push(k.Context(), []queen.Item{{Queue: queue, Partition: "p", TransactionID: id, Payload: []byte(`"a\u0000b"`)}})
	k.must(err)
	return k.popIDs(queue, []string{id})
}

func dlqUnstorable(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "fine")
	p := k.popIDs(queue, []string{"fine"})
	body := rawAck(p, 0, "dlq")
	body["error"] = "a\x00b"
	k.has("an error text with NUL", k.list(k.send("POST", "/api/v1/ack", body), 200)[0], obj{"success": false})
	k.none(queue) // the lease is kept
	all := acks(p, dlq)
	all[0].Error = "a\x00b" // the client drops the NUL
	k.same("by the client", k.tryAck(all)[0].Success, true)
	k.refused("a payload with NUL", acks(k.poison(queue, "t"), dlq))
	k.none(queue)
	k.same("dead letters", len(k.deadLetters(queue)), 1)
}

func dlqPoisonCompletable(k *kit) {
	queue := k.queue()
	k.ack(k.poison(queue, "t"), completed)
	k.gone(queue, "g")
}

// deadLetters lists the dead letters of a queue.
func (k *kit) deadLetters(queue string) []queen.DeadLetter {
	k.Helper()
	dead, err := k.client.DeadLetters(k.Context(), queen.DeadLetterQuery{Queue: queue})
	k.must(err)
	return dead
}

func leaseCases() []testCase {
	return []testCase{
		{name: "Lease/ExtendNeverShortens", rule: "queen-contract.md §6", run: leaseNeverShortens},
		{name: "Lease/ExtendedIsHeldThenRedelivered", rule: "queen-contract.md §6 (measured)", run: leaseExtended},
		{name: "Lease/UnknownOrExpiredIsNotRevived", rule: "queen-contract.md §6", run: leaseNotRevived},
		{name: "Lease/WithoutBodyIsAMinute", rule: "queen-contract.md §6", run: leaseNoBody},
		{name: "Lease/NoCap", rule: "queen-contract.md §6 (measured)", run: leaseNoCap},
	}
}

// expiry reads the new expiry of a raw extend.
func (k *kit) expiry(p queen.Popped, body any) time.Time {
	k.Helper()
	got := k.object(k.send("POST", "/api/v1/lease/"+p.Lease.ID+"/extend", body), 200)
	k.has("extend", got, obj{"success": true, "renewed": 1.0, "leaseId": p.Lease.ID, "newExpiresAt": got["expiresAt"], "lease_expires_at": got["expiresAt"]})
	s, _ := got["expiresAt"].(string)
	at, err := time.Parse(time.RFC3339Nano, s)
	k.must(err)
	return at
}

func leaseNeverShortens(k *kit) {
	_, p := k.five()
	far := k.expiry(p, obj{"seconds": 600})
	for _, body := range []any{obj{"seconds": 1}, obj{"seconds": -5}, obj{"seconds": 0}, obj{"seconds": "x"}, "not json"} {
		if got := k.expiry(p, body); got.Before(far) {
			k.Errorf("extend %v: %v, before %v", body, got, far)
		}
	}
}

func leaseExtended(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(4*time.Second))
	until := time.Now().Add(5 * time.Second)
	k.renewed(p.Lease, 5*time.Second, 1)
	k.popIDs(queue, []string{"a"})
	if early := time.Until(until); early > 0 {
		k.Errorf("redelivered %v before the extended lease ended", early)
	}
}

func leaseNotRevived(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(time.Second))
	again := k.popIDs(queue, []string{"a"})
	k.renewed(p.Lease, time.Minute, 0)
	k.renewed(queen.Lease{ID: "7a321af2-bf34-408c-99c7-bcff7de7529f"}, time.Minute, 0)
	got := k.object(k.send("POST", "/api/v1/lease/"+p.Lease.ID+"/extend", obj{"seconds": 5}), 200)
	k.has("extend", got, obj{"success": false, "renewed": 0.0, "newExpiresAt": nil, "expiresAt": nil, "lease_expires_at": nil})
	k.ack(again, completed)
}

func leaseNoBody(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"}, lease(10*time.Second))
	before := time.Now()
	if d := k.expiry(p, nil).Sub(before); d < 58*time.Second || d > 62*time.Second {
		k.Errorf("an extend without body: %v", d)
	}
}

func leaseNoCap(k *kit) {
	_, p := k.five()
	if d := time.Until(k.expiry(p, obj{"seconds": 20 * 365 * 86400})); d < 19*365*24*time.Hour {
		k.Errorf("twenty years: %v", d)
	}
}
