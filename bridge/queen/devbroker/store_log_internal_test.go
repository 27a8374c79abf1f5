package devbroker

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openLogged opens a broker that stores pushes to queue q as records.
func openLogged(t *testing.T, dir string) (*Broker, *sqliteStore) {
	t.Helper()
	b, err := Open(Config{Dir: dir, RetentionInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if w := send(t, b, "POST", "/api/v1/push", pushText("large", inlineLimit)); w.Code != http.StatusCreated {
		t.Fatal(w.Body)
	}
	return b, b.store.(*sqliteStore)
}

// crashed opens a copy of a broker's files, the last bytes of the newest record
// cut off, and returns the ids that it hands out and what it logged.
func crashed(t *testing.T, dir string, torn int64) (ids []string, log string) {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(copied, bodiesDir, "*"))
	info, err := os.Stat(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(files[len(files)-1], info.Size()-torn); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	b, err := Open(Config{Dir: copied, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	return idsOf(t, b), said.String()
}

// idsOf are the ids in partition p of queue q.
func idsOf(t *testing.T, b *Broker) (ids []string) {
	t.Helper()
	w := send(t, b, "GET", "/api/v1/pop/queue/q/partition/p?batch=1000&autoAck=true&subscriptionMode=all&consumerGroup=g", "")
	for _, part := range strings.Split(w.Body.String(), `"transactionId":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return ids
}

// A record that is cut off anywhere is dropped as a whole, and so is all behind
// it; what comes before it stays, and what is pushed then follows it.
func TestTornRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, s := openLogged(t, dir)
	size := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.bodies.currentFiles()[0].size
	}
	var ends []int64
	for i := range 5 {
		send(t, b, "POST", "/api/v1/push", pushText(fmt.Sprint("small", i), 100))
		ends = append(ends, size())
	}
	if len(s.unlisted) != 5 {
		t.Fatalf("%d records, want 5", len(s.unlisted))
	}
	for torn := int64(0); torn < ends[4]-ends[1]; torn += 1 + torn/7%5*11 {
		ids, log := crashed(t, dir, torn)
		want := 1
		for _, end := range ends {
			if end <= ends[4]-torn {
				want++
			}
		}
		if len(ids) != want || ids[0] != "large" || want > 1 && ids[want-1] != fmt.Sprint("small", want-2) {
			t.Fatalf("%d bytes cut off: %v, want the first %d", torn, ids, want)
		}
		if cut := want < 6 && ends[max(want-2, 0)] != ends[4]-torn; cut != strings.Contains(log, "cut off by a crash") {
			t.Errorf("%d bytes cut off: the log says %q", torn, log)
		}
	}
}

// A record whose sync failed was refused. It may be whole on the disk and yet
// must not be found by a later start, nor be in the way of what was stored since.
func TestRefusedRecordIsNotFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, s := openLogged(t, dir)
	s.bodies.mu.Lock()
	s.bodies.sync = func(f *os.File) error {
		s.bodies.sync = (*os.File).Sync
		// As if giving back the room had failed, too: the file is not to be cut.
		return errors.Join(errors.New("bad disk"), f.Sync(), f.Close())
	}
	s.bodies.mu.Unlock()
	if w := send(t, b, "POST", "/api/v1/push", pushText("refused", 100)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "bad disk") {
		t.Fatalf("push = %d %s, want 503 and why", w.Code, w.Body)
	}
	until(t, "the store works again", func() bool {
		return send(t, b, "POST", "/api/v1/push", pushText("after", 100)).Code == http.StatusCreated
	})
	for _, id := range []string{"refused", "last"} {
		if w := send(t, b, "POST", "/api/v1/push", pushText(id, 100)); !strings.Contains(w.Body.String(), `"queued"`) {
			t.Errorf("push of %s = %s, want queued", id, w.Body)
		}
	}
	if ids, _ := crashed(t, dir, 0); strings.Join(ids, " ") != "large after refused last" {
		t.Errorf("after a crash there are %v", ids)
	}
}

// Records that no transaction has listed are listed when the broker closes.
func TestCloseListsRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, s := openLogged(t, dir)
	send(t, b, "POST", "/api/v1/push", pushText("small", 100))
	if len(s.unlisted) != 1 {
		t.Fatalf("%d records, want 1", len(s.unlisted))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.bodies.path(s.bodies.last), inlineLimit); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil {
		t.Error("a file that lost what was stored is taken for one that a crash cut off")
	}
}

// FuzzRecord: bytes of a file are a whole record or none, and never a panic.
func FuzzRecord(f *testing.F) {
	blob := appendMessage(nil, message{txn: []byte("t"), payload: []byte(`{}`)})
	e := entries([]storedSegment{{queue: 3, part: 4, base: 5, spans: []span{{5, 6}}, hashes: []uint64{7}, blobs: [][]byte{blob}}})[0]
	record := e.record(nil, 1, 2)
	f.Add(record)
	f.Add(record[:len(record)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		file := append(make([]byte, 2), b...)
		e, size, err := readRecord(bytes.NewReader(file), 1, 2, int64(len(file)))
		if err != nil {
			return
		}
		if size > int64(len(b)) || len(e.segments) == 0 {
			t.Errorf("a record of %d bytes with %d segments out of %d bytes", size, len(e.segments), len(b))
		}
	})
}
