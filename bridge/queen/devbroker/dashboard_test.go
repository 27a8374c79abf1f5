package devbroker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// has looks up members of a reply by path: "messages.total", "queues.0.name".
func (r reply) has(t *testing.T, path string, want any) {
	t.Helper()
	v := r.json(t)
	for part := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case obj:
			v = at[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(at) {
				t.Errorf("no %s in %s", path, r.text)
				return
			}
			v = at[i]
		}
	}
	if d := cmp.Diff(want, v); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// A queue with one message of each kind: dead, completed, leased, free.
func kinds(t *testing.T, a *api) popped {
	t.Helper()
	a.do("POST", "/api/v1/configure", obj{"queue": "q", "namespace": "ns", "task": "t", "options": obj{"retryLimit": 0}})
	a.push("q", "p", "dead", "done", "held", "free")
	p := a.pop("/queue/q", "g", "batch=1")
	a.ack(p, "g", "dead failed boom")
	a.ack(a.pop("/queue/q", "g", "batch=1"), "g", "done completed")
	return a.pop("/queue/q", "g", "batch=1")
}

// What queues, scopes and the overview count agrees with each other.
func TestDashboardCounts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		kinds(t, a)
		a.configure("none", obj{})
		time.Sleep(10 * time.Second)
		all := obj{"total": num(4), "pending": num(2), "processing": num(1), "completed": num(1), "deadLetter": num(1), "failed": nil}
		waiting := obj{"total": num(4), "pending": num(1), "processing": num(1), "completed": num(1), "deadLetter": num(1)}
		get := func(path string) reply { return a.do("GET", "/api/v1/"+path, nil) }
		get("resources/queues/q").has(t, "totals", all)
		get("status/queues/q").has(t, "totals.messages", all)
		get("status/queues/q").has(t, "partitions.0.stats", all)
		get("status/queues/q").has(t, "queue.config.retryLimit", num(0))
		get("resources/queues").has(t, "queues.1.messages", obj{"total": num(4), "pending": num(1), "processing": num(1)})
		get("status/queues?limit=9").has(t, "queues.1.messages", waiting)
		get("status/queues?limit=1&offset=1").has(t, "queues.0.name", "q")
		get("status/queues?limit=1&offset=7").has(t, "queues", []any{})
		scope := []any{obj{"queues": num(1), "partitions": num(1), "messages": obj{"total": num(4), "pending": num(2)}, "namespace": "ns"}}
		get("resources/namespaces").has(t, "namespaces", scope)
		get("resources/tasks").has(t, "tasks.0.task", "t")

		overview := get("resources/overview")
		overview.has(t, "messages", merge(waiting, obj{"failed": num(0)}))
		overview.has(t, "queues", num(2))
		overview.has(t, "namespaces", num(1))
		overview.has(t, "lag.time", obj{"avg": num(10), "max": num(10), "min": num(10), "median": num(10)})
		overview.has(t, "lag.offset.max", num(2))
		a.do("POST", "/api/v1/stats/refresh", nil).has(t, "queuesUpdated", num(2))

		status := get("status")
		status.has(t, "leases", obj{"active": num(1), "totalAcked": num(0), "totalBatchSize": num(1), "partitionsWithLeases": num(1)})
		status.has(t, "messages.requests", obj{"push": num(1), "pop": num(3), "ack": num(2)})
		status.has(t, "deadLetterQueue", obj{"topErrors": []any{obj{"count": num(1), "error": "boom"}}, "totalMessages": num(1),
			"currentMessages": num(1), "affectedPartitions": num(1)})
		get("analytics/worker-metrics").has(t, "summary.totalPushMessages", num(4))
		get("analytics/system-metrics").has(t, "replicaCount", num(0))
	})
}

// Messages by status, place and time, newest first, in pages.
func TestMessageList(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		kinds(t, a)
		time.Sleep(time.Second)
		a.push("q", "late", "last")
		for query, want := range map[string]string{
			"queue=q":                              "last free held done dead",
			"queue=q&partition=p":                  "free held done dead",
			"queue=q&status=dead_letter":           "dead",
			"queue=q&status=completed":             "done",
			"queue=q&status=processing":            "free held", // all that a leased partition still has
			"queue=q&status=pending":               "last",
			"queue=q&limit=2":                      "last free",
			"queue=q&limit=2&offset=1":             "free held",
			"queue=q&limit=0":                      "",
			"queue=none":                           "",
			"namespace=ns&task=t&limit=1":          "last",
			"ns=other":                             "",
			"queue=q&to=1999-12-31T00:00:00Z":      "",
			"queue=q&from=2000-01-01T00:00:01Z":    "last",
			"queue=q&status=processing&offset=1":   "held",
			"queue=q&from=1999-01-01&partition=p9": "",
		} {
			r := a.do("GET", "/api/v1/messages?"+query, nil)
			var got []string
			for _, m := range r.json(t).(obj)["messages"].([]any) {
				got = append(got, m.(obj)["transactionId"].(string))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s = %q, want %q", query, got, want)
			}
			r.has(t, "total", num(len(got)))
		}
		r := a.do("GET", "/api/v1/messages?queue=q&partition=p", nil)
		r.has(t, "mode", obj{"busGroupsCount": num(1), "hasQueueMode": false, "type": "bus"})
		r.has(t, "messages.2.busStatus", obj{"consumedBy": num(1), "totalGroups": num(1)})
		r.has(t, "messages.3.queueStatus", "dead_letter")
		a.pop("/queue/q", "__QUEUE_MODE__", "")
		a.do("GET", "/api/v1/messages?queue=q", nil).has(t, "mode.type", "hybrid")
		if r := a.do("GET", "/api/v1/messages?queue=q&from=garbage", nil); r.status != 500 {
			t.Errorf("a time that is none = %d", r.status)
		}
	})
}

