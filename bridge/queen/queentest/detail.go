package queentest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// detailCases are measured facts that no other case needs: forms, sizes and
// leniencies a client may run into.
func detailCases() []testCase {
	return []testCase{
		{name: "Errors/OptionsAndPages", rule: "queen-contract.md §0 (measured)", run: detailOptions},
		{name: "Errors/RoutesOfLaterVersions", rule: "queen-real-1.3.md, Status, errors, auth (measured)", run: detailLater, only: 1},
		{name: "Errors/GarbageIDs", rule: "queen-contract.md §1.5; queen-real-1.3.md, DLQ, messages, groups, traces (measured)", run: detailGarbage, only: 1},
		{name: "Times/EachRouteHasItsForm", rule: "queen-contract.md §0 (measured)", run: detailTimes},
		{name: "Push/LongPartitionsAndGroups", rule: "queen-contract.md §3 (measured)", run: detailLongNames},
		{name: "Push/DataIsNoPayload", rule: "queen-contract.md §3 (measured)", run: detailData},
		{name: "Push/EmptyQueueNameIsLost", rule: "queen-contract.md §1.6 (measured)", run: detailNoQueue, only: 1},
		{name: "Ack/FieldsOfAnotherType", rule: "queen-contract.md §5 (measured)", run: detailAckTypes},
		{name: "LongPoll/WokenBySeek", rule: "queen-contract.md §4.1 (measured)", run: detailSeekWakes},
		{name: "Queue/OptionsAreTakenLoosely", rule: "queen-real-1.3.md, Queues (measured)", run: detailOptionTypes},
		{name: "Queue/WhatCreatesOne", rule: "queen-real-1.3.md, Queues (measured)", run: detailCreates},
		{name: "Queue/RetentionTakesLeasedOnesToo", rule: "queen-real-1.3.md, Queues (measured)", run: detailRetention},
		{name: "Queue/MaxWaitTimeDeletes", rule: "queen-real-1.3.md, Queues (measured)", run: detailMaxWait},
		{name: "Group/SeekRefusals", rule: "queen-real-1.3.md, DLQ, messages, groups, traces (measured)", run: detailSeek, only: 1},
		{name: "Messages/TheNewestOfAnID", rule: "queen-contract.md §7.4 (measured)", run: detailNewest},
		{name: "Messages/WhatIsNoJSONIsNull", rule: "queen-contract.md §7.4 (measured)", run: detailNoJSON},
		{name: "Messages/Statuses", rule: "queen-real-1.3.md, DLQ, messages, groups, traces (measured)", run: detailStatuses},
		{name: "DeadLetters/LargeMessage", rule: "queen-contract.md §7.1 (measured)", run: detailLargeDead, alone: true},
		{name: "DeadLetters/EveryRowOfAnAddressGoes", rule: "queen-contract.md §7.3 (measured)", run: detailDeleteAll},
		{name: "Fence/FirstLeaseCounts", rule: "queen-real-1.3.md, Transaction (measured)", run: detailFirstLease, only: 1},
		{name: "Transaction/ManyPushes", rule: "queen-real-1.3.md, Transaction (measured)", run: detailManyPushes},
		{name: "Transaction/TwentyMegabytes", rule: "queen-real-1.3.md, Push (measured)", run: detailLargePush, alone: true},
		{name: "Transaction/KeepsTraceIDs", rule: "queen-contract.md §8; queen-real-1.3.md, traces (measured)", run: detailTraceID},
		{name: "Timer/LongTxnIsNotChecked", rule: "queen-contract.md §9 (measured)", run: detailLongTxn},
		{name: "Timer/ModeCountIsAList", rule: "queen-contract.md §9 (measured)", run: detailCount},
		{name: "KV/NumbersAndNUL", rule: "queen-contract.md §10 (measured)", run: detailNumbers},
		{name: "KV/IfMatchIsIgnored", rule: "queen-contract.md §10 (measured)", run: detailIfMatch},
		{name: "KV/MissingKeyIsVersion0", rule: "queen-contract.md §10 (measured)", run: detailVersion0},
		{name: "Rate/KVReads", rule: "queen-contract.md §10 (measured)", run: detailReads, alone: true},
	}
}

