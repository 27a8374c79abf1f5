package devbroker

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// The latest commits stand in the journal: one row for each queue a commit
// touches, whatever the number of its partitions, for each row of an index by
// partition would dirty a page of its own. A fold turns many of them into one
// row of runs per partition.

// recent is one segment of the journal. extent and body change, under
// journal.mu, when a fold moves the bytes to a file.
type recent struct {
	row         int64 // of the journal
	queue, part int64
	base        uint64
	spans       []span
	hashes      []uint64
	extent      extent
	body        []byte      // its bytes, where they are in the journal
	dropped     atomic.Bool // deleted since
}

// piece is where the messages of a segment are now.
type piece struct {
	base   uint64
	extent extent
	body   []byte // nil: in a file
}

func (r *recent) end() uint64 { return r.base + uint64(len(r.hashes)) }

// journal knows the journal's segments.
type journal struct {
	mu    sync.RWMutex
	parts map[int64][]*recent
	all   []*recent     // in order
	rows  map[int64]int // how many of each row are not deleted
	files map[int64]int // how many of those lie in each file
	bytes int           // in the journal and beside it
	held  int           // bytes kept in memory
	limit int           // of those
}

func newJournal() *journal {
	return &journal{limit: journalLimit, parts: map[int64][]*recent{}, rows: map[int64]int{}, files: map[int64]int{}}
}

func (j *journal) add(all []*recent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range all {
		j.parts[r.part] = append(j.parts[r.part], r)
		j.all = append(j.all, r)
		j.count(r, 1)
		j.bytes += r.extent.size
		j.held += len(r.body)
	}
}

// count notes that there is one more, or one less, in its row and file; mu is
// held.
func (j *journal) count(r *recent, n int) {
	if j.rows[r.row] += n; j.rows[r.row] == 0 {
		delete(j.rows, r.row)
	}
	if j.files[r.extent.file] += n; j.files[r.extent.file] == 0 {
		delete(j.files, r.extent.file)
	}
}

// dying lists the rows of which nothing is left once partitions begin where
// they are said to.
func (j *journal) dying(parts []partitionRow) (rows []int64) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	less := map[int64]int{}
	for _, p := range parts {
		for _, r := range j.parts[p.num] {
			if r.end() > p.first {
				break
			}
			less[r.row]++
		}
	}
	for row, n := range less {
		if j.rows[row] == n {
			rows = append(rows, row)
		}
	}
	return rows
}

// of returns the segments of a partition that hold any of [from, to).
func (j *journal) of(part int64, from, to uint64) []piece {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var out []piece
	for _, r := range j.parts[part] {
		if r.base < to && r.end() > from {
			out = append(out, piece{r.base, r.extent, r.body})
		}
	}
	return out
}

// moved notes where the bytes of segments are now. Those that are in a file
// need not be in memory any more.
func (j *journal) moved(list []*recent, extents []extent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, r := range list {
		if extents[i] == r.extent {
			continue
		}
		live := !r.dropped.Load()
		if live {
			j.count(r, -1)
		}
		j.held -= len(r.body)
		r.extent, r.body = extents[i], nil
		if live {
			j.count(r, 1)
		}
	}
}

// drop takes out what lies before an offset.
func (j *journal) drop(part int64, first uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.parts[part]
	n := 0
	for n < len(list) && list[n].end() <= first {
		list[n].dropped.Store(true)
		j.count(list[n], -1)
		n++
	}
	if j.parts[part] = list[n:]; n == len(list) {
		delete(j.parts, part)
	}
}

// dropQueue takes out all of a queue.
func (j *journal) dropQueue(queue int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.all {
		if r.queue == queue && !r.dropped.Swap(true) {
			j.count(r, -1)
			delete(j.parts, r.part)
		}
	}
}

// standing is all there is now.
func (j *journal) standing() []*recent {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.all[:len(j.all):len(j.all)]
}

// folded takes out the first n that were there; they are runs now.
func (j *journal) folded(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.all[:n] {
		if !r.dropped.Load() {
			j.count(r, -1)
		}
		j.bytes -= r.extent.size
		j.held -= len(r.body)
		if list := j.parts[r.part]; len(list) > 0 && list[0] == r {
			list[0] = nil
			if j.parts[r.part] = list[1:]; len(list) == 1 {
				delete(j.parts, r.part)
			}
		}
	}
	j.all = append([]*recent(nil), j.all[n:]...)
}

