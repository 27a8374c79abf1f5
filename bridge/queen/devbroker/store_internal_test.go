package devbroker

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shelf is a store beside a model of what it must hold.
type shelf struct {
	t      *testing.T
	dir    string
	store  *sqliteStore
	random *rand.Rand
	first  map[int64]uint64
	next   map[int64]uint64
	known  map[int64]map[uint64]string // by partition and offset
	at     micros

	records int // seen between transactions
}

func (s *shelf) open() {
	s.t.Helper()
	opened, err := openSQLite(s.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	s.store = opened.(*sqliteStore)
	s.store.bodies.limit = 256 << 10
}

func (s *shelf) close() {
	s.t.Helper()
	if err := s.store.close(); err != nil {
		s.t.Fatal(err)
	}
}

// queueOf spreads partitions over queues.
func queueOf(part int64) int64 { return 100 + part%3 }

// commit stores new messages of some partitions.
func (s *shelf) commit() {
	s.t.Helper()
	c := &changes{}
	for range 1 + s.random.IntN(6) {
		part := s.random.Int64N(9)
		if slices.ContainsFunc(c.segments, func(g storedSegment) bool { return g.part == part }) {
			continue
		}
		c.parts = append(c.parts, partitionRow{num: part, queue: queueOf(part), first: s.first[part], next: s.next[part]})
		c.segments = append(c.segments, s.segment(part))
	}
	if err := s.store.commit(c); err != nil {
		s.t.Fatal(err)
	}
}

// record stores new messages of known partitions of one queue: a record, where
// its file is one for that.
func (s *shelf) record() {
	s.t.Helper()
	c, queue := &changes{}, 100+s.random.Int64N(3)
	for part := range int64(9) {
		if queueOf(part) == queue && s.known[part] != nil && s.random.IntN(2) == 0 {
			c.segments = append(c.segments, s.segment(part))
		}
	}
	if err := s.store.commit(c); err != nil {
		s.t.Fatal(err)
	}
	s.records += len(s.store.unlisted)
}

// crash goes on with a copy of the files as they are, without closing.
func (s *shelf) crash() {
	s.t.Helper()
	copied := s.t.TempDir()
	s.store.tidying.Lock() // a copy takes its time, a power cut none
	s.store.mu.Lock()
	err := os.CopyFS(copied, os.DirFS(s.dir))
	s.store.mu.Unlock()
	s.store.tidying.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	s.close()
	s.dir = copied
	s.open()
}

func (s *shelf) segment(part int64) storedSegment {
	g := storedSegment{queue: queueOf(part), part: part, base: s.next[part]}
	size := []int{10, 1000, 90_000}[s.random.IntN(3)]
	for range 1 + s.random.IntN(5) {
		s.at++
		offset := s.next[part]
		g.spans = append(g.spans, span{offset, s.at})
		payload := fmt.Sprintf("%d-%d-%s", part, offset, strings.Repeat("x", s.random.IntN(size)))
		g.blobs = append(g.blobs, appendMessage(nil, message{txn: fmt.Append(nil, offset), payload: []byte(payload)}))
		g.hashes = append(g.hashes, uint64(part)<<32|offset)
		if s.known[part] == nil {
			s.known[part] = map[uint64]string{}
		}
		s.known[part][offset] = payload
		s.next[part]++
	}
	return g
}

// retain deletes the front of a partition.
func (s *shelf) retain() {
	s.t.Helper()
	part := s.random.Int64N(9)
	left := s.next[part] - s.first[part]
	if left == 0 {
		return
	}
	s.first[part] += 1 + s.random.Uint64N(left)
	maps.DeleteFunc(s.known[part], func(offset uint64, _ string) bool { return offset < s.first[part] })
	row := partitionRow{num: part, queue: queueOf(part), first: s.first[part], next: s.next[part]}
	if err := s.store.commit(&changes{parts: []partitionRow{row}}); err != nil {
		s.t.Fatal(err)
	}
}

// removeQueue deletes a queue; its partitions' numbers begin anew.
func (s *shelf) removeQueue() {
	s.t.Helper()
	queue := 100 + s.random.Int64N(3)
	if err := s.store.commit(&changes{noQueues: []int64{queue}}); err != nil {
		s.t.Fatal(err)
	}
	for part := range int64(9) {
		if queueOf(part) == queue {
			delete(s.known, part)
			s.first[part], s.next[part] = 0, 0
		}
	}
}

// check compares all there is, and a range, with the model.
func (s *shelf) check(after string) {
	s.t.Helper()
	for part, want := range s.known {
		from, to := s.first[part], s.next[part]
		got := s.read(part, from, to)
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Fatalf("after %s, partition %d: %.600s", after, part, diff)
		}
		if to > from+2 {
			from += s.random.Uint64N(to - from)
			if got := s.read(part, from, from+1); got[from] != want[from] {
				s.t.Fatalf("after %s, partition %d: message %d not found", after, part, from)
			}
		}
	}
	ids := map[int64][]uint64{}
	if err := s.store.ids(func(r idRow) { ids[r.part] = append(ids[r.part], r.hashes...) }); err != nil {
		s.t.Fatal(err)
	}
	for part, next := range s.next {
		if left := next - s.first[part]; uint64(len(ids[part])) < left {
			s.t.Fatalf("after %s, partition %d: %d ids of %d messages", after, part, len(ids[part]), left)
		}
	}
}

