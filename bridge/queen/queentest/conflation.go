package queentest

import (
	"fmt"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func conflationCases() []testCase {
	rule := "Queen 1.3.0, conflation (measured)"
	return []testCase{
		{name: "Conflation/NewestAlone", rule: rule, run: conflateNewest},
		{name: "Conflation/OneOfEachPartition", rule: rule, run: conflateWidth},
		{name: "Conflation/AnyIdCompletesTheBacklog", rule: rule, run: conflateAnyID},
		{name: "Conflation/NackGivesTheNewestThereIs", rule: rule, run: conflateNack},
		{name: "Conflation/DeadLetterIsTheNamedOne", rule: rule, run: conflateDead},
		{name: "Conflation/TransactionAck", rule: rule, run: conflateTransaction},
		{name: "Conflation/EmptyHasABody", rule: rule, run: conflateEmpty},
		{name: "Conflation/TheSubscriptionDecides", rule: rule, run: conflatePolicy},
		{name: "Conflation/PinnedPopSubscribes", rule: rule, run: conflatePinned},
		{name: "Conflation/DiscoveryAsksEveryQueue", rule: rule, run: conflateDiscovery},
		{name: "Conflation/SeekAndDeletion", rule: rule, run: conflateSeek},
		{name: "Conflation/DelayHoldsTheNewestBack", rule: rule, run: conflateDelayed},
		{name: "Conflation/Refusals", rule: rule, run: conflateRefusals},
	}
}

// popAll pops with a query of the case's own; the group is g, or what it says.
func (k *kit) popAll(path, query string) (obj, []string) {
	k.Helper()
	got := k.object(k.send("GET", "/api/v1/pop"+path+sep(path)+"subscriptionMode=all&leaseSeconds=30&"+query, nil), 200)
	messages, _ := got["messages"].(arr)
	found := []string{}
	for _, m := range messages {
		m, _ := m.(obj)
		found = append(found, fmt.Sprint(m["transactionId"]))
	}
	return got, found
}

// popSome is popAll where something must come: a real broker may notice a
// message a moment after its push.
func (k *kit) popSome(path, query string) (obj, []string) {
	k.Helper()
	return k.popAll(path, query+"&wait=true&timeout=8000")
}

const conflating = "consumerGroup=g&conflation=true"

// newest pops a queue whose group conflates and checks what came.
func (k *kit) newest(queue string, want ...string) obj {
	k.Helper()
	pop := k.popSome
	if want == nil {
		pop, want = k.popAll, []string{}
	}
	got, found := pop("/queue/"+queue, conflating+"&batch=10")
	k.same("messages popped", found, want)
	k.has("answer", got, obj{"conflation": true, "conflationConflict": nil})
	if k.Failed() {
		k.FailNow()
	}
	return got
}

// settle acks ids of a raw pop; lease says whether under its lease.
func (k *kit) settle(p obj, lease bool, status queen.AckStatus, ids ...string) []obj {
	k.Helper()
	items := arr{}
	for _, id := range ids {
		a := obj{"transactionId": id, "partitionId": p["partitionId"], "status": status, "error": "why"}
		if lease {
			a["leaseId"] = p["leaseId"]
		}
		items = append(items, a)
	}
	return k.list(k.send("POST", "/api/v1/ack/batch", obj{"consumerGroup": "g", "acknowledgments": items}), 200)
}

// passed checks the verdicts of a settle, and how many messages each says were
// passed over; nil where it says nothing of it.
func (k *kit) passed(what string, rows []obj, want ...any) {
	k.Helper()
	for i, n := range want {
		k.has(what, rows[i], obj{"success": true, "conflated": n})
	}
}

func (k *kit) depths(queue string, pending, effective float64) {
	k.Helper()
	got := k.object(k.send("GET", "/api/v1/resources/queues/"+queue+"/depth?group=g", nil), 200)
	k.has("depth", got, obj{"pending": pending, "effectivePending": effective, "conflation": true})
}

func conflateNewest(k *kit) {
	queue := k.queue()
	k.push(queue, "p", numbered("m", 5)...)
	p := k.newest(queue, "m5")
	k.has("answer", p, obj{"partition": "p", "partitionsClaimed": 1.0})
	k.push(queue, "p", "late")
	k.newest(queue) // all of it is leased, and the late one is in the same partition
	k.depths(queue, 6, 1)
	k.passed("ack of the newest", k.settle(p, true, completed, "m5"), 4.0)
	k.passed("ack of one alone", k.settle(k.newest(queue, "late"), true, completed, "late"), 0.0)
	k.depths(queue, 0, 0)
	for _, g := range k.list(k.send("GET", "/api/v1/consumer-groups", nil), 200) {
		if g["queueName"] == queue {
			k.has("group", g, obj{"name": "g", "conflation": true})
		}
	}
	one, _ := k.object(k.send("GET", "/api/v1/consumer-groups/g", nil), 200)[queue].(obj)
	k.has("group by queue", one, obj{"conflation": true})
}

// conflateWidth: batch counts messages, of which a partition gives one; without
// partitions it is also the number of those.
func conflateWidth(k *kit) {
	queue := k.queue()
	for _, p := range []string{"a", "b", "c", "d"} {
		k.push(queue, p, p+"1", p+"2")
	}
	for _, c := range []struct {
		query string
		n     int
	}{{"batch=1&partitions=3", 1}, {"batch=2", 2}, {"batch=10&partitions=0", 1}} {
		got, found := k.popSome("/queue/"+queue, conflating+"&"+c.query)
		k.same("messages of "+c.query, len(found), c.n)
		k.has("answer to "+c.query, got, obj{"partitionsClaimed": float64(c.n)})
	}
	k.depths(queue, 8, 4) // leased ones count
}

func conflateAnyID(k *kit) {
	queue := k.queue()
	k.push(queue, "p", numbered("a", 3)...)
	k.passed("an older one", k.settle(k.newest(queue, "a3"), true, completed, "a1"), 2.0)
	k.push(queue, "p", numbered("b", 3)...)
	k.passed("two", k.settle(k.newest(queue, "b3"), true, completed, "b2", "b3"), 2.0, nil)
	k.push(queue, "p", numbered("c", 2)...)
	p := k.newest(queue, "c2")
	rows := k.settle(p, true, completed, "unknown")
	k.has("an unknown one", rows[0], obj{"success": false, "conflated": nil})
	k.passed("an older one without lease", k.settle(p, false, completed, "c1"), 1.0)
	k.newest(queue)
	k.has("again", k.settle(p, true, completed, "c2")[0], obj{"success": false})
	k.has("again without lease", k.settle(p, false, completed, "c2")[0], obj{"success": true, "noop": true, "conflated": nil})
}

func conflateNack(k *kit) {
	queue := k.queue(retryLimit(1))
	k.push(queue, "p", numbered("m", 3)...)
	k.passed("retry of an older one", k.settle(k.newest(queue, "m3"), true, retry, "m1"), nil)
	k.passed("failed", k.settle(k.newest(queue, "m3"), true, failed, "m3"), nil)
	k.push(queue, "p", "m4")
	rows := k.settle(k.newest(queue, "m4"), true, failed, "m4") // the budget is the partition's
	k.has("failed over the budget", rows[0], obj{"success": true, "dlq": true, "conflated": nil})
	k.newest(queue)
	if dead := k.deadLetters(queue); len(dead) != 1 || dead[0].TransactionID != "m4" {
		k.Errorf("dead letters %v, want m4", dead)
	}
	k.push(queue, "p", numbered("n", 3)...)
	p := k.newest(queue, "n3")
	k.must(k.mixed(p, "n1", "n3"))
	k.depths(queue, 2, 1) // what was completed below the nack stays so
	k.newest(queue, "n3")
}

// mixed completes one message and fails another in one call.
func (k *kit) mixed(p obj, done, nacked string) error {
	k.Helper()
	ack := func(id string, s queen.AckStatus) obj {
		return obj{"transactionId": id, "partitionId": p["partitionId"], "leaseId": p["leaseId"], "status": s}
	}
	rows := k.list(k.send("POST", "/api/v1/ack/batch", obj{"consumerGroup": "g", "acknowledgments": arr{ack(done, completed), ack(nacked, failed)}}), 200)
	for _, r := range rows {
		if r["success"] != true || r["conflated"] != nil {
			return fmt.Errorf("completed and failed in one call: %v", rows)
		}
	}
	return nil
}

func conflateDead(k *kit) {
	queue := k.queue()
	k.push(queue, "p", numbered("m", 3)...)
	k.has("dlq of an older one", k.settle(k.newest(queue, "m3"), true, dlq, "m1")[0], obj{"success": true, "dlq": true, "conflated": nil})
	k.depths(queue, 2, 1)
	k.has("dlq of the newest", k.settle(k.newest(queue, "m3"), true, dlq, "m3")[0], obj{"success": true, "dlq": true, "conflated": nil})
	k.newest(queue)
	k.same("dead letters", len(k.deadLetters(queue)), 2)
}

func conflateTransaction(k *kit) {
	queue := k.queue()
	k.push(queue, "p", numbered("m", 3)...)
	settle := func(p obj, id string, s queen.AckStatus) obj {
		k.Helper()
		return k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{obj{"type": "ack", "transactionId": id, "partitionId": p["partitionId"],
			"leaseId": p["leaseId"], "consumerGroup": "g", "status": s}}}), 200)
	}
	p := k.newest(queue, "m3")
	got := settle(p, "m1", completed)
	rows, _ := got["results"].(arr)
	row, _ := rows[0].(obj)
	k.has("ack of an older one", row, obj{"success": true, "conflated": nil})
	k.newest(queue)
	k.has("again", settle(p, "m3", completed), obj{"success": false})
	k.push(queue, "p", "m4", "m5")
	k.has("retry", settle(k.newest(queue, "m5"), "m5", retry), obj{"success": true})
	k.has("dlq", settle(k.newest(queue, "m5"), "m5", dlq), obj{"success": true})
	k.newest(queue)
}