func detailOptions(k *kit) {
	r := k.send("OPTIONS", "/api/v1/push", nil)
	if r.status != 405 || r.header.Get("Access-Control-Allow-Origin") != "" {
		k.Errorf("OPTIONS: %v %v, want 405 and no CORS", r, r.header)
	}
	if r := k.send("GET", "/no-such-page", nil); r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		k.Errorf("a page there is not: %v %s", r, r.header.Get("Content-Type"))
	}
}

func detailLater(k *kit) {
	for _, c := range []struct{ method, path string }{
		{"POST", "/api/v1/dlq/22622f9a-69e8-4c70-9ff1-4c4d8647cf50/replay"}, {"POST", "/api/v1/fetch"},
		{"POST", "/api/v1/resources/kv/list"}, {"GET", "/api/v1/resources/kv/namespaces"},
	} {
		k.same(c.path, k.object(k.send(c.method, c.path, obj{}), 404)["code"], any("no_such_route"))
	}
	if r := k.send("DELETE", "/api/v1/dlq?queue=none", nil); r.status != 405 {
		k.Errorf("purge: %v, want 405", r)
	}
}

func detailGarbage(k *kit) {
	for _, c := range []struct{ method, path string }{
		{"GET", "/api/v1/messages/zz/a"}, {"DELETE", "/api/v1/messages/zz/a"},
		{"POST", "/api/v1/messages/zz/a/retry"}, {"GET", "/api/v1/traces/zz/a"},
	} {
		got := k.object(k.send(c.method, c.path, nil), 500)
		if text, _ := got["error"].(string); !strings.HasSuffix(text, "db error") {
			k.Errorf("%s %s: %v", c.method, c.path, got)
		}
	}
}

func detailTimes(k *kit) {
	const micro, milli = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`
	const zoned = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,5}[1-9])?\+00:00$`
	like := func(what string, got any, want string) {
		k.Helper()
		if text, _ := got.(string); !regexp.MustCompile(want).MatchString(text) {
			k.Errorf("%s: %v, want the form %s", what, got, want)
		}
	}
	queue := k.queue()
	p := k.bury(queue, "a")
	k.push(queue, "p", "b")
	got := k.object(k.send("GET", "/api/v1/pop/queue/"+queue+"?consumerGroup=g", nil), 200)
	message, _ := got["messages"].(arr)[0].(obj)
	like("pop", message["createdAt"], micro)
	like("lease", k.object(k.send("POST", fmt.Sprintf("/api/v1/lease/%v/extend", got["leaseId"]), obj{"seconds": 90}), 200)["newExpiresAt"], micro)
	dead, _ := k.object(k.send("GET", "/api/v1/dlq?queue="+queue, nil), 200)["messages"].(arr)[0].(obj)
	like("dead letter", dead["failedAt"], milli)
	k.same("createdAt of a dead letter", dead["createdAt"], dead["failedAt"])
	like("queue", k.object(k.send("GET", "/api/v1/resources/queues/"+queue, nil), 200)["createdAt"], milli)
	like("message", k.object(k.send("GET", "/api/v1/messages/"+p.Messages[0].PartitionID+"/b", nil), 200)["createdAt"], milli)
	key := "/api/v1/kv/queentest/" + unique("k")
	k.object(k.send("PUT", key, obj{"value": 1, "ttlSeconds": 60}), 200)
	row := k.object(k.send("GET", key, nil), 200)
	like("key", row["updatedAt"], zoned)
	like("key", row["expiresAt"], zoned)
}

