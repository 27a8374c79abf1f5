package devbroker_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// crash opens a copy of a directory as it is on disk while its broker runs:
// what a power cut would leave.
func crash(t *testing.T, dir string) *api {
	t.Helper()
	a, _ := crashTorn(t, dir, 0)
	return a
}

// crashTorn is crash with the last bytes of the log never written; it returns
// what the new broker logged when it opened.
func crashTorn(t *testing.T, dir string, torn int) (a *api, log string) {
	t.Helper()
	copied := t.TempDir()
	for _, name := range []string{"queen.db", "queen.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "-wal") {
			data = data[:max(len(data)-torn, 0)]
		}
		if err := os.WriteFile(filepath.Join(copied, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The files last: they hold at least what the database knows of.
	if err := os.CopyFS(filepath.Join(copied, "bodies"), os.DirFS(filepath.Join(dir, "bodies"))); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	a = open(t, devbroker.Config{Dir: copied, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	return a, said.String()
}

func TestStateSurvivesCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	a.configure("q", obj{"retryLimit": 1, "leaseTime": 45, "dedupWindowSeconds": 100})
	a.push("q", "p", numbered(6)...)
	a.push("q", "empty", "only")
	p := a.pop("/queue/q/partition/p", "g", "batch=2")
	a.ack(p, "g", "m1 completed", "m2 completed")
	p = a.pop("/queue/q/partition/p", "g", "batch=2")
	a.ack(p, "g", "m3 dlq because")
	held := a.pop("/queue/q/partition/p", "g", "batch=1&leaseSeconds=600")
	extend := a.do("POST", "/api/v1/lease/"+held.LeaseID+"/extend", obj{"seconds": 900})
	a.ack(a.pop("/queue/q/partition/empty", "g", ""), "g", "only failed")
	a.do("POST", "/api/v1/kv", obj{"operations": []obj{
		{"op": "put", "ns": "n", "key": "k", "value": obj{"z": 1, "a": 2}, "forever": true},
		{"op": "put", "ns": "n", "key": "gone", "value": 1, "forever": true},
	}})
	a.do("DELETE", "/api/v1/kv/n/gone", nil)
	schedule(a, "q", "far", 600_000, `{"far":1}`)
	schedule(a, "q", "cancelled", 600_000, `1`)
	a.do("DELETE", "/api/v1/timers/q/cancelled", nil)

	b := crash(t, dir)
	if got := b.push("q", "p", "m1", "m4", "new"); !cmp.Equal(got, []string{"duplicate", "duplicate", "queued"}) {
		t.Errorf("push after the crash = %v", got)
	}
	if got := b.pop("/queue/q/partition/p", "g", "").txns(); got != "" {
		t.Errorf("pop = %q, want nothing: the lease %s survives", got, extend.text)
	}
	if got := b.ack(held, "g", "m4 completed"); got[0] != "ok" {
		t.Errorf("ack under the old lease = %v", got)
	}
	if got := b.pop("/queue/q/partition/p", "g", "").txns(); got != "m5 m6 new" {
		t.Errorf("pop = %q, want the rest", got)
	}
	b.ack(b.pop("/queue/q/partition/empty", "g", ""), "g", "only failed")
	dead := b.do("GET", "/api/v1/dlq?queue=q", nil).json(t).(obj)["messages"].([]any)
	if len(dead) != 2 {
		t.Errorf("dead letters = %v, want m3 and, its budget spent before and after the crash, only", dead)
	}
	kv := b.do("POST", "/api/v1/kv", obj{"operations": []obj{{"op": "getPrefix", "ns": "n", "prefix": "k"}, {"op": "get", "ns": "n", "key": "gone"}}})
	if !strings.Contains(kv.text, `"value":{"a":2,"z":1}`) || !strings.Contains(kv.text, `"found":false`) {
		t.Errorf("kv = %s", kv.text)
	}
	peek := b.do("GET", "/api/v1/timers/q/far", nil).json(t).(obj)
	if peek["payload"] != base64.StdEncoding.EncodeToString([]byte(`{"far":1}`)) {
		t.Errorf("timer = %v", peek)
	}
	if got := b.do("GET", "/api/v1/timers/q/cancelled", nil).text; !strings.HasPrefix(got, `{"found":false`) {
		t.Errorf("cancelled timer = %s", got)
	}
}

// What a client in the broker's own process held is free again as soon as the
// next process has started: the client is gone too. A lease over a connection
// runs on, and so does an extended one, which may be somebody's backoff.
func TestLeaseOfTheDeadProcessEndsWithIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local := open(t, devbroker.Config{Dir: dir})
	server := httptest.NewServer(local.broker)
	t.Cleanup(server.Close)
	for _, partition := range []string{"local", "extended", "remote"} {
		local.push("q", partition, partition)
	}
	local.pop("/queue/q/partition/local", "g", "leaseSeconds=600")
	held := local.pop("/queue/q/partition/extended", "g", "leaseSeconds=600")
	local.do("POST", "/api/v1/lease/"+held.LeaseID+"/extend", obj{"seconds": 900})
	resp, err := http.Get(server.URL + "/api/v1/pop/queue/q/partition/remote?consumerGroup=g&subscriptionMode=all&leaseSeconds=600")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("pop over a connection: %v %v", resp, err)
	}
	_ = resp.Body.Close()
	local.push("q", "other", "flush") // every lease before it is on disk with it
	b := crash(t, dir)
	b.ack(b.pop("/queue/q/partition/other", "g", ""), "g", "flush completed")
	if got := b.pop("/queue/q", "g", "partitions=9").txns(); got != "local" {
		t.Errorf("popped %q after the crash, want only what the dead process held without extending it", got)
	}
}

func schedule(a *api, queue, key string, delayMs int, payload string) obj {
	a.t.Helper()
	r := a.do("POST", "/api/v1/timers", obj{"operations": []obj{{
		"op": "schedule", "queue": queue, "timerKey": key, "delayMs": delayMs, "txn": "txn-" + key,
		"payload": base64.StdEncoding.EncodeToString([]byte(payload)),
	}}})
	if r.status != 200 {
		a.t.Fatalf("schedule: %d %s", r.status, r.text)
	}
	return r.json(a.t).(obj)["results"].([]any)[0].(obj)
}

// KV versions are never given twice, not even after the row that had the
// highest is gone.
func TestVersionsAreNotReusedAfterCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	put := obj{"operations": []obj{{"op": "put", "ns": "n", "key": "k", "value": 1, "forever": true}}}
	version := func(a *api) any {
		return a.do("POST", "/api/v1/kv", put).json(t).(obj)["results"].([]any)[0].(obj)["version"]
	}
	seen := map[any]bool{version(a): true, version(a): true}
	a.do("DELETE", "/api/v1/kv/n/k", nil)
	b := crash(t, dir)
	if v := version(b); seen[v] {
		t.Errorf("version %v given again, had %v", v, seen)
	}
}

