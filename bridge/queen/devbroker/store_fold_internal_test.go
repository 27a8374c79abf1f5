package devbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newShelf(t *testing.T, seed uint64) *shelf {
	t.Helper()
	s := &shelf{
		t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, seed)),
		first: map[int64]uint64{}, next: map[int64]uint64{}, known: map[int64]map[uint64]string{},
	}
	s.open()
	return s
}

// refuseRuns makes the rows of folds fail, until it is called again.
func (s *shelf) refuseRuns(refuse bool) {
	s.t.Helper()
	statement := `DROP TRIGGER refuse`
	if refuse {
		statement = `CREATE TEMP TRIGGER refuse BEFORE INSERT ON run BEGIN SELECT raise(ABORT, 'refused'); END`
	}
	if _, err := s.store.write.ExecContext(context.Background(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// room is the size of all files of messages.
func (s *shelf) room() (n int64) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, bodiesDir, "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			s.t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// A fold that fails writes the bytes once, however often it is tried, and keeps
// none of them in memory.
func TestFailingFoldsCostNoRoom(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 3)
	defer func() { s.close() }()
	for range 20 {
		s.commit()
	}
	s.refuseRuns(true)
	if err := s.fold(); err == nil {
		t.Fatal("the fold did not fail")
	}
	first := s.room()
	for range 3 {
		if err := s.fold(); err == nil {
			t.Fatal("the fold did not fail")
		}
		s.check("a fold that failed")
	}
	if now := s.room(); first == 0 || now != first {
		t.Errorf("the files take %d bytes after four tries, %d after the first", now, first)
	}
	if s.store.journal.held != 0 {
		t.Errorf("%d bytes are still in memory", s.store.journal.held)
	}
	s.commit()
	s.refuseRuns(false)
	if err := s.fold(); err != nil {
		t.Fatal(err)
	}
	s.check("the fold that worked")
	s.close()
	s.open()
	s.check("a start")
}

// A death after such a fold loses nothing either: the journal has the bytes.
func TestDeathAfterAFailedFold(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 4)
	for range 20 {
		s.commit()
	}
	s.refuseRuns(true)
	if err := s.fold(); err == nil {
		t.Fatal("the fold did not fail")
	}
	s.close()
	s.open()
	s.check("a start")
	if err := s.fold(); err != nil {
		t.Fatal(err)
	}
	s.check("the next fold")
	s.close()
}

// fold folds the journal beside whatever the store does by itself.
func (s *shelf) fold() error {
	s.store.tidying.Lock()
	defer s.store.tidying.Unlock()
	return s.store.fold()
}

// sweep is fold for files.
func (s *shelf) sweep() error {
	s.store.tidying.Lock()
	defer s.store.tidying.Unlock()
	return s.store.sweep()
}

// bulkSize is below what goes to a file at once.
const bulkSize = 100 << 10

// bulk is a commit of one large message.
func (s *shelf) bulk(part int64) error {
	g := storedSegment{queue: queueOf(part), part: part, base: s.next[part], spans: []span{{s.next[part], 1}}}
	payload := strings.Repeat("x", bulkSize)
	g.blobs = [][]byte{appendMessage(nil, message{txn: fmt.Append(nil, g.base), payload: []byte(payload)})}
	g.hashes = []uint64{uint64(part)<<32 | g.base}
	row := partitionRow{num: part, queue: queueOf(part), first: s.first[part], next: s.next[part] + 1}
	if err := s.store.commit(&changes{parts: []partitionRow{row}, segments: []storedSegment{g}}); err != nil {
		return err
	}
	if s.known[part] == nil {
		s.known[part] = map[uint64]string{}
	}
	s.known[part][g.base] = payload
	s.next[part]++
	return nil
}

// Where folds cannot even write their files, memory is bounded: messages are
// refused, with the reason, and taken again once files can be written.
func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 5)
	defer func() { s.close() }()
	const limit = 10 * bulkSize
	s.store.journal.limit = limit
	fixed := s.store.bodies.fill(t, queueOf(1))
	var refused error
	for range 2 * limit / bulkSize {
		if refused = s.bulk(1); refused != nil {
			break
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "no space left") {
		t.Fatalf("commits without end = %v, want a refusal and why", refused)
	}
	if s.store.journal.held > 2*limit {
		t.Errorf("%d bytes in memory, want at most %d", s.store.journal.held, limit)
	}
	if err := s.store.commit(&changes{version: 7}); err != nil {
		t.Errorf("a commit that adds no message = %v", err)
	}
	fixed()
	if err := s.bulk(1); err != nil {
		t.Errorf("a commit once there is room = %v", err)
	}
	if s.store.journal.held > 2*bulkSize {
		t.Errorf("%d bytes in memory after a fold", s.store.journal.held)
	}
	s.check("a full journal")
}

