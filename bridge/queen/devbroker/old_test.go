package devbroker_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// Messages that were consumed long ago: their ids are out of memory, also
// after a restart, and yet a new group reads and settles them, and the message
// route finds them.
func TestOldMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const messages = 5000
	cfg := devbroker.Config{Dir: dir, CacheBytes: 1, RetentionInterval: time.Minute}
	bubbleWith(t, cfg, func(t *testing.T, a *api) {
		for i := range messages / 500 {
			ids := make([]string, 500)
			for j := range ids {
				ids[j] = fmt.Sprintf("m%d", i*500+j)
			}
			a.push("q", "p", ids...)
		}
		a.pop("/queue/q", "g", "autoAck=true&batch=10000")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		checkOld(t, a, "before")
		if got := a.push("q", "p", "m7"); got[0] != "queued" {
			t.Errorf("an id after its window = %v", got)
		}
	})
	checkOld(t, open(t, cfg), "after")
}

func checkOld(t *testing.T, a *api, group string) {
	t.Helper()
	p := a.pop("/queue/q", group, "batch=3")
	if p.txns() != "m0 m1 m2" {
		t.Fatalf("%s: popped %q", group, p.txns())
	}
	if got := a.ack(p, group, "m0 completed", "m1 retry"); !cmp.Equal(got, []string{"ok", "ok"}) {
		t.Errorf("%s: ack = %v", group, got)
	}
	p = a.pop("/queue/q", group, "batch=2")
	if p.txns() != "m1 m2" {
		t.Errorf("%s: popped %q", group, p.txns())
	}
	answer := a.transact(obj{"operations": []obj{merge(ackOf(p.LeaseID, p.PartitionID, "m2 completed"), obj{"type": "ack", "consumerGroup": group})}})
	if answer["success"] != true {
		t.Errorf("%s: transaction = %v", group, answer)
	}
	if r := a.do("GET", "/api/v1/messages/"+p.PartitionID+"/m4321", nil); r.status != 200 {
		t.Errorf("%s: message route = %d %s", group, r.status, r.text)
	}
}

// What retention deletes is gone from the disk too, small messages and those
// that lie in files.
func TestRetentionOnDisk(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 400_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			testRetentionOnDisk(t, size)
		})
	}
}

func testRetentionOnDisk(t *testing.T, size int) {
	dir := t.TempDir()
	push := func(a *api, queue, id string) {
		body := fmt.Sprintf(`{"items":[{"queue":%q,"partition":"p","transactionId":%q,"payload":"%s-%s-%s"}]}`,
			queue, id, queue, id, strings.Repeat("x", size))
		if r := a.do("POST", "/api/v1/push", body); r.status != 201 {
			t.Fatal(r.text)
		}
	}
	bubbleWith(t, devbroker.Config{Dir: dir}, func(t *testing.T, a *api) {
		a.configure("q", obj{"retentionEnabled": true, "retentionSeconds": 60})
		push(a, "q", "m1")
		push(a, "q", "m2")
		push(a, "kept", "m1")
		push(a, "gone", "m1")
		time.Sleep(time.Minute + 10*time.Second)
		synctest.Wait()
		push(a, "q", "m3")
		a.do("DELETE", "/api/v1/resources/queues/gone", nil)
	})
	db, err := sql.Open("sqlite", filepath.Join(dir, "queen.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM journal").Scan(&n); err != nil || n != 2 {
		t.Errorf("journal has %d rows (%v), want 2: m3 and the kept one", n, err)
	}
	if stored := storedIn(t, dir); size > 1000 && !cmp.Equal(stored, []string{"kept-m1", "q-m3"}) {
		t.Errorf("files hold %v, want the kept one and m3", stored)
	}
	a := open(t, devbroker.Config{Dir: dir})
	p := a.pop("/queue/q", "g", "")
	if p.txns() != "m3" || p.Messages[0].Offset != 2 {
		t.Errorf("popped %+v, want m3 at offset 2", p.Messages)
	}
	if p := a.pop("/queue/kept", "g", ""); p.txns() != "m1" {
		t.Errorf("popped %+v, want the kept one", p.Messages)
	}
}

// storedIn lists which payloads stand in the files of a directory.
func storedIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "bodies", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"(\w+-m\d)-x`).FindAllSubmatch(data, -1) {
			found = append(found, string(m[1]))
		}
	}
	slices.Sort(found)
	return found
}