// Data of the first format, which kept message bytes in the database, is
// brought up to date: messages, ids and cursors.
func TestFormat1IsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/format1/queen.db")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "queen.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		// Ids are known for an hour: go to when the data was made.
		time.Sleep(time.Until(time.UnixMicro(1796045712387464)))
		for _, when := range []string{"first", "again"} {
			a := open(t, devbroker.Config{Dir: dir})
			if got := a.push("q", "p0", "m0", "m39"); !cmp.Equal(got, []string{"duplicate", "duplicate"}) {
				t.Errorf("%s: push of known ids = %v", when, got)
			}
			p := a.pop("/queue/q/partition/p0", "g", "batch=3&autoAck=false")
			if p.txns() != "m6 m9 m12" {
				t.Errorf("%s: pop = %q, want what follows the acked ones", when, p.txns())
			}
			a.ack(p, "g", "m6 retry")
			if got := a.pop("/queue/r", when, "batch=9&autoAck=true").txns(); got != "x y z" {
				t.Errorf("%s: pop = %q", when, got)
			}
			if err := a.broker.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Data of the second format, whose files held no records, is taken on: what is
// folded and what is not, and what is pushed then.
func TestFormat2IsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/format2")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMicro(1796057563719612))) // when the data was made
		want := "m0 m3 m6 m9 m12 m15 m18 m21 m24 m27 m30 m33 m36 m39 n0 n1 n2 n3 n4"
		for _, when := range []string{"first", "again"} {
			a := open(t, devbroker.Config{Dir: dir})
			if got := a.push("q", "p0", "m0", "n4", when); !cmp.Equal(got, []string{"duplicate", "duplicate", "queued"}) {
				t.Errorf("%s: push of two known ids and a new one = %v", when, got)
			}
			want += " " + when
			if got := a.pop("/queue/q/partition/p0", when, "batch=99&autoAck=true").txns(); got != want {
				t.Errorf("%s: pop = %q, want %q", when, got, want)
			}
			if got := a.pop("/queue/r", when, "batch=9&autoAck=true").txns(); got != "x y z" {
				t.Errorf("%s: pop = %q", when, got)
			}
			if err := a.broker.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, devbroker.Config{Dir: dir})
	_, err := devbroker.Open(devbroker.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("Open of a directory in use = %v, want an error that names it", err)
	}
}