func conflateEmpty(k *kit) {
	queue := k.queue()
	p := k.newest(queue)
	k.has("empty", p, obj{"success": true, "queue": queue, "partition": "", "partitionId": "", "consumerGroup": "g", "partitionsClaimed": 0.0}, "leaseId")
	start := time.Now()
	k.popAll("/queue/"+queue, conflating+"&wait=true&timeout=700")
	d := time.Since(start)
	if k.inTime("a long poll of 700 ms", d, 5*time.Second); d < 690*time.Millisecond {
		k.Errorf("a long poll of 700 ms ends after %v", d)
	}
	none := unique("none")
	p, found := k.popAll("/queue/"+none+"/partition/p", conflating)
	k.same("messages of an unknown queue", found, []string{})
	k.has("unknown queue", p, obj{"conflation": true, "partition": "p", "partitionId": "", "partitionsClaimed": 1.0})
	if r := k.send("GET", "/api/v1/resources/queues/"+none+"/depth", nil); r.status != 404 {
		k.Errorf("a pinned pop has made its queue: %v", r)
	}
}

func conflatePolicy(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a", "b")
	k.settle(k.newest(queue, "b"), true, completed, "b")
	for query, conflict := range map[string]any{"": nil, "&conflation=false": true} {
		k.push(queue, "p", "c"+query, "d"+query)
		p, found := k.popSome("/queue/"+queue, "consumerGroup=g&batch=10"+query)
		k.same("messages with "+query, found, []string{"d" + query})
		k.has("answer with "+query, p, obj{"conflation": true, "conflationConflict": conflict})
		k.settle(p, true, completed, "d"+query)
		p, _ = k.popAll("/queue/"+queue, "consumerGroup=g&batch=10"+query)
		k.has("empty with "+query, p, obj{"conflation": true, "conflationConflict": conflict, "partitionsClaimed": 0.0})
	}
	k.push(queue, "p", "e", "f")
	p, found := k.popSome("/queue/"+queue, "consumerGroup=g&autoAck=true&batch=10")
	k.same("messages of autoAck", found, []string{"f"})
	k.has("answer of autoAck", p, obj{"conflation": true})
	k.depths(queue, 0, 0)

	plain := k.queue()
	k.push(plain, "p", "a", "b")
	k.popIDs(plain, []string{"a"}, batch(1))
	p, _ = k.popAll("/queue/"+plain, conflating)
	k.has("a plain group, empty", p, obj{"conflation": nil, "conflationConflict": true})
	k.push(plain, "q", "c", "d")
	p, found = k.popSome("/queue/"+plain, conflating+"&batch=10")
	k.same("messages of a plain group", found, []string{"c", "d"})
	k.has("a plain group", p, obj{"conflation": nil, "conflationConflict": true})
}