// A queue that is removed while its messages are on their way into a file takes
// the file along.
func TestQueueRemovedInAFold(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 6)
	defer func() { s.close() }()
	if err := s.bulk(1); err != nil {
		t.Fatal(err)
	}
	s.store.tidying.Lock()
	defer s.store.tidying.Unlock()
	list := s.store.journal.standing()
	extents, err := s.store.moveOut(list)
	if err != nil {
		t.Fatal(err)
	}
	s.store.journal.moved(list, extents)
	if err := s.store.commit(&changes{noQueues: []int64{queueOf(1)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.fold(); err != nil { // the rest of it
		t.Fatal(err)
	}
	if !s.store.deleted.Load() {
		t.Error("the fold asks for no sweep")
	}
	if err := s.store.sweep(); err != nil {
		t.Fatal(err)
	}
	if n := s.room(); n > 0 || s.store.bodies.open > 0 {
		t.Errorf("%d bytes and %d open files are left of a removed queue", n, s.store.bodies.open)
	}
}

// What reads while retention deletes, and files go, never meets an error.
func TestReadsBesideSweeps(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 8)
	defer func() { s.close() }()
	s.store.bodies.limit = 1 // a file for each fold
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := s.store.segments(1, 0, 1<<40, 4<<20); err != nil {
					t.Errorf("a read beside a sweep = %v", err)
					return
				}
			}
		})
	}
	for range 30 {
		for range 2 {
			if err := s.bulk(1); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.fold(); err != nil {
			t.Fatal(err)
		}
		row := partitionRow{num: 1, queue: queueOf(1), first: s.next[1], next: s.next[1]}
		if err := s.store.commit(&changes{parts: []partitionRow{row}}); err != nil {
			t.Fatal(err)
		}
		if err := s.sweep(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	wg.Wait()
}

// A new file is in its folder for good before anything in it is acknowledged,
// also when that failed the first time.
func TestNewFilesAreEntered(t *testing.T) {
	t.Parallel()
	b, err := openBodies(filepath.Join(t.TempDir(), bodiesDir), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	broken, entered := errors.New("broken"), 0
	b.enter = func(string) error { return broken }
	if _, _, err := b.append(1, []byte("x")); !errors.Is(err, broken) || b.open != 0 {
		t.Errorf("append = %v with %d open files, want the error and none", err, b.open)
	}
	b.enter = func(string) error { entered++; return nil }
	for range 2 {
		if _, _, err := b.append(1, []byte("x")); err != nil || entered != 1 {
			t.Errorf("append = %v, the folder was synced %d times, want once", err, entered)
		}
	}
}

// An original that cannot be read still makes its copy a duplicate.
func TestUnreadableOriginalIsADuplicate(t *testing.T) {
	t.Parallel()
	b, err := Open(Config{Dir: t.TempDir(), CacheBytes: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	send(t, b, "POST", "/api/v1/push", pushText("large", inlineLimit))
	files, _ := filepath.Glob(filepath.Join(b.cfg.Dir, bodiesDir, "*"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one", files)
	}
	if err := os.Truncate(files[0], 100); err != nil {
		t.Fatal(err)
	}
	w := send(t, b, "POST", "/api/v1/push", pushText("large", 10))
	if !strings.Contains(w.Body.String(), `"duplicate"`) || !strings.Contains(w.Body.String(), `"00000000-0000-0000-0000-000000000000"`) {
		t.Errorf("push of a stored id whose message is damaged = %s, want duplicate of the nil id", w.Body)
	}
}