// long says that it is time for a fold.
func (j *journal) long() bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.all) >= foldSegments || j.held >= foldHeld || j.bytes >= foldBytes
}

// full says that the journal has grown as far as it may.
func (j *journal) full() bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.held >= j.limit || j.bytes >= mostFolds*foldBytes || len(j.all) >= mostFolds*foldSegments
}

// holds says that a file holds segments of the journal.
func (j *journal) holds(file int64) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.files[file] > 0
}

// entry is a journal row in the making: what one commit adds to one queue.
type entry struct {
	queue        int64
	source       []*storedSegment
	file, at     int64 // file 0: the bytes are in the row
	segments     []*recent
	extents, ids []byte
	data         []byte
}

// mostFolds bounds the journal: when folds fail, or fall behind, a commit folds
// before it adds to what is worth so many of them.
const (
	mostFolds    = 8
	journalLimit = mostFolds * foldHeld
)

// inlineLimit is the size up to which bytes go through the journal: below it
// one sync for both is worth more than writing the bytes once.
const inlineLimit = 256 << 10

// entries sorts the segments of a commit by queue.
func entries(segs []storedSegment) []*entry {
	var list []*entry
	of := map[int64]*entry{}
	for i := range segs {
		s := &segs[i]
		e := of[s.queue]
		if e == nil {
			e = &entry{queue: s.queue}
			of[s.queue] = e
			list = append(list, e)
		}
		e.source = append(e.source, s)
	}
	return list
}

// bound is at least the size of the encoded messages.
func (e *entry) bound() (n int) {
	for _, s := range e.source {
		n += 4 + (1+2*len(s.spans))*binary.MaxVarintLen64 + s.size()
	}
	return n
}

// encode appends the messages to dst, which it returns, and makes what the row
// says of them.
func (e *entry) encode(dst []byte) []byte {
	begin := len(dst)
	list := make([]recent, len(e.source))
	e.segments = make([]*recent, len(e.source))
	for i, s := range e.source {
		at := len(dst)
		dst = appendBody(dst, s)
		list[i].describe(s, extent{at: int64(at - begin), size: len(dst) - at, count: len(s.hashes)})
		e.segments[i] = &list[i]
		e.add(&list[i])
	}
	e.data, e.source = dst[begin:], nil
	return dst
}

func (r *recent) describe(s *storedSegment, p extent) {
	r.queue, r.part, r.base, r.spans, r.hashes, r.extent = s.queue, s.part, s.base, s.spans, s.hashes, p
}

// add notes a segment in what the row says.
func (e *entry) add(r *recent) {
	for _, n := range [...]uint64{uint64(r.part), r.base, uint64(len(r.hashes)), uint64(r.extent.size)} {
		e.extents = binary.AppendUvarint(e.extents, n)
	}
	ids := encodeIDs(r.base, r.spans, r.hashes)
	e.ids = append(binary.AppendUvarint(e.ids, uint64(len(ids))), ids...)
}

// settle says where the entry is now.
func (e *entry) settle(row int64) []*recent {
	for _, r := range e.segments {
		r.row = row
		if e.file == 0 {
			r.body = e.data[r.extent.at : r.extent.at+int64(r.extent.size)]
			continue
		}
		r.extent.file = e.file
		r.extent.at += e.at
	}
	return e.segments
}

// decode reads the segments of a stored row.
func (e *entry) decode() error {
	at := int64(0)
	for extents, ids := e.extents, e.ids; len(extents) > 0; {
		var n [4]uint64
		for i := range n {
			v, w := binary.Uvarint(extents)
			if w <= 0 {
				return errCorrupt
			}
			n[i], extents = v, extents[w:]
		}
		length, w := binary.Uvarint(ids)
		if w <= 0 || length > uint64(len(ids)-w) {
			return errCorrupt
		}
		r := &recent{queue: e.queue, part: int64(n[0]), base: n[1], extent: extent{at: at, size: int(n[3]), count: int(n[2])}}
		var err error
		if r.spans, r.hashes, err = decodeIDs(r.base, ids[w:w+int(length)]); err != nil {
			return err
		}
		if len(r.hashes) != r.extent.count || e.file == 0 && at+int64(r.extent.size) > int64(len(e.data)) {
			return errCorrupt
		}
		ids = ids[w+int(length):]
		at += int64(r.extent.size)
		e.segments = append(e.segments, r)
	}
	return nil
}