func detailLongNames(k *kit) {
	queue := k.queue()
	partition, group := strings.Repeat("p", 10_000), strings.Repeat("g", 3_000)
	k.push(queue, partition, "a")
	r := request(queue)
	r.Group = group
	p, err := k.client.Pop(k.Context(), r)
	k.must(err)
	if len(p.Messages) != 1 || p.Messages[0].Partition != partition {
		k.Fatalf("%d messages", len(p.Messages))
	}
	k.complete(p)
	key := strings.Repeat("k", 3_000)
	k.schedule(far(queue, key))
	cancelled, err := k.client.CancelTimer(k.Context(), queue, key)
	k.must(err)
	k.same("cancel of a key of 3,000 bytes", cancelled, queen.TimerCancelled)
}

func detailData(k *kit) {
	if r := k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": unique("q"), "data": 1}}}); r.status != 400 {
		k.Errorf("data instead of payload: %v, want 400", r)
	}
}

func detailNoQueue(k *kit) {
	got := k.list(k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": "", "transactionId": "a", "payload": 1}}}), 201)
	k.has("verdict", got[0], obj{"status": "buffered"})
}

func detailAckTypes(k *kit) {
	_, p := k.five()
	for name, value := range map[string]any{"status": 1, "transactionId": 1, "partitionId": arr{}, "leaseId": true, "error": obj{}} {
		a := merge(rawAck(p, 0, "completed"), obj{name: value})
		if r := k.send("POST", "/api/v1/ack/batch", obj{"consumerGroup": "g", "acknowledgments": arr{a}}); r.status != 400 {
			k.Errorf("%s of another type: %v, want 400", name, r)
		}
	}
	k.complete(p)
}

func detailSeekWakes(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	k.complete(k.popIDs(queue, []string{"a"}))
	k.parked(request(queue), []string{"a"}, func() {
		k.object(k.send("POST", "/api/v1/consumer-groups/g/queues/"+queue+"/seek", obj{"timestamp": "2020-01-01T00:00:00Z"}), 200)
	})
}

func detailOptionTypes(k *kit) {
	queue := unique("q")
	got := k.configureRaw(obj{"queue": queue, "mode": "sideways", "options": obj{"leaseTime": -5, "retryLimit": "7", "dedupWindowSeconds": -1, "maxSize": 1, "unknown": true}})
	options, _ := got["options"].(obj)
	k.has("options", options, obj{"leaseTime": -5.0, "retryLimit": 7.0, "dedupWindowSeconds": 0.0, "maxSize": 1.0, "unknown": nil})
	k.push(queue, "p", "a", "b", "c") // maxSize 1 has no effect
	k.popIDs(queue, []string{"a", "b", "c"})
}

func detailCreates(k *kit) {
	there := func(queue string) bool { return k.send("GET", "/api/v1/resources/queues/"+queue, nil).status == 200 }
	pinnedOnly, timed, asked, popped := unique("q"), unique("q"), unique("q"), unique("q")
	k.send("GET", "/api/v1/pop/queue/"+pinnedOnly+"/partition/p?consumerGroup=g", nil)
	k.schedule(far(timed, "k"))
	k.send("GET", "/api/v1/resources/queues/"+asked+"/depth", nil)
	k.send("GET", "/api/v1/pop/queue/"+popped+"?consumerGroup=g", nil)
	for queue, want := range map[string]bool{pinnedOnly: false, timed: false, asked: false, popped: true} {
		k.same("there is "+queue, there(queue), want)
	}
}

// detailRetention: with retention by age, leased messages go too; the lease
// can still be settled, and the id is still known.
func detailRetention(k *kit) {
	queue := unique("q")
	k.configureRaw(obj{"queue": queue, "options": obj{"retentionEnabled": true, "retentionSeconds": 2, "leaseTime": 60}})
	k.push(queue, "p", "a")
	p := k.popIDs(queue, []string{"a"})
	path := "/api/v1/messages/" + p.Messages[0].PartitionID + "/a"
	k.within(20*time.Second, "the leased one is deleted", func() bool { return k.send("GET", path, nil).status == 404 })
	k.same("again", k.tryPush(queue, "p", "a")[0].Status, queen.PushDuplicate)
	k.complete(p)
	k.none(queue)
}

func detailMaxWait(k *kit) {
	queue := unique("q")
	k.configureRaw(obj{"queue": queue, "options": obj{"maxWaitTimeSeconds": 2}})
	k.push(queue, "p", "a")
	k.within(20*time.Second, "it is deleted", func() bool {
		n, err := k.client.Depth(k.Context(), queue, "g")
		return err == nil && n == 0
	})
	k.none(queue)
	k.same("dead letters", len(k.deadLetters(queue)), 0)
}

func detailSeek(k *kit) {
	queue, _ := k.five()
	seek := func(queue string, body obj) int {
		return k.send("POST", "/api/v1/consumer-groups/g/queues/"+queue+"/seek", body).status
	}
	k.same("an unknown queue", seek(unique("none"), obj{"toEnd": true}), 404)
	k.same("a time that is none", seek(queue, obj{"timestamp": "soonish"}), 500)
	k.same("nowhere", seek(queue, obj{}), 400)
}

func detailNewest(k *kit) {
	queue := k.queue(dedup(0))
	for i := range 2 {
		k.list(k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": queue, "partition": "p", "transactionId": "x", "payload": i}}}), 201)
	}
	p := k.popIDs(queue, []string{"x", "x"})
	got := k.object(k.send("GET", "/api/v1/messages/"+p.Messages[0].PartitionID+"/x", nil), 200)
	k.has("message", got, obj{"data": 1.0, "id": p.Messages[1].ID})
}

func detailNoJSON(k *kit) {
	queue := k.queue()
	k.send("POST", "/api/v1/push", `{"items":[{"queue":"`+queue+`","partition":"p","transactionId":"a","payload":"\ud800"}]}`)
	k.send("POST", "/api/v1/push", `{"items":[{"queue":"`+queue+`","partition":"p","transactionId":"b","payload":1e400}]}`)
	p := k.popIDs(queue, []string{"a", "b"})
	for _, id := range []string{"a", "b"} {
		k.has("message "+id, k.object(k.send("GET", "/api/v1/messages/"+p.Messages[0].PartitionID+"/"+id, nil), 200), obj{"data": nil})
	}
}

// detailStatuses: while a partition is leased, all that is left of it is
// processing.
func detailStatuses(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "done", "dead", "held", "behind")
	p := k.popIDs(queue, []string{"done", "dead"}, batch(2))
	k.ack(p, completed, dlq)
	status := func(id string) any {
		k.Helper()
		return k.object(k.send("GET", "/api/v1/messages/"+p.Messages[0].PartitionID+"/"+id, nil), 200)["status"]
	}
	k.same("before", status("behind"), any("pending"))
	k.popIDs(queue, []string{"held"}, batch(1))
	for id, want := range map[string]string{"done": "completed", "dead": "dead_letter", "held": "processing", "behind": "processing"} {
		k.same(id, status(id), any(want))
	}
}

func detailLargeDead(k *kit) {
	queue, text := k.queue(), strings.Repeat("0123456789", 1_260_000)
	payload, err := json.Marshal(text)
	k.must(err)
	k.commit(queen.Transaction{Pushes: []queen.Item{{Queue: queue, Partition: "p", TransactionID: "a", Payload: payload}}})
	k.ack(k.popIDs(queue, []string{"a"}), dlq)
	dead, _ := k.object(k.send("GET", "/api/v1/dlq?queue="+queue, nil), 200)["messages"].(arr)[0].(obj)
	if got, _ := dead["data"].(string); got != text {
		k.Errorf("%d bytes of %d are listed", len(got), len(text))
	}
}

func detailDeleteAll(k *kit) {
	queue := k.queue(dedup(0))
	k.push(queue, "p", "x")
	k.push(queue, "p", "x")
	var part string
	for range 2 {
		p := k.popIDs(queue, []string{"x"}, batch(1))
		part = p.Messages[0].PartitionID
		k.ack(p, dlq)
	}
	k.same("rows", len(k.deadLetters(queue)), 2)
	k.must(k.client.DeleteDeadLetter(k.Context(), part, "x"))
	k.same("rows after one deletion", len(k.deadLetters(queue)), 0)
}
