package queentest

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func timerCases() []testCase {
	return []testCase{
		{name: "Timer/ScheduleShape", rule: "queen-contract.md §9", run: timerShape},
		{name: "Timer/SameKeyReplaces", rule: "queen-contract.md §9", run: timerReplaces},
		{name: "Timer/Cancel", rule: "queen-contract.md §9", run: timerCancel},
		{name: "Timer/CancelIgnoresTxn", rule: "queen-contract.md §9 (measured)", run: timerCancelTxn},
		{name: "Timer/Peek", rule: "queen-contract.md §9", run: timerPeek},
		{name: "Timer/List", rule: "queen-contract.md §9", run: timerList},
		{name: "Timer/OddKeys", rule: "queen-contract.md §9", run: timerOddKeys},
		{name: "Timer/AllOrNothing", rule: "queen-contract.md §9", run: timerAllOrNothing},
		{name: "Timer/Refusals", rule: "queen-contract.md §9", run: timerRefusals},
		{name: "Timer/Limits", rule: "queen-contract.md §9", run: timerLimits},
		{name: "Timer/BareArrayAndReschedule", rule: "queen-contract.md §9", run: timerBareArray},
		{name: "Timer/DelaysOfAnyNumber", rule: "queen-contract.md §9 (measured)", run: timerDelays},
		{name: "Timer/DoesNotCreateItsQueue", rule: "queen-real-1.3.md, Queues (measured)", run: timerNoQueue},
	}
}

func (k *kit) schedule(timers ...queen.Timer) []queen.TimerStatus {
	k.Helper()
	got, err := k.client.Schedule(k.Context(), timers)
	k.must(err)
	return got
}

func timerShape(k *kit) {
	queue := unique("t")
	before := time.Now()
	got := k.object(k.send("POST", "/api/v1/timers", obj{"operations": arr{timerOp(obj{"queue": queue, "timerKey": "r/1"})}}), 200)
	results, _ := got["results"].(arr)
	row, _ := results[0].(obj)
	k.has("verdict", row, obj{"ok": true, "status": "scheduled", "queue": queue, "timerKey": "r/1", "txn": "t"}, "messageId", "deliverAt")
	s, _ := row["deliverAt"].(string)
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", s)
	k.must(err)
	if d := at.Sub(before); d < 590*time.Second || d > 610*time.Second {
		k.Errorf("deliverAt in %v", d)
	}
}

func timerReplaces(k *kit) {
	queue := unique("t")
	first := far(queue, "k")
	k.same("first", k.schedule(first), []queen.TimerStatus{queen.TimerScheduled})
	second := first
	second.Payload, second.TransactionID, second.Delay = []byte(`"new"`), "other", 0
	k.same("second", k.schedule(second), []queen.TimerStatus{queen.TimerRescheduled})
	p := k.fired(queue, "p", "other")
	k.same("data", string(p.Messages[0].Data), `"new"`)
	k.same("timers", k.timers(queue), 0)
}

func timerCancel(k *kit) {
	queue := unique("t")
	k.schedule(far(queue, "k/1"))
	for _, want := range []queen.TimerStatus{queen.TimerCancelled, queen.TimerAbsent} {
		got, err := k.client.CancelTimer(k.Context(), queue, "k/1")
		k.must(err)
		k.same("cancel", got, want)
	}
	k.same("after a cancel", k.schedule(far(queue, "k/1")), []queen.TimerStatus{queen.TimerScheduled})
	got := k.object(k.send("DELETE", "/api/v1/timers/"+queue+"/k/1", nil), 200)
	k.same("cancel", got, obj{"ok": true, "status": "cancelled", "queue": queue, "timerKey": "k/1", "txn": "k/1"})
}

func timerCancelTxn(k *kit) {
	queue := unique("t")
	k.schedule(far(queue, "k"))
	k.has("cancel", k.object(k.send("DELETE", "/api/v1/timers/"+queue+"/k?txn=another", nil), 200), obj{"status": "cancelled"})
	k.has("again", k.object(k.send("DELETE", "/api/v1/timers/"+queue+"/k?txn=mine", nil), 200), obj{"ok": false, "status": "absent", "txn": "mine"})
}

func timerPeek(k *kit) {
	queue := unique("t")
	k.schedule(far(queue, "r/x/1"))
	got := k.object(k.send("GET", "/api/v1/timers/"+queue+"/r/x/1", nil), 200)
	k.has("peek", got, obj{"found": true, "queue": queue, "timerKey": "r/x/1", "partition": "p", "txn": "r/x/1", "payload": "MQ==", "attempts": 0.0, "claimed": false}, "deliverAt", "messageId", "createdAt")
	k.has("miss", k.object(k.send("GET", "/api/v1/timers/"+queue+"/none", nil), 200), obj{"found": false})
}

func timerList(k *kit) {
	queue := unique("t")
	for _, key := range []string{"b", "a/2", "a/10", "Z", "é"} {
		k.schedule(far(queue, key))
	}
	var got []string
	after := ""
	for {
		rows, next, err := k.client.ListTimers(k.Context(), queue, after, 2)
		k.must(err)
		for _, r := range rows {
			got = append(got, r.Key)
			k.same("partition and txn of "+r.Key, []string{r.Partition, r.TransactionID}, []string{"p", r.Key})
		}
		if next == "" {
			break
		}
		after = next
	}
	k.same("keys in byte order", got, []string{"Z", "a/10", "a/2", "b", "é"})
	k.has("unknown queue", k.object(k.send("GET", "/api/v1/timers/"+unique("none")+"?limit=1", nil), 200), obj{"rows": arr{}, "truncated": false, "nextAfter": nil})
}

