package queentest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func deadLetterCases() []testCase {
	return []testCase{
		{name: "DeadLetters/List", rule: "queen-contract.md §7.1", run: deadList},
		{name: "DeadLetters/Shape", rule: "queen-contract.md §7.1", run: deadShape},
		{name: "DeadLetters/DataIsReencoded", rule: "queen-contract.md §7.1 (measured)", run: deadData},
		{name: "DeadLetters/DeleteByAddress", rule: "queen-contract.md §7.3", run: deadDelete},
		{name: "DeadLetters/ReplayIsSeenByEveryGroup", rule: "queen-contract.md §7.2", run: deadReplay},
		{name: "Messages/ByAddress", rule: "queen-contract.md §7.4", run: messageByAddress},
		{name: "Messages/LargeTextIsReadBack", rule: "queen-contract.md §7.4 (measured)", run: messageReadBack},
	}
}

// bury dead-letters messages one by one, each with its id as the reason.
func (k *kit) bury(queue string, ids ...string) queen.Popped {
	k.Helper()
	k.push(queue, "p", ids...)
	var last queen.Popped
	for _, id := range ids {
		last = k.popIDs(queue, []string{id}, batch(1))
		all := acks(last, dlq)
		all[0].Error = "because " + id
		k.same("dlq of "+id, k.tryAck(all)[0].Success, true)
	}
	return last
}

func deadList(k *kit) {
	queue := k.queue()
	k.bury(queue, "a", "b", "c")
	list := func(q queen.DeadLetterQuery) (out []string) {
		k.Helper()
		q.Queue = queue
		dead, err := k.client.DeadLetters(k.Context(), q)
		k.must(err)
		for _, d := range dead {
			out = append(out, d.TransactionID)
		}
		return out
	}
	k.same("newest first", list(queen.DeadLetterQuery{}), []string{"c", "b", "a"})
	k.same("limit and offset", list(queen.DeadLetterQuery{Limit: 1, Offset: 1}), []string{"b"})
	k.same("by group", list(queen.DeadLetterQuery{Group: "g"}), []string{"c", "b", "a"})
	k.same("another group", list(queen.DeadLetterQuery{Group: "h"}), []string(nil))
	k.same("unknown queue", len(k.deadLetters(unique("none"))), 0)
}

func deadShape(k *kit) {
	queue := k.queue()
	p := k.bury(queue, "a")
	got := k.object(k.send("GET", "/api/v1/dlq?queue="+queue, nil), 200)
	k.has("answer", got, obj{"total": 1.0, "pagination": obj{"limit": 100.0, "offset": 0.0}})
	messages, _ := got["messages"].(arr)
	row, _ := messages[0].(obj)
	k.has("row", row, obj{"transactionId": "a", "partitionId": p.Messages[0].PartitionID, "queue": queue, "partition": "p", "consumerGroup": "g",
		"errorMessage": "because a", "data": obj{"id": "a"}, "producerSub": nil}, "id", "retryCount", "createdAt", "failedAt")
	if d := time.Since(k.deadLetters(queue)[0].FailedAt); d < -time.Minute || d > time.Minute {
		k.Errorf("failed %v ago", d)
	}
}

func deadData(k *kit) {
	queue := k.queue()
	_, err := k.client.Push(k.Context(), []queen.Item{{Queue: queue, Partition: "p", TransactionID: "a", Payload: []byte(`{ "b":"\u00e9", "a":1 }`)}})
	k.must(err)
	k.ack(k.popIDs(queue, []string{"a"}), dlq)
	var got any
	k.must(json.Unmarshal(k.deadLetters(queue)[0].Data, &got))
	k.same("data", got, any(obj{"a": 1.0, "b": "é"}))
}

func deadDelete(k *kit) {
	queue := k.queue()
	p := k.bury(queue, "a/1", "b")
	id := p.Messages[0].PartitionID
	k.must(k.client.DeleteDeadLetter(k.Context(), id, "a/1"))
	k.same("left", len(k.deadLetters(queue)), 1)
	if err := k.client.DeleteDeadLetter(k.Context(), id, "a/1"); !errors.Is(err, queen.ErrNotFound) {
		k.Errorf("delete again: %v", err)
	}
}

func deadReplay(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	k.complete(k.pop(queue, group("h"))) // h is through with it
	p := k.popIDs(queue, []string{"a"})
	k.ack(p, dlq)
	path := "/api/v1/messages/" + p.Messages[0].PartitionID + "/a/retry"
	got := k.object(k.send("POST", path, nil), 200)
	k.has("replay", got, obj{"success": true, "queue": queue, "partition": "p", "dlqRowRemoved": true})
	as, _ := got["replayedAs"].(obj)
	k.has("replayed as", as, obj{"status": "queued", "queueName": queue}, "transaction_id")
	if as["transaction_id"] == "a" {
		k.Error("replayed under its old id")
	}
	k.same("left", len(k.deadLetters(queue)), 0)
	for _, g := range []string{"g", "h"} {
		again := k.pop(queue, group(g))
		k.same("message of group "+g, again.Messages[len(again.Messages)-1].TransactionID, as["transaction_id"])
	}
	if r := k.send("POST", path, nil); r.status != 404 {
		k.Errorf("replay again: %v", r)
	}
}

func messageByAddress(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a/1", "b")
	p := k.popIDs(queue, []string{"a/1", "b"})
	path := "/api/v1/messages/" + p.Messages[0].PartitionID
	got := k.object(k.send("GET", path+"/a%2F1", nil), 200)
	k.has("message", got, obj{"transactionId": "a/1", "data": obj{"id": "a/1"}, "status": "processing"})
	k.ack(p, completed, completed)
	k.has("message", k.object(k.send("GET", path+"/b", nil), 200), obj{"transactionId": "b", "status": "completed"})
	k.has("unknown", k.object(k.send("GET", path+"/none", nil), 404), obj{"error": "Message not found"})
}

// messageReadBack: what the bridge keeps as a JSON string comes back byte for
// byte, consumed or not, by the id of its partition.
func messageReadBack(k *kit) {
	queue, text := k.queue(), strings.Repeat("{\"a\":\"\\u0000 é\\n\"}\n", 100_000)
	payload, err := json.Marshal(text)
	k.must(err)
	for range 2 {
		v, err := k.client.Push(k.Context(), []queen.Item{{Queue: queue, Partition: "7", TransactionID: "a/1", Payload: payload}})
		k.must(err)
		if v[0].Status != queen.PushQueued && v[0].Status != queen.PushDuplicate {
			k.Fatalf("push: %+v", v)
		}
	}
	partitions, err := k.client.Partitions(k.Context(), queue)
	k.must(err)
	k.complete(k.pop(queue))
	m, err := k.client.Message(k.Context(), partitions["7"], "a/1")
	k.must(err)
	var got string
	k.must(json.Unmarshal(m.Data, &got))
	if got != text || m.Queue != queue || m.Partition != "7" || m.Status != "completed" {
		k.Errorf("%d bytes of %s/%s, %s; want %d", len(got), m.Queue, m.Partition, m.Status, len(text))
	}
	if _, err := k.client.Message(k.Context(), partitions["7"], "none"); !errors.Is(err, queen.ErrNotFound) {
		k.Errorf("an unknown id: %v", err)
	}
	if _, err := k.client.Partitions(k.Context(), unique("none")); !errors.Is(err, queen.ErrNotFound) {
		k.Errorf("an unknown queue: %v", err)
	}
}
