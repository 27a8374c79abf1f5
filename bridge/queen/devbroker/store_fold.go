package devbroker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// When the journal is folded: after so many segments, bytes that it holds in
// memory, and bytes in all. A start reads what is not folded yet.
const (
	foldHeld     = 8 << 20
	foldBytes    = 64 << 20
	foldSegments = 16 << 10
	// runExtents bounds a row of runs.
	runExtents = 512
)

// fold turns the journal into runs. Bytes that are in the journal go to the
// files first, beside the writer; only the rows need it to stand still. When
// the rows fail, the next fold finds the bytes where they are: trying again
// costs no room. tidying is held.
func (s *sqliteStore) fold() error {
	list := s.journal.standing()
	if len(list) == 0 {
		return nil
	}
	extents, err := s.moveOut(list)
	s.journal.moved(list, extents)
	if err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.newWriting()
	w.folded = list[len(list)-1].row
	w.transaction(func() {
		w.runs(list, extents)
		w.do("nojournal", w.folded)
	})
	if w.err != nil {
		return fmt.Errorf("fold: %w", w.err)
	}
	s.journal.folded(len(list))
	return nil
}

// moveOut writes to the files what is in the journal itself, and returns the
// extents of all, as far as it came.
func (s *sqliteStore) moveOut(list []*recent) ([]extent, error) {
	extents := make([]extent, len(list))
	byQueue := map[int64][]int{}
	for i, r := range list {
		extents[i] = r.extent
		if r.body != nil && !r.dropped.Load() {
			byQueue[r.queue] = append(byQueue[r.queue], i)
		}
	}
	for queue, at := range byQueue {
		var data []byte
		for _, i := range at {
			data = append(data, list[i].body...)
		}
		file, begin, err := s.bodies.append(queue, data)
		if err != nil {
			return extents, err
		}
		for _, i := range at {
			extents[i].file, extents[i].at = file, begin
			begin += int64(extents[i].size)
		}
	}
	return extents, nil
}

// run is a row of runs in the making: segments of one partition without a gap.
type run struct {
	part    int64
	base    uint64
	next    uint64
	extents []extent
	spans   []span
	hashes  []uint64
}

// runs writes the rows of runs for segments of the journal, and notes what the
// files hold.
func (w *writing) runs(list []*recent, extents []extent) {
	var done []*run
	open := map[int64]*run{}
	files := map[int64]knownFile{}
	live := map[int64]int{}
	for i, r := range list {
		p := extents[i]
		if p.file != 0 {
			files[p.file] = knownFile{r.queue, max(files[p.file].tail, p.at+int64(p.size))}
		}
		if r.dropped.Load() {
			w.store.deleted.Store(true) // its file may have been made for nothing
			continue
		}
		live[p.file] += p.size
		of := open[r.part]
		if of != nil && (of.next != r.base || len(of.extents) >= runExtents) {
			done, of = append(done, of), nil
		}
		if of == nil {
			of = &run{part: r.part, base: r.base}
			open[r.part] = of
		}
		of.extents = append(of.extents, p)
		of.spans = append(of.spans, r.spans...)
		of.hashes = append(of.hashes, r.hashes...)
		of.next = r.end()
	}
	done = slices.AppendSeq(done, maps.Values(open))
	slices.SortFunc(done, func(a, b *run) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.base, b.base)) })
	for _, of := range done { // in the order of the table: pages are written once
		w.run(of)
	}
	for num, is := range files {
		w.do("file", num, is.queue, live[num], is.tail)
	}
}

func (w *writing) run(r *run) {
	w.do("run", r.part, signed(r.base), len(r.hashes), encodeExtents(r.extents), encodeIDs(r.base, r.spans, r.hashes))
	w.bytes += 10 * len(r.hashes)
}

func encodeExtents(extents []extent) []byte {
	out := make([]byte, 0, 10*len(extents))
	for _, p := range extents {
		out = binary.AppendUvarint(out, uint64(p.file))
		out = binary.AppendUvarint(out, uint64(p.at))
		out = binary.AppendUvarint(out, uint64(p.size))
		out = binary.AppendUvarint(out, uint64(p.count))
	}
	return out
}

func decodeExtents(b []byte) ([]extent, error) {
	var extents []extent
	for len(b) > 0 {
		var n [4]uint64
		for i := range n {
			v, w := binary.Uvarint(b)
			if w <= 0 {
				return nil, errCorrupt
			}
			n[i], b = v, b[w:]
		}
		extents = append(extents, extent{file: int64(n[0]), at: int64(n[1]), size: int(n[2]), count: int(n[3])})
	}
	return extents, nil
}

// sweep removes files nothing lies in any more.
func (s *sqliteStore) sweep() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &loading{store: s}
	var empty []int64
	l.each("files", `SELECT num FROM file WHERE live <= 0`, func(scan func(...any) error) error {
		var num int64
		err := scan(&num)
		if !s.journal.holds(num) {
			empty = append(empty, num)
		}
		return err
	})
	w := s.newWriting()
	w.err = l.err
	if len(empty) > 0 {
		w.transaction(func() {
			for _, num := range empty {
				w.do("nofile", num)
			}
		})
	}
	if w.err != nil {
		return w.err
	}
	return s.unlink(empty)
}

// unlink removes files whose rows are gone.
func (s *sqliteStore) unlink(files []int64) error {
	for _, num := range files {
		s.bodies.seal(num)
		if err := s.bodies.remove(num); err != nil {
			return err // the next start removes it
		}
	}
	return nil
}