func timerOddKeys(k *kit) {
	queue := unique("t é/+")
	for _, key := range []string{"a b", "é/漢", "a+b%2Fc?d#e", "x//y", "/lead", strings.Repeat("k", 500)} {
		k.same(key, k.schedule(far(queue, key)), []queen.TimerStatus{queen.TimerScheduled})
		got, err := k.client.CancelTimer(k.Context(), queue, key)
		k.must(err)
		k.same("cancel "+key, got, queen.TimerCancelled)
	}
}

func timerAllOrNothing(k *kit) {
	queue := unique("t")
	r := k.send("POST", "/api/v1/timers", obj{"operations": arr{timerOp(obj{"queue": queue}), without(timerOp(obj{"queue": queue, "timerKey": "k2"}), "txn")}})
	k.has("answer", k.object(r, 400), obj{"error": "timers_bad_request"})
	r = k.send("POST", "/api/v1/timers", obj{"operations": arr{timerOp(obj{"queue": queue}), timerOp(obj{"queue": queue})}})
	k.has("a key twice", k.object(r, 400), obj{"error": "timers_bad_request"})
	k.same("timers", k.timers(queue), 0)
}

func timerRefusals(k *kit) {
	for name, op := range map[string]obj{
		"deliverAt":        timerOp(obj{"deliverAt": "2030-01-01T00:00:00Z"}),
		"delaySeconds":     timerOp(obj{"delaySeconds": 5}),
		"messageId":        timerOp(obj{"messageId": "x"}),
		"producerSub":      timerOp(obj{"producerSub": "me"}),
		"underscore":       timerOp(obj{"_x": 1}),
		"delay is text":    timerOp(obj{"delayMs": "5"}),
		"no delay":         without(timerOp(nil), "delayMs"),
		"no payload":       without(timerOp(nil), "payload"),
		"no txn":           without(timerOp(nil), "txn"),
		"no queue":         without(timerOp(nil), "queue"),
		"empty partition":  timerOp(obj{"partition": ""}),
		"unpadded base64":  timerOp(obj{"payload": "MTE"}),
		"url-safe base64":  timerOp(obj{"payload": "_-__"}),
		"unknown verb":     timerOp(obj{"op": "snooze"}),
		"payload no text":  timerOp(obj{"payload": 5}),
		"payload is plain": timerOp(obj{"payload": "{}"}),
	} {
		got := k.object(k.send("POST", "/api/v1/timers", obj{"operations": arr{op}}), 400)
		if got["error"] != "timers_bad_request" {
			k.Errorf("%s: %v", name, got)
		}
	}
}

func timerLimits(k *kit) {
	queue := unique("t")
	k.has("90 days and a little", k.object(k.send("POST", "/api/v1/timers", obj{"operations": arr{timerOp(obj{"queue": queue, "delayMs": 7776000001})}}), 403),
		obj{"error": "timer_horizon_exceeded"})
	big := base64.StdEncoding.EncodeToString([]byte(`"` + strings.Repeat("x", 1<<20) + `"`))
	k.has("over 1 MiB", k.object(k.send("POST", "/api/v1/timers", obj{"operations": arr{timerOp(obj{"queue": queue, "payload": big})}}), 413),
		obj{"error": "payload_too_large"})
	var many arr
	for _, key := range numbered("k", 257) {
		many = append(many, timerOp(obj{"queue": queue, "timerKey": key}))
	}
	k.has("257 timers", k.object(k.send("POST", "/api/v1/timers", obj{"operations": many}), 400), obj{"error": "timers_bad_request"})
	k.same("timers", k.timers(queue), 0)
	k.object(k.send("POST", "/api/v1/timers", obj{"operations": many[:256]}), 200)
	k.same("timers", k.timers(queue), 256)
}

func timerBareArray(k *kit) {
	queue := unique("t")
	k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue})}), 200)
	got := k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "op": "reschedule"})}), 200)
	results, _ := got["results"].(arr)
	row, _ := results[0].(obj)
	k.has("verdict", row, obj{"status": "rescheduled"})
	cancel := k.object(k.send("POST", "/api/v1/timers", arr{obj{"op": "cancel", "queue": queue, "timerKey": "k"}}), 200)
	results, _ = cancel["results"].(arr)
	row, _ = results[0].(obj)
	k.has("verdict", row, obj{"status": "cancelled", "txn": "t"})
}

func timerDelays(k *kit) {
	queue := unique("t")
	for i, delay := range []time.Duration{-time.Hour, 0, 1500 * time.Microsecond} {
		t := far(queue, numbered("k", 3)[i])
		t.Delay = delay
		k.schedule(t)
		k.ack(k.fired(queue, "p", t.TransactionID), completed)
	}
}

func timerNoQueue(k *kit) {
	queue := unique("t")
	k.schedule(far(queue, "k"))
	if r := k.send("GET", "/api/v1/resources/queues/"+url.PathEscape(queue), nil); r.status != 404 {
		k.Errorf("queue detail: %v", r)
	}
}