// More than the cache holds is read back from the store, in order and byte for
// byte.
func TestBacklogBeyondCache(t *testing.T) {
	t.Parallel()
	a := open(t, devbroker.Config{Dir: t.TempDir(), CacheBytes: 1})
	want := make([]string, 500)
	for i := range want {
		want[i] = fmt.Sprintf("m%d", i)
		payload := `{ "n":` + fmt.Sprint(i) + `, "x":"` + strings.Repeat("y", i%7*100) + `" }`
		body := `{"items":[{"queue":"q","partition":"p` + fmt.Sprint(i%3) + `","transactionId":"` + want[i] + `","payload":` + payload + `}]}`
		if r := a.do("POST", "/api/v1/push", body); r.status != 201 {
			t.Fatal(r.text)
		}
	}
	got := map[string]bool{}
	for len(got) < len(want) {
		p := a.pop("/queue/q", "g", "batch=37&partitions=2")
		if len(p.Messages) == 0 {
			t.Fatalf("pop found nothing after %d of %d", len(got), len(want))
		}
		var acks []obj
		last := map[string]uint64{}
		for _, m := range p.Messages {
			if got[m.TransactionID] {
				t.Errorf("%s delivered twice", m.TransactionID)
			}
			if prev, ok := last[m.PartitionID]; ok && m.Offset != prev+1 {
				t.Errorf("offset %d follows %d", m.Offset, prev)
			}
			last[m.PartitionID] = m.Offset
			got[m.TransactionID] = true
			var n int
			if _, err := fmt.Sscanf(m.TransactionID, "m%d", &n); err != nil || !strings.HasPrefix(string(m.Data), `{ "n":`+fmt.Sprint(n)+`, `) {
				t.Errorf("%s has data %s", m.TransactionID, m.Data)
			}
			acks = append(acks, ackOf(m.LeaseID, m.PartitionID, m.TransactionID+" completed"))
		}
		a.do("POST", "/api/v1/ack/batch", obj{"consumerGroup": "g", "acknowledgments": acks})
	}
	if got := a.push("q", "p1", "m1", "m4"); !cmp.Equal(got, []string{"duplicate", "duplicate"}) {
		t.Errorf("push again = %v, want duplicates", got)
	}
}

func TestDeletedQueueStaysDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	a.push("q", "p", "m1")
	a.pop("/queue/q", "g", "")
	a.do("DELETE", "/api/v1/resources/queues/q", nil)
	a.push("q", "p", "m2")
	for _, b := range []*api{a, crash(t, dir)} {
		if got := b.pop("/queue/q", "g", "").txns(); got != "m2" {
			t.Errorf("pop = %q, want m2 alone", got)
		}
	}
}

// A group deleted and made again at once is there after a crash, with its
// place.
func TestGroupMadeAgainSurvivesCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	a.push("q", "p", "m1", "m2")
	a.ack(a.pop("/queue/q", "g", ""), "g", "m2 completed")
	a.do("DELETE", "/api/v1/consumer-groups/g", nil)
	a.ack(a.pop("/queue/q", "g", "batch=1"), "g", "m1 completed")
	if got := crash(t, dir).pop("/queue/q", "g", "").txns(); got != "m2" {
		t.Errorf("popped %q, want m2", got)
	}
}

// A log cut off anywhere loses the end, whole commits of it, and nothing else.
func TestTornLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, devbroker.Config{Dir: dir})
	for i := range 40 {
		a.push("q", "p", fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i))
	}
	fewest := 80
	for torn := 1; torn < 200_000; torn = torn*3 + 1 {
		b, log := crashTorn(t, dir, torn)
		got := strings.Fields(b.pop("/queue/q", "g", "batch=1000").txns())
		for i, id := range got {
			if want := fmt.Sprintf("%c%d", 'a'+i%2, i/2); id != want {
				t.Errorf("%d bytes torn: message %d is %s, want %s", torn, i, id, want)
			}
		}
		if len(got)%2 != 0 || len(got) > fewest {
			t.Errorf("%d bytes torn: %d messages, no more than %d before", torn, len(got), fewest)
		}
		if said := strings.Contains(log, "cut off by a crash"); torn == 1 && !said {
			t.Errorf("one byte torn: not said: %s", log)
		}
		fewest = len(got)
	}
	if _, log := crashTorn(t, dir, 0); log != "" {
		t.Errorf("nothing torn, yet said: %s", log)
	}
	if fewest == 80 {
		t.Error("nothing was torn off: the test proves nothing")
	}
}