// read reads messages until nothing more comes, a few at a time.
func (s *shelf) read(part int64, from, to uint64) map[uint64]string {
	s.t.Helper()
	got := map[uint64]string{}
	for from < to {
		segs, err := s.store.segments(part, from, to, 100_000)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(segs) == 0 {
			return got
		}
		for i := range segs {
			split, err := segs[i].split(nil)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, g := range split {
				for offset := max(g.base, from); offset < min(g.end(), to); offset++ {
					got[offset] = string(g.message(offset).payload)
				}
				from = max(from, g.end())
			}
		}
	}
	return got
}

// Whatever the order of commits, folds, retention, removed queues and starts:
// what is stored is read back, and what is deleted leaves no file behind.
func TestStoreHoldsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := &shelf{
				t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 1)),
				first: map[int64]uint64{}, next: map[int64]uint64{}, known: map[int64]map[uint64]string{},
			}
			s.open()
			for range 100 {
				s.step()
			}
			if s.records == 0 {
				t.Error("no commit was a record: the test does not cover them")
			}
			for part := range s.next {
				s.first[part] = s.next[part]
				row := partitionRow{num: part, queue: queueOf(part), first: s.first[part], next: s.next[part]}
				if err := s.store.commit(&changes{parts: []partitionRow{row}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.sweep(); err != nil {
				t.Fatal(err)
			}
			s.close()
			if left, _ := filepath.Glob(filepath.Join(s.dir, bodiesDir, "*")); len(left) > 0 {
				t.Errorf("all is deleted and yet there is %v", left)
			}
		})
	}
}

func (s *shelf) step() {
	s.t.Helper()
	switch n := s.random.IntN(28); {
	case n < 8:
		s.commit()
	case n < 12 || n >= 22:
		s.record()
	case n >= 20:
		s.crash()
		s.check("a crash")
	case n < 15:
		s.retain()
		s.check("retention")
	case n < 18:
		if err := s.fold(); err != nil {
			s.t.Fatal(err)
		}
		s.check("a fold")
	case n < 19:
		s.close()
		s.open()
		s.check("a start")
	default:
		s.removeQueue()
		s.check("the removal of a queue")
	}
}

// A death between a fold's two steps costs room, and nothing else.
func TestDeathInAFold(t *testing.T) {
	t.Parallel()
	s := &shelf{
		t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(7, 7)),
		first: map[int64]uint64{}, next: map[int64]uint64{}, known: map[int64]map[uint64]string{},
	}
	s.open()
	for range 20 {
		s.commit()
	}
	if _, err := s.store.moveOut(s.store.journal.standing()); err != nil {
		t.Fatal(err)
	}
	s.close()
	s.open()
	defer s.close()
	s.check("half a fold")
	if err := s.fold(); err != nil {
		t.Fatal(err)
	}
	s.check("the next fold")
}

// Acknowledged bytes that a disk lost are not passed over in silence.
func TestShortFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	send(t, b, "POST", "/api/v1/push", pushText("large", inlineLimit))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, bodiesDir, "*"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one", files)
	}
	if err := os.Truncate(files[0], 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("Open = %v, want an error that names %s", err, files[0])
	}
}

// Bytes that changed on the disk are not handed out.
func TestDamagedBytesAreNotDelivered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	send(t, b, "POST", "/api/v1/push", pushText("large", inlineLimit))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, bodiesDir, "*"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	w := send(t, b, "GET", "/api/v1/pop/queue/q?autoAck=true&subscriptionMode=all&consumerGroup=g", "")
	if bytes.Contains(w.Body.Bytes(), []byte("xxxx")) {
		t.Errorf("pop = %d %.100s, want no damaged message", w.Code, w.Body)
	}
}

// Closing folds nothing: it would keep whoever restarts waiting.
func TestCloseDoesNotFold(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 9)
	for range 30 {
		if err := s.bulk(1); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	if n := s.room(); n > 0 {
		t.Errorf("closing wrote %d bytes of messages", n)
	}
	s.open()
	defer s.close()
	s.check("a start")
}
