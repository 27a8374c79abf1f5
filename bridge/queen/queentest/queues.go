package queentest

import (
	"errors"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func queueCases() []testCase {
	return []testCase{
		{name: "Queue/ConfigureReplaces", rule: "queen-contract.md §2.1 (measured)", run: queueReplaces},
		{name: "Queue/ConfigureAnswers", rule: "queen-contract.md §2.1", run: queueEchoes},
		{name: "Queue/ConfigureRefuses", rule: "queen-contract.md §2.1 (measured)", run: queueRefuses},
		{name: "Queue/NamespaceAndTask", rule: "queen-contract.md §2.1", run: queueNamespace},
		{name: "Queue/Depth", rule: "queen-contract.md §2.2 (measured)", run: queueDepth},
		{name: "Queue/List", rule: "queen-contract.md §2.2", run: queueList},
		{name: "Queue/Detail", rule: "queen-contract.md §2.2", run: queueDetail},
		{name: "Queue/Delete", rule: "queen-contract.md §2.2", run: queueDelete},
		{name: "Queue/DelayedProcessing", rule: "queen-contract.md §2.1", run: queueDelayed},
		{name: "Queue/CompletedRetentionKeepsTheUnconsumed", rule: "queen-contract.md §2.1 (measured)", run: queueRetention},
	}
}

// configureRaw configures with options the client does not have.
func (k *kit) configureRaw(body obj) obj {
	k.Helper()
	return k.object(k.send("POST", "/api/v1/configure", body), 200)
}

func queueReplaces(k *kit) {
	queue := unique("q")
	k.configureRaw(obj{"queue": queue, "namespace": "ns1", "task": "t1", "options": obj{"leaseTime": 45, "retryLimit": 7, "dedupWindowSeconds": 60}})
	got := k.configureRaw(obj{"queue": queue, "mode": "replace", "options": obj{"leaseTime": 50}})
	k.has("answer", got, obj{"namespace": "", "task": ""})
	options, _ := got["options"].(obj)
	k.has("options", options, obj{"leaseTime": 50.0, "retryLimit": 3.0, "dedupWindowSeconds": 3600.0, "retentionEnabled": false})
}

func queueEchoes(k *kit) {
	queue := unique("q")
	got := k.configureRaw(obj{"queue": queue, "namespace": "ns1", "task": "t1", "options": obj{"leaseTime": 45, "retryLimit": 7, "dedupWindowSeconds": 259200,
		"retentionEnabled": true, "retentionSeconds": 604800, "completedRetentionSeconds": 3600}})
	k.has("answer", got, obj{"configured": true, "queue": queue, "namespace": "ns1", "task": "t1"})
	options, _ := got["options"].(obj)
	k.has("options", options, obj{"leaseTime": 45.0, "retryLimit": 7.0, "dedupWindowSeconds": 259200.0, "retentionEnabled": true,
		"retentionSeconds": 604800.0, "completedRetentionSeconds": 3600.0, "deadLetterQueue": true, "dlqAfterMaxRetries": true})
}

func queueRefuses(k *kit) {
	if r := k.send("POST", "/api/v1/configure", obj{"options": obj{}}); r.status != 400 {
		k.Errorf("no queue: %v", r)
	}
	if r := k.send("POST", "/api/v1/configure", obj{"queue": unique("q"), "options": obj{"leaseTime": "abc"}}); r.status != 500 {
		k.Errorf("a word as lease time: %v", r)
	}
}

func queueNamespace(k *kit) {
	queue, namespace := unique("q"), unique("ns")
	k.must(k.client.Configure(k.Context(), queen.QueueOptions{Queue: queue, Namespace: namespace, Task: "t", Lease: time.Minute}))
	k.push(queue, "p", "a")
	k.popIDs("", []string{"a"}, discovery(namespace, "t"))
	dotted := unique("dotted") + ".t"
	k.must(k.client.Configure(k.Context(), queen.QueueOptions{Queue: dotted, Lease: time.Minute})) // wipes what the name had set
	k.push(dotted, "p", "a")
	k.none("", discovery(dotted[:len(dotted)-2], ""))
}

func queueDepth(k *kit) {
	queue, p := k.five()
	depth := func(group string) int {
		k.Helper()
		n, err := k.client.Depth(k.Context(), queue, group)
		k.must(err)
		return n
	}
	k.same("leased ones count", depth("g"), 5)
	k.ack(p, "", completed)
	k.same("after an ack of two", depth("g"), 3)
	k.same("of a group that never popped", depth("other"), 5)
	if _, err := k.client.Depth(k.Context(), unique("none"), "g"); !errors.Is(err, queen.ErrNotFound) {
		k.Errorf("of an unknown queue: %v", err)
	}
}

func queueList(k *kit) {
	queue, _ := k.five()
	list, err := k.client.Queues(k.Context())
	k.must(err)
	if !slices.Contains(list, queen.QueueInfo{Name: queue}) {
		k.Errorf("%s is not among %d queues", queue, len(list))
	}
}

func queueDetail(k *kit) {
	queue, p := k.five()
	got := k.object(k.send("GET", "/api/v1/resources/queues/"+queue, nil), 200)
	k.has("detail", got, obj{"name": queue, "namespace": ""}, "id", "createdAt", "totals")
	parts, _ := got["partitions"].(arr)
	if len(parts) != 1 {
		k.Fatalf("partitions %v", parts)
	}
	one, _ := parts[0].(obj)
	k.has("partition", one, obj{"name": "p", "id": p.Messages[0].PartitionID})
	k.has("unknown", k.object(k.send("GET", "/api/v1/resources/queues/"+unique("none"), nil), 404), obj{"error": "Queue not found"})
}

func queueDelete(k *kit) {
	queue := k.queue()
	k.bury(queue, "a")
	k.push(queue, "p", "b")
	path := "/api/v1/resources/queues/" + queue
	k.same("delete", k.object(k.send("DELETE", path, nil), 200), obj{"queue": queue, "deleted": true, "existed": true})
	k.same("dead letters", len(k.deadLetters(queue)), 0)
	k.has("delete again", k.object(k.send("DELETE", path, nil), 200), obj{"deleted": false, "existed": false})
	k.push(queue, "p", "b") // ids are forgotten with it
	k.popIDs(queue, []string{"b"})
}

func queueDelayed(k *kit) {
	queue := unique("q")
	k.configureRaw(obj{"queue": queue, "options": obj{"delayedProcessing": 1}})
	k.push(queue, "p", "a")
	k.none(queue)
	k.popIDs(queue, []string{"a"})
}

func queueRetention(k *kit) {
	queue := unique("q")
	k.configureRaw(obj{"queue": queue, "options": obj{"retentionEnabled": true, "completedRetentionSeconds": 1}})
	k.push(queue, "done", "a")
	k.push(queue, "open", "b")
	p := k.popIDs(queue, []string{"a"}, pinned("done"))
	k.ack(p, completed)
	// Not by popping: a group that has yet to consume it would keep it.
	path := "/api/v1/messages/" + p.Messages[0].PartitionID + "/a"
	k.within(20*time.Second, "the consumed one is deleted", func() bool { return k.send("GET", path, nil).status == 404 })
	k.none(queue, pinned("done"), group("another"))
	k.popIDs(queue, []string{"b"}, pinned("open"))
}

func groupCases() []testCase {
	return []testCase{
		{name: "Group/SeekToEnd", rule: "queen-contract.md §7.5", run: groupSeekEnd},
		{name: "Group/SeekToATime", rule: "queen-contract.md §7.5", run: groupSeekTime},
		{name: "Group/Lanes", rule: "queen-contract.md §7.5", run: groupLanes},
		{name: "Group/List", rule: "queen-contract.md §7.5", run: groupList},
		{name: "Group/Delete", rule: "queen-contract.md §7.5 (measured)", run: groupDelete},
	}
}

func groupSeekEnd(k *kit) {
	queue, p := k.five()
	k.object(k.send("POST", "/api/v1/consumer-groups/g/queues/"+queue+"/seek", obj{"toEnd": true}), 200)
	k.refused("ack after a seek", acks(p, completed))
	k.gone(queue, "g")
	k.push(queue, "p", "m6")
	k.popIDs(queue, []string{"m6"})
}

func groupSeekTime(k *kit) {
	queue, p := k.five()
	k.complete(p)
	k.object(k.send("POST", "/api/v1/consumer-groups/g/queues/"+queue+"/seek", obj{"timestamp": p.Messages[0].CreatedAt.Add(-time.Minute).Format(time.RFC3339Nano)}), 200)
	k.popIDs(queue, numbered("m", 5))
	if r := k.send("POST", "/api/v1/consumer-groups/g/queues/"+queue+"/seek", obj{}); r.status != 400 {
		k.Errorf("a seek to nowhere: %v", r)
	}
}

func groupList(k *kit) {
	queue, name := k.queue(), unique("group")
	k.push(queue, "p", "a")
	k.popIDs(queue, []string{"a"}, group(name))
	for _, g := range k.list(k.send("GET", "/api/v1/consumer-groups", nil), 200) {
		if g["name"] == name {
			k.has("group", g, obj{"queueName": queue}, "totalLag", "state", "subscriptionMode")
			return
		}
	}
	k.Errorf("group %s is not listed", name)
}

func groupDelete(k *kit) {
	queue, name := k.queue(), unique("group")
	k.push(queue, "p", "a")
	k.ack(k.popIDs(queue, []string{"a"}, group(name)), completed)
	if r := k.send("DELETE", "/api/v1/consumer-groups/"+name, nil); r.status != 200 {
		k.Fatalf("delete: %v", r)
	}
	k.popIDs(queue, []string{"a"}, group(name)) // anew
}

// groupLanes: how far a group is in each partition, and who holds it.
func groupLanes(k *kit) {
	queue, name := k.queue(), unique("group")
	k.push(queue, "held", "a", "b")
	k.push(queue, "done", "c")
	held := k.pop(queue, group(name), pinned("held"))
	k.complete(k.pop(queue, group(name), pinned("done")))
	lanes := func() map[string]obj {
		one, _ := k.object(k.send("GET", "/api/v1/consumer-groups/"+name, nil), 200)[queue].(obj)
		all := map[string]obj{}
		list, _ := one["partitions"].(arr)
		for _, row := range list {
			row, _ := row.(obj)
			all[row["partition"].(string)] = row
		}
		return all
	}
	k.has("held", lanes()["held"], obj{"offsetLag": float64(2), "leaseActive": true}, "timeLagSeconds")
	k.has("done", lanes()["done"], obj{"offsetLag": float64(0), "leaseActive": false, "timeLagSeconds": float64(0)})
	k.object(k.send("POST", "/api/v1/consumer-groups/"+name+"/queues/"+queue+"/partitions/done/seek", obj{"timestamp": "1970-01-01T00:00:00.000000Z"}), 200)
	k.has("done, after a seek", lanes()["done"], obj{"offsetLag": float64(1), "leaseActive": false})
	k.has("held, after the seek of another", lanes()["held"], obj{"offsetLag": float64(2), "leaseActive": true})
	k.complete(held)
	if r := k.send("POST", "/api/v1/consumer-groups/"+name+"/queues/"+queue+"/partitions/none/seek", obj{"timestamp": "1970-01-01T00:00:00Z"}); r.status != 404 {
		k.Errorf("a seek in a partition that there is not: %v", r)
	}
}
