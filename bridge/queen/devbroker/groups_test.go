package devbroker_test

import (
	"testing"
	"testing/synctest"
	"time"
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
		if r := seek("/partitions/p", obj{"timestamp": middle}); r.status != 200 || r.json(t).(obj)["partitionsUpdated"] != num(1) {
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
		if r := a.do("POST", "/api/v1/consumer-groups/g/queues/none/seek", obj{"toEnd": true}); r.status != 404 {
			t.Errorf("seek of an unknown queue = %d", r.status)
		}
		parked := a.park("/queue/q", "g", "timeout=1000&batch=9&partitions=9")
		synctest.Wait()
		a.do("DELETE", "/api/v1/consumer-groups/g", nil)
		if got := (<-parked.done).txns(); got != "m1 m2 o1" {
			t.Errorf("the parked pop of a deleted group got %q, want all of it: a first contact", got)
		}
	})
}

func TestLaggingGroups(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, a *api) {
		a.push("q", "p", "m1")
		a.pop("/queue/q", "g", "")
		lagging := func(query string) int {
			return len(a.do("GET", "/api/v1/consumer-groups/lagging"+query, nil).json(t).([]any))
		}
		if n := lagging("?minLagSeconds=60"); n != 0 {
			t.Errorf("%d lag at once", n)
		}
		time.Sleep(time.Minute)
		if n := lagging("?minLagSeconds=60"); n != 1 {
			t.Errorf("%d lag after a minute, want 1", n)
		}
		if got := a.do("GET", "/api/v1/consumer-groups/g", nil).json(t).(obj)["q"].(obj)["totalLag"]; got != num(1) {
			t.Errorf("lag = %v", got)
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
		return len(a.do("GET", "/api/v1/traces/"+path, nil).json(t).(obj)["traces"].([]any))
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
