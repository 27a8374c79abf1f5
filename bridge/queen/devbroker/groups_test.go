package devbroker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// A seek takes the lease and moves the group; a deleted group starts anew.
func TestSeekAndDeleteGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "m1")
		time.Sleep(time.Minute)
		middle := time.Now().UTC().Format(time.RFC3339Nano)
		a.push("q", "p", "m2")
		a.push("q", "other", "o1")
		p := a.pop("/queue/q/partition/p", "g", "")
		seek := func(path string, body obj) reply {
			return a.do("POST", "/api/v1/consumer-groups/g/queues/q"+path+"/seek", body)
		}
		if r := seek("/partitions/p", obj{"timestamp": middle}); r.status != 200 || r.json(t).(obj)["partitionName"] != "p" {
			t.Errorf("seek of one partition = %d %s", r.status, r.text)
		}
		if got := a.ack(p, "g", "m1 completed"); got[0] != "invalid or expired lease" {
			t.Errorf("ack after a seek = %v", got)
		}
		if got := a.pop("/queue/q/partition/p", "g", "").txns(); got != "m2" {
			t.Errorf("after the seek: %q", got)
		}
		seek("", obj{"toEnd": true})
		if got := a.pop("/queue/q", "g", "partitions=9").txns(); got != "" {
			t.Errorf("after a seek to the end: %q", got)
		}
		for body, status := range map[string]int{`{}`: 400, `{"timestamp":"garbage"}`: 500} {
			if r := a.do("POST", "/api/v1/consumer-groups/g/queues/q/seek", body); r.status != status {
				t.Errorf("seek %s = %d, want %d", body, r.status, status)
			}
		}
		a.do("POST", "/api/v1/configure", obj{"queue": "empty"})
		for _, path := range []string{"none", "empty", "q/partitions/none"} {
			if r := a.do("POST", "/api/v1/consumer-groups/g/queues/"+path+"/seek", obj{"toEnd": true}); r.status != 404 {
				t.Errorf("seek of %s = %d, want 404", path, r.status)
			}
		}
		parked := a.park("/queue/q", "g", "timeout=1000&batch=9&partitions=9")
		synctest.Wait()
		if r := a.do("DELETE", "/api/v1/consumer-groups/g", nil); r.json(t).(obj)["deletedPartitions"] != num(2) {
			t.Errorf("delete = %s, want 2 partitions", r.text)
		}
		if got := (<-parked.done).txns(); got != "m1 m2 o1" {
			t.Errorf("the parked pop of a deleted group got %q, want all of it: a first contact", got)
		}
	})
}

// A group that is deleted but for its metadata begins where its subscription
// says: at its first contact, or at the time that was set.
func TestDeleteKeepsTheSubscription(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "old")
		time.Sleep(time.Second)
		a.do("GET", "/api/v1/pop/queue/q?consumerGroup=g&subscriptionMode=new", nil)
		a.push("q", "p", "new")
		again := func() string {
			a.do("DELETE", "/api/v1/consumer-groups/g/queues/q?deleteMetadata=false", nil)
			return a.pop("/queue/q", "g", "").txns()
		}
		a.pop("/queue/q", "g", "autoAck=true")
		if got := again(); got != "new" {
			t.Errorf("began again with %q", got)
		}
		a.do("POST", "/api/v1/consumer-groups/g/subscription", obj{"subscriptionTimestamp": "1999-01-01T00:00:00Z"})
		if got := again(); got != "old new" {
			t.Errorf("began again with %q, want all since 1999", got)
		}
		if r := a.do("DELETE", "/api/v1/consumer-groups/g?deleteMetadata=1", nil); r.status != 400 {
			t.Errorf("deleteMetadata=1 = %d", r.status)
		}
	})
}

// A subscription time moves no cursor; it counts for later partitions, on disk
// too.
func TestSubscriptionTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	a.push("q", "p1", "a")
	a.push("q", "p2", "b")
	a.pop("/queue/q", "g", "partitions=1")
	subscribe := func(body string) reply {
		return a.do("POST", "/api/v1/consumer-groups/g/subscription", body)
	}
	if r := subscribe(`{"subscriptionTimestamp":"2100-01-01T00:00:00Z"}`); r.text != `{"success":true,"rowsUpdated":1,"newTimestamp":"2100-01-01T00:00:00Z","consumerGroup":"g"}` {
		t.Errorf("subscription = %d %s", r.status, r.text)
	}
	for body, status := range map[string]int{`{}`: 400, `{"subscriptionTimestamp":"garbage"}`: 500, `x`: 400} {
		if r := subscribe(body); r.status != status {
			t.Errorf("subscription %s = %d, want %d", body, r.status, status)
		}
	}
	a = crash(t, dir)
	a.push("q", "p3", "skipped")
	// The lease of a ended with its process; which partition is first is not said.
	if got := a.pop("/queue/q", "g", "partitions=9").txns(); got != "a b" && got != "b a" {
		t.Errorf("popped %q, want what was there", got)
	}
	a.push("q", "p3", "c")
	if got := a.pop("/queue/q", "g", "partitions=9").txns(); got != "c" {
		t.Errorf("popped %q, want what came after the first look", got)
	}
}

