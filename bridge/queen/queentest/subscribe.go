package queentest

import (
	"fmt"
	"net/url"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func subscriptionCases() []testCase {
	rule := "queen-contract.md §4, §4.1"
	return []testCase{
		{name: "Subscribe/All", rule: rule, run: subscribeAll},
		{name: "Subscribe/New", rule: rule, run: subscribeNew},
		{name: "Subscribe/NewIsTheDefault", rule: "queen-contract.md §4 (measured)", run: subscribeDefault},
		{name: "Subscribe/AnyOtherWordIsAll", rule: "queen-contract.md §4 (measured)", run: subscribeOther},
		{name: "Subscribe/NewTakesALaterPartitionFromItsStart", rule: "queen-real-1.3.md, Pop (measured)", run: subscribeNewPartition},
		{name: "Subscribe/TheFirstContactDecides", rule: rule, run: subscribeFirstContact},
		{name: "Subscribe/FromATime", rule: "queen-contract.md §4 (measured)", run: subscribeFrom},
		{name: "Subscribe/UnreadableTimeSkipsTheOld", rule: "queen-contract.md §4 (measured)", run: subscribeGarbage},
	}
}

func subscribeAll(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	k.popIDs(queue, []string{"old"})
}

func subscribeNew(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	k.none(queue, subscribe("new"))
	k.push(queue, "p", "young")
	k.popIDs(queue, []string{"young"}, subscribe("new"))
}

// rawPop pops with a query of the case's own and returns the ids.
func (k *kit) rawPop(queue, query string) []string {
	k.Helper()
	r := k.send("GET", "/api/v1/pop/queue/"+queue+"?batch=100&"+query, nil)
	if r.status == 204 {
		return nil
	}
	var out []string
	messages, _ := k.object(r, 200)["messages"].(arr)
	for _, m := range messages {
		one, _ := m.(obj)
		out = append(out, fmt.Sprint(one["transactionId"]))
	}
	return out
}

func subscribeDefault(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	k.same("first pop", k.rawPop(queue, "consumerGroup=g"), []string(nil))
	k.push(queue, "p", "young")
	k.same("second pop", k.rawPop(queue, "consumerGroup=g&wait=true&timeout=5000"), []string{"young"})
}

func subscribeOther(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	for _, word := range []string{"ALL", "bogus", "latest"} {
		k.same(word, k.rawPop(queue, "consumerGroup="+word+"&subscriptionMode="+word), []string{"old"})
	}
	k.same("new-only", k.rawPop(queue, "consumerGroup=n&subscriptionMode=new-only"), []string(nil))
}

func subscribeNewPartition(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	k.none(queue, subscribe("new"))
	k.push(queue, "later", "a", "b")
	k.popIDs(queue, []string{"a", "b"}, subscribe("new"))
}

func subscribeFirstContact(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	k.none(queue, subscribe("new"))
	k.none(queue, subscribe("all"))
}

func subscribeFrom(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	first := k.popIDs(queue, []string{"old"}, group("watch")).Messages[0].CreatedAt
	// One append per time step: createdAt is the broker's clock.
	var second time.Time
	k.eventually("a later message", func() bool {
		id := unique("m")
		k.push(queue, "q", id)
		p := k.pop(queue, group("watch"), pinned("q"))
		k.ack(p, completed)
		second = p.Messages[0].CreatedAt
		return second.Sub(first) > 100*time.Millisecond
	})
	from := func(name string, at time.Time, mode string, want bool) {
		query := "consumerGroup=" + name + "&subscriptionMode=" + mode + "&partitions=10&subscriptionFrom=" + url.QueryEscape(at.Format(time.RFC3339Nano))
		got := k.rawPop(queue, query)
		has := false
		for _, id := range got {
			has = has || id == "old"
		}
		if has != want || len(got) == 0 {
			k.Errorf("from %v with %s: %v; old wanted: %t", at, mode, got, want)
		}
	}
	from("before-new", first.Add(-time.Second), "new", true)
	from("before-all", first.Add(-time.Second), "all", true)
	from("after-new", second, "new", false)
	from("after-all", second, "all", false)
	k.same("now beats all", k.rawPop(queue, "consumerGroup=now&subscriptionMode=all&subscriptionFrom=now"), []string(nil))
}

// A word PostgreSQL reads as a time, such as yesterday, counts as that time.
func subscribeGarbage(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "old")
	k.same("unreadable", k.rawPop(queue, "consumerGroup=g&subscriptionMode=all&subscriptionFrom=garbage"), []string(nil))
	if _, err := k.client.Pop(k.Context(), request(queue, func(r *queen.PopRequest) { r.SubscriptionFrom = "garbage" })); err == nil {
		k.Error("the client let it pass")
	}
}
