package queentest

import (
	"encoding/json"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func rateCases() []testCase {
	rule := "queen-contract.md §8.3, §10 (measured)"
	return []testCase{
		{name: "Rate/RidersOver100PerSecond", rule: rule, run: rateRiders, alone: true, only: 1},
		{name: "Rate/SettlesWithoutRidersAreFree", rule: rule, run: rateFree, alone: true},
	}
}

// spend uses up the write tokens: it returns the first answer that is no
// success.
func (k *kit) spend(send func() reply) reply {
	k.Helper()
	for range 2000 { // 100 a second refill while we spend them
		if r := send(); r.status != 200 {
			return r
		}
	}
	k.Fatal("no limit within 2000 calls")
	return reply{}
}

func rateRiders(k *kit) {
	queue, key := unique("t"), unique("k")
	r := k.spend(func() reply {
		return k.sendBy(k.bare, "POST", "/api/v1/kv", obj{"operations": arr{obj{"op": "put", "ns": "queentest", "key": key, "value": 1, "ttlSeconds": 60}}})
	})
	k.has("kv", k.object(r, 429), obj{"error": "rate_limited", "reason": "rate_limited"})
	k.same("Retry-After of kv", r.header.Get("Retry-After"), "1")

	n := 0
	r = k.spend(func() reply {
		n++
		key := numbered("k", n)[n-1]
		return k.sendBy(k.bare, "POST", "/api/v1/transaction", obj{"operations": arr{}, "timers": arr{timerOp(obj{"queue": queue, "timerKey": key})}})
	})
	var got obj
	k.must(json.Unmarshal(r.body, &got))
	k.has("transaction", got, obj{"success": false, "reason": "rate_limited", "results": arr{}})
	k.same("status", r.status, 429)
	k.same("Retry-After of a transaction", r.header.Get("Retry-After"), "")
	k.same("timers: the refused one is not there", k.timers(queue), n-1)
}

func rateFree(k *kit) {
	queue, out := k.queue(), unique("out")
	k.push(queue, "p", numbered("m", 3)...)
	k.spend(func() reply {
		return k.sendBy(k.bare, "POST", "/api/v1/timers", arr{timerOp(obj{"queue": out})})
	})
	bare, err := queen.New(queen.Config{URLs: []string{k.broker.URL}, Transport: k.bare})
	k.must(err)
	p := k.popIDs(queue, numbered("m", 3))
	if _, err := bare.Commit(k.Context(), prepared(k, queen.Transaction{Acks: acks(p, completed), Pushes: []queen.Item{item(out, "a")}})); err != nil {
		k.Errorf("ack and push: %v", err)
	}
	if v, err := bare.AckBatch(k.Context(), acks(p, "", completed)); err != nil || !v[0].Success {
		k.Errorf("ack: %v, %v", v, err)
	}
	if _, err := bare.CancelTimer(k.Context(), out, "k"); err != nil {
		k.Errorf("cancel: %v", err)
	}
	if _, err := bare.Extend(k.Context(), p.Lease, 0); err != nil {
		k.Errorf("extend: %v", err)
	}
}