// One group shows its partitions, and who holds them.
func TestOneGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "m1", "m2")
		p := a.pop("/queue/q", "g", "batch=1")
		look := func() (row, list obj) {
			row = a.do("GET", "/api/v1/consumer-groups/g", nil).json(t).(obj)["q"].(obj)["partitions"].([]any)[0].(obj)
			return row, a.do("GET", "/api/v1/consumer-groups", nil).json(t).([]any)[0].(obj)
		}
		if row, list := look(); row["workerId"] != p.LeaseID || row["leaseActive"] != true || row["offsetLag"] != num(2) || list["state"] != "Dead" {
			t.Errorf("leased: %v %v", row, list)
		}
		a.ack(p, "g", "m1 completed")
		if row, list := look(); row["workerId"] != nil || row["totalConsumed"] != num(1) || list["state"] != "Stable" {
			t.Errorf("acked: %v %v", row, list)
		}
		time.Sleep(10 * time.Minute)
		if row, list := look(); row["timeLagSeconds"] != num(600) || list["state"] != "Lagging" {
			t.Errorf("behind: %v %v", row, list)
		}
	})
}

func TestLaggingGroups(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "m1")
		p := a.pop("/queue/q", "g", "")
		lagging := func(query string) int {
			return len(a.do("GET", "/api/v1/consumer-groups/lagging"+query, nil).json(t).([]any))
		}
		if n := lagging("?minLagSeconds=60"); n != 0 {
			t.Errorf("%d lag at once", n)
		}
		time.Sleep(90 * time.Minute)
		a.push("q", "late", "m2")
		a.pop("/queue/q", "g", "partitions=9")
		time.Sleep(2 * time.Minute)
		if n := lagging("?minLagSeconds=60"); n != 2 {
			t.Errorf("%d lag by a minute, want 2", n)
		}
		want := `[{"lag_hours":1.53,"worker_id":null,"offset_lag":1,"queue_name":"q","partition_id":"` + p.PartitionID +
			`","consumer_group":"g","partition_name":"p","last_consumed_at":null,"time_lag_seconds":5520,"oldest_unconsumed_at":"2000-01-01T00:00:00.000Z"}]`
		if got := a.do("GET", "/api/v1/consumer-groups/lagging", nil).text; got != want {
			t.Errorf("by an hour: %s\nwant %s", got, want)
		}
	})
}

func TestTraces(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.push("q", "p", "m1")
	p := a.pop("/queue/q", "g", "")
	for _, names := range []any{[]string{"x", "y"}, "x", nil} {
		body := obj{"transactionId": "m1", "partitionId": p.PartitionID, "data": obj{"n": 1}, "traceNames": names}
		if r := a.do("POST", "/api/v1/traces", body); r.status != 201 {
			t.Errorf("trace named %v = %d %s", names, r.status, r.text)
		}
	}
	if r := a.do("POST", "/api/v1/traces", obj{"transactionId": "m1"}); r.status != 400 {
		t.Errorf("a trace without a partition = %d", r.status)
	}
	list := func(path string) int {
		answer := a.do("GET", "/api/v1/traces/"+path, nil).json(t).(obj)
		rows, ok := answer["traces"].([]any)
		if !ok {
			rows, _ = answer["trace_names"].([]any)
		}
		return len(rows)
	}
	if n := list(p.PartitionID + "/m1"); n != 3 {
		t.Errorf("%d traces of the message, want 3", n)
	}
	if n := list("by-name/x"); n != 2 {
		t.Errorf("%d traces named x, want 2", n)
	}
	if n := list("names"); n != 2 {
		t.Errorf("%d names, want 2", n)
	}
}

// A pinned pop and a seek make a group known where they are; the first pop of
// the queue gives it a subscription, and a place everywhere else (measured
// 1.3.0).
func TestPinnedContact(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	for _, p := range []string{"p1", "p2", "p3"} {
		a.push("q", p, "old "+p)
	}
	get := func(path, mode string) string {
		r := a.do("GET", "/api/v1/pop/queue/q"+path+"?consumerGroup=g&batch=9&partitions=9&subscriptionMode="+mode, nil)
		if r.status == 204 {
			return ""
		}
		var ids []string
		for _, m := range r.json(t).(obj)["messages"].([]any) {
			ids = append(ids, m.(obj)["transactionId"].(string))
		}
		return strings.Join(ids, ", ")
	}
	if got := get("/partition/p1", "new") + get("/partition/none", "new"); got != "" {
		t.Errorf("pinned, new: %q", got)
	}
	a.do("POST", "/api/v1/consumer-groups/g/queues/q/partitions/p2/seek", obj{"toEnd": true})
	row := a.do("GET", "/api/v1/consumer-groups", nil)
	row.has(t, "0.members", num(2))
	row.has(t, "0.subscriptionMode", nil)
	if r := a.do("POST", "/api/v1/consumer-groups/g/subscription", obj{"subscriptionTimestamp": "now"}); r.status != 500 {
		t.Errorf("subscription now = %d", r.status)
	}
	a = crash(t, dir)
	a.push("q", "p1", "new p1")
	if got := get("", "all"); got != "new p1, old p3" && got != "old p3, new p1" {
		t.Errorf("the queue, all: %q", got)
	}
	a.do("GET", "/api/v1/consumer-groups", nil).has(t, "0.subscriptionMode", "all")
	if got := get("/partition/p1", "all"); got != "" {
		t.Errorf("pinned again: %q", got)
	}
}
