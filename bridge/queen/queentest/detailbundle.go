package queentest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// detailFirstLease: of two leases on one partition in one bundle the first
// counts.
func detailFirstLease(k *kit) {
	_, p := k.five()
	ack := func(i int, lease string) obj {
		return merge(rawAck(p, i, "completed"), obj{"type": "ack", "leaseId": lease})
	}
	stale := "01a22cfb-4d08-7000-8a11-093168f89ba2"
	k.refusedAs("a stale lease first", obj{"operations": arr{ack(0, stale), ack(1, p.Lease.ID)}}, 200, "ack_rejected")
	got := k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{ack(0, p.Lease.ID), ack(1, stale)}}), 200)
	k.has("a stale lease second", got, obj{"success": true})
}

func detailManyPushes(k *kit) {
	queue := k.queue()
	t := queen.Transaction{}
	for _, id := range numbered("m", 2_000) {
		t.Pushes = append(t.Pushes, item(queue, id))
	}
	k.commit(t)
	k.same("messages", len(k.pop(queue, batch(2_000)).Messages), 2_000)
}

func detailLargePush(k *kit) {
	queue := k.queue()
	payload, err := json.Marshal(strings.Repeat("x", 20<<20))
	k.must(err)
	k.commit(queen.Transaction{Pushes: []queen.Item{{Queue: queue, Partition: "p", TransactionID: "a", Payload: payload}}})
	k.same("bytes", len(k.popIDs(queue, []string{"a"}).Messages[0].Data), len(payload))
}

func detailTraceID(k *kit) {
	const trace = "01890a5d-ac96-774b-bcce-b302099a8057"
	queue := k.queue()
	one := func(id string) obj {
		return obj{"queue": queue, "partition": "p", "transactionId": id, "payload": 1, "traceId": trace}
	}
	k.list(k.send("POST", "/api/v1/push", obj{"items": arr{one("pushed")}}), 201)
	k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{obj{"type": "push", "items": arr{one("bundled")}}}}), 200)
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&subscriptionMode=all", nil), 200)
	messages, _ := got["messages"].(arr)
	for i, want := range []any{nil, trace} {
		m, _ := messages[i].(obj)
		k.has(fmt.Sprint(m["transactionId"]), m, obj{"traceId": want})
	}
}

func detailLongTxn(k *kit) {
	queue := unique("t")
	k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "timerKey": "k", "txn": strings.Repeat("t", 65_536)})}), 200)
	k.object(k.send("DELETE", "/api/v1/timers/"+queue+"/k", nil), 200)
}

func detailCount(k *kit) {
	queue := unique("t")
	k.schedule(far(queue, "k"))
	k.has("answer", k.object(k.send("GET", "/api/v1/timers/"+queue+"?mode=count&prefix=k", nil), 200), obj{"truncated": false, "nextAfter": nil}, "rows")
}

func detailNumbers(k *kit) {
	key := "/api/v1/kv/queentest/" + unique("k")
	for given, want := range map[string]string{"9007199254740993": "9007199254740993", "12345678901234567890123": "1.2345678901234568e+22", "1.10": "1.1"} {
		k.object(k.send("PUT", key, `{"value":`+given+`,"ttlSeconds":60}`), 200)
		var got struct{ Value json.Number }
		k.must(json.Unmarshal(k.send("GET", key, nil).body, &got))
		f, err := got.Value.Float64()
		k.must(err)
		w, err := json.Number(want).Float64()
		k.must(err)
		if f != w || strings.HasPrefix(given, "9") && got.Value.String() != want {
			k.Errorf("%s is kept as %s, want %s", given, got.Value, want)
		}
	}
	k.has("NUL", k.object(k.send("PUT", key, `{"value":"\u0000","ttlSeconds":60}`), 500), obj{"error": "kv_error"})
}

func detailIfMatch(k *kit) {
	key := "/api/v1/kv/queentest/" + unique("k")
	put := k.object(k.send("PUT", key, obj{"value": 1, "ttlSeconds": 60}), 200)
	r := k.send("GET", key, nil)
	k.same("ETag", r.header.Get("ETag"), fmt.Sprintf(`"%.0f"`, put["version"]))
	k.same("a PUT with a wrong If-Match", k.sendWith("PUT", key, `{"value":2,"ttlSeconds":60}`, "If-Match", `"1"`).status, 200)
	k.same("a GET with If-None-Match", k.sendWith("GET", key, "", "If-None-Match", k.send("GET", key, nil).header.Get("ETag")).status, 200)
	k.has("value", k.object(k.send("GET", key, nil), 200), obj{"value": 2.0})
}

func detailVersion0(k *kit) {
	got := k.object(k.send("POST", "/api/v1/kv", obj{"operations": arr{obj{"op": "put", "ns": "queentest", "key": unique("k"), "value": 1, "ttlSeconds": 60, "expect": 7}}}), 200)
	results, _ := got["results"].(arr)
	row, _ := results[0].(obj)
	k.has("verdict", row, obj{"applied": false, "reason": "absent", "version": 0.0, "value": nil})
}

// detailReads: reads have twice the tokens of writes, and their own.
func detailReads(k *kit) {
	n := 0
	r := k.spend(func() reply {
		n++
		return k.sendBy(k.bare, "GET", "/api/v1/kv/queentest/none", nil)
	})
	k.has("kv", k.object(r, 429), obj{"error": "rate_limited"})
	k.same("Retry-After", r.header.Get("Retry-After"), "1")
	if n < 400 {
		k.Errorf("limited after %d reads, want 400 at least", n)
	}
}