// The list reads what is no longer in memory.
func TestMessageListFromDisk(t *testing.T) {
	t.Parallel()
	a := open(t, devbroker.Config{Dir: t.TempDir(), CacheBytes: 1})
	for i := range 5 {
		a.push("q", fmt.Sprint("p", i%2), fmt.Sprint("m", i))
	}
	r := a.do("GET", "/api/v1/messages?queue=q&limit=3", nil)
	for i, id := range []string{"m4", "m3", "m2"} {
		r.has(t, fmt.Sprintf("messages.%d.data", i), obj{"id": id})
	}
}

func TestAnalytics(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "m1", "m2")
		time.Sleep(90 * time.Minute)
		a.push("q", "p", "m3")
		get := func(query string) reply { return a.do("GET", "/api/v1/status/analytics"+query, nil) }
		hours := get("")
		hours.has(t, "interval", "hour")
		if n := len(hours.json(t).(obj)["dataPoints"].([]any)); n != 25 {
			t.Errorf("%d hours, want 25", n)
		}
		hours.has(t, "dataPoints.23", obj{"messages": num(2), "timestamp": "2000-01-01T00:00:00.000Z"})
		hours.has(t, "dataPoints.24", obj{"messages": num(1), "timestamp": "2000-01-01T01:00:00.000Z"})
		get("?interval=day").has(t, "dataPoints.1.messages", num(3))
		get("?interval=minute&from=2000-01-01T01:29:00Z").has(t, "dataPoints", []any{
			obj{"messages": num(0), "timestamp": "2000-01-01T01:29:00.000Z"}, obj{"messages": num(1), "timestamp": "2000-01-01T01:30:00.000Z"},
		})
		get("?from=2000-01-02T00:00:00Z").has(t, "dataPoints", []any{})
		for _, query := range []string{"?interval=bogus", "?from=garbage", "?interval=minute&from=1900-01-01"} {
			if r := get(query); r.status != 500 {
				t.Errorf("%s = %d", query, r.status)
			}
		}
	})
}

// Without a group a queue's depth is what some group has not consumed.
func TestDepthOfNoGroup(t *testing.T) {
	t.Parallel()
	a := memory(t)
	a.push("q", "p", "m1", "m2", "m3")
	depth := func() reply { return a.do("GET", "/api/v1/resources/queues/q/depth", nil) }
	depth().has(t, "pending", num(3))
	a.pop("/queue/q", "__QUEUE_MODE__", "autoAck=true")
	depth().has(t, "pending", num(0))
	a.ack(a.pop("/queue/q", "g", "batch=1"), "g", "m1 completed")
	depth().has(t, "pending", num(2)) // queue mode counts no more
	depth().has(t, "group", nil)
}

// Autopilot says what it chose where it had a choice.
func TestAutopilot(t *testing.T) {
	t.Parallel()
	a := memory(t)
	for query, want := range map[string]string{
		"autopilot=true":                      `"autopilot":{"partitions":10,"batch":200,"waitMs":100}}`,
		"autopilot=true&batch=1":              `"autopilot":{"partitions":10,"batch":1,"waitMs":100}}`,
		"autopilot=true&partitions=1":         `"autopilot":{"partitions":1,"batch":200,"waitMs":100}}`,
		"autopilot=true&batch=1&partitions=1": `"partitionsClaimed":1}`,
		"autopilot=false":                     `"partitionsClaimed":1}`,
	} {
		a.push("q "+query, "p", "m1", "m2")
		r := a.do("GET", "/api/v1/pop/queue/q%20"+strings.NewReplacer("=", "%3D", "&", "%26").Replace(query)+"?"+query, nil)
		if !strings.HasSuffix(r.text, want) {
			t.Errorf("%s: %s, want %s", query, r.text, want)
		}
	}
}