func conflatePinned(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a", "b")
	k.push(queue, "q", "c", "d")
	_, found := k.popSome("/queue/"+queue+"/partition/p", conflating)
	k.same("pinned", found, []string{"b"})
	p, found := k.popSome("/queue/"+queue+"/partition/q", "consumerGroup=g&batch=10")
	k.same("the other partition, unasked", found, []string{"d"})
	k.has("the other partition, unasked", p, obj{"conflation": true})
	p, _ = k.popAll("/queue/"+queue+"/partition/q", "consumerGroup=g&conflation=false")
	k.has("leased, asked not to", p, obj{"conflation": true, "conflationConflict": true, "partition": "q", "partitionsClaimed": 1.0})

	// A plain pinned pop says nothing about the group.
	other := k.queue()
	k.push(other, "p", "a", "b")
	k.push(other, "q", "c", "d")
	k.popIDs(other, []string{"a"}, pinned("p"), batch(1))
	k.newest(other, "d")
}

func conflateDiscovery(k *kit) {
	namespace := unique("ns")
	first, second := namespace+".a", namespace+".b"
	k.push(first, "p", "a1", "a2")
	k.push(second, "p", "b1", "b2")
	all := "?namespace=" + namespace
	p, found := k.popSome(all, "consumerGroup=h&conflation=true&batch=10&partitions=10")
	k.same("messages of both", len(found), 2)
	k.has("both", p, obj{"conflation": true, "queue": ""})
	p, _ = k.popAll(all, "consumerGroup=h&conflation=true")
	k.has("nothing left", p, obj{"conflation": true, "conflationConflict": nil, "partitionsClaimed": 0.0})
	if r := k.send("GET", "/api/v1/pop"+all+"&consumerGroup=h&subscriptionMode=all", nil); r.status != 204 {
		k.Errorf("nothing left, unasked: %v, want 204", r)
	}
	k.settle(k.newest(first, "a2"), true, retry, "a2")
	p, _ = k.popSome("/queue/"+second, "consumerGroup=g&batch=1")
	k.settle(p, true, retry, "b1")
	p, found = k.popSome(all, "consumerGroup=g&conflation=true&batch=10&partitions=10")
	k.same("messages, each queue by its policy", len(found), 3)
	k.has("one of two", p, obj{"conflation": nil, "conflationConflict": true})
}

