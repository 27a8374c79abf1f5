package queentest

import (
	"errors"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// OutageBroker is a broker whose database can be taken away and brought back.
type OutageBroker struct {
	Broker
	Stop, Start func(t *testing.T)
}

// RunOutage checks what a broker answers while its database is away, and that
// all goes on afterwards (queen-contract.md §1.6, queen-real-1.3.md "PostgreSQL
// away", measured 1.3.0). It disturbs everybody: run it last.
func RunOutage(t *testing.T, newBroker func(t *testing.T) OutageBroker) {
	b := newBroker(t)
	k := &kit{T: t, suite: newSuite(t, b.Broker)}
	queue, p := k.five()
	out := unique("out")
	settle := prepared(k, queen.Transaction{Acks: every(p, completed), Timers: []queen.Timer{far(out, "k")}})
	k.schedule(soon(out, "due", 2*time.Second))

	b.Stop(t)
	stopped := true
	t.Cleanup(func() {
		if stopped {
			b.Start(t)
		}
	})
	k.away(queue, p, settle)
	b.Start(t)
	stopped = false
	k.back(queue, out, settle)
}

func (k *kit) away(queue string, p queen.Popped, settle queen.Prepared) {
	k.Helper()
	k.eventually("health says so", func() bool {
		h, err := k.client.Health(k.Context())
		return err == nil && !h.Healthy && h.Detail != ""
	})
	verdicts := k.tryPush(queue, "p", "b1", "b2")
	k.same("push", []queen.PushStatus{verdicts[0].Status, verdicts[1].Status}, []queen.PushStatus{queen.PushBuffered, queen.PushBuffered})
	k.none(queue, group("other")) // like an empty queue
	k.none(queue, group("other"), waiting(time.Second))
	_, err := k.client.Pop(k.Context(), request(queue, pinned("p"), group("other")))
	k.uncertain("pinned pop", err)
	for _, v := range k.tryAck(every(p, completed)) {
		if v.Success || !v.Temporary() {
			k.Errorf("ack: %+v, want a temporary refusal", v)
		}
	}
	_, err = k.client.Commit(k.Context(), settle)
	k.uncertain("transaction", err)
	_, err = k.client.Extend(k.Context(), p.Lease, time.Minute)
	k.uncertain("extend", err)
	_, err = k.client.Schedule(k.Context(), []queen.Timer{far(queue, "x")})
	k.uncertain("timer", err)
	k.same("Retry-After of timers", queen.RetryAfter(err), time.Second)
	_, err = k.client.KV(k.Context(), []queen.KVOp{{Op: "get", Namespace: "queentest", Key: "x"}})
	k.uncertain("kv", err)
	_, err = k.client.Depth(k.Context(), queue, "g")
	k.uncertain("depth", err)
}

func (k *kit) uncertain(what string, err error) {
	k.Helper()
	var status *queen.StatusError
	if !errors.As(err, &status) || !queen.Uncertain(err) || !queen.Temporary(err) {
		k.Errorf("%s: %v, want a 5xx", what, err)
	}
}

func (k *kit) back(queue, out string, settle queen.Prepared) {
	k.Helper()
	k.within(30*time.Second, "the broker is healthy", func() bool {
		h, err := k.client.Health(k.Context())
		return err == nil && h.Healthy
	})
	k.within(10*time.Second, "the same settle commits under the old lease", func() bool {
		_, err := k.client.Commit(k.Context(), settle)
		if err != nil && !queen.Temporary(err) {
			k.Fatal(err)
		}
		return err == nil
	})
	k.push(queue, "p", "new")
	k.within(30*time.Second, "the buffered messages appear", func() bool { n, err := k.client.Depth(k.Context(), queue, "g"); return err == nil && n == 3 })
	k.popIDs(queue, []string{"new", "b1", "b2"}) // behind the newer push
	k.same("push of a buffered id", k.tryPush(queue, "p", "b1")[0].Status, queen.PushDuplicate)
	k.within(45*time.Second, "the timer due meanwhile fires", func() bool { return len(k.tryPop(out, pinned("p")).Messages) == 1 })
}