func conflateSeek(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a", "b")
	k.settle(k.newest(queue, "b"), true, completed, "b")
	group := "/api/v1/consumer-groups/g/queues/" + queue
	k.object(k.send("POST", group+"/seek", obj{"timestamp": "2020-01-01T00:00:00Z"}), 200)
	k.settle(k.newest(queue, "b"), true, completed, "b")
	k.object(k.send("DELETE", group+"?deleteMetadata=false", nil), 200)
	p, found := k.popSome("/queue/"+queue, "consumerGroup=g&batch=10")
	k.same("after its cursors went", found, []string{"b"})
	k.has("after its cursors went", p, obj{"conflation": true})
	k.object(k.send("DELETE", group+"?deleteMetadata=true", nil), 200)
	k.popIDs(queue, []string{"a", "b"}) // plain, now that it came anew

	other := k.queue()
	k.push(other, "p", "a", "b")
	k.object(k.send("POST", "/api/v1/consumer-groups/g/queues/"+other+"/seek", obj{"timestamp": "2020-01-01T00:00:00Z"}), 200)
	k.newest(other, "b") // a seek is no subscription
}

// conflateDelayed pops by partition: other pops of 1.3.0 may be late.
func conflateDelayed(k *kit) {
	queue := unique("q")
	k.configureRaw(obj{"queue": queue, "options": obj{"delayedProcessing": 3}})
	k.push(queue, "p", "a")
	pushed := time.Now()
	_, found := k.popAll("/queue/"+queue+"/partition/p", conflating)
	k.same("messages at once", found, []string{})
	k.until(pushed.Add(1500 * time.Millisecond))
	k.push(queue, "p", "b")
	var p obj
	k.eventually("the first is visible", func() bool {
		var found []string
		p, found = k.popAll("/queue/"+queue+"/partition/p", conflating)
		return len(found) > 0
	})
	k.passed("ack of what was visible", k.settle(p, true, completed, "a"), 0.0)
	k.eventually("the second is visible", func() bool {
		_, found := k.popAll("/queue/"+queue+"/partition/p", conflating)
		return len(found) == 1 && found[0] == "b"
	})
}

func conflateRefusals(k *kit) {
	queue := k.queue()
	for _, c := range []struct{ path, want string }{
		{"/queue/" + queue + "?conflation=true", "conflation requires consumerGroup: queue mode is a shared cursor with no group identity to hang a delivery policy on"},
		{"/queue/" + queue + "/partition/p?conflation=true&autoAck=true", "conflation requires consumerGroup: queue mode is a shared cursor with no group identity to hang a delivery policy on"},
		{"/queue/" + queue + "?consumerGroup=g&conflation=true&autoAck=true", "conflation cannot be combined with autoAck: auto-ack commits at delivery with no lease, so a failed handler loses the tail and the at-least-once guarantee conflation exists to provide degrades to at-most-once"},
		{"?consumerGroup=g&conflation=true&autoAck=true", "namespace or task is required"},
	} {
		got := k.object(k.send("GET", "/api/v1/pop"+c.path, nil), 400)
		k.same(c.path, got, obj{"success": false, "error": c.want, "messages": arr{}})
	}
	for _, word := range []string{"1", ""} {
		if r := k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g&conflation="+word, nil); r.status != 400 {
			k.Errorf("conflation=%q: %v", word, r)
		}
	}
	if r := k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=__QUEUE_MODE__&conflation=true", nil); r.status != 204 {
		k.Errorf("queue mode by its name: %v, want 204", r)
	}
}
