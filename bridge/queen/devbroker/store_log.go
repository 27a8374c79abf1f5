package devbroker

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
)

// A commit that only adds messages to one queue needs no transaction: it is
// appended to the queue's file as one record that says what it is, and one sync
// makes it durable. The next transaction writes the journal rows of the records
// before it, and how far each file is known (its tail); a start reads only what
// lies behind the tail.

// A record is recordHead bytes, the encoded messages, and what a journal row
// says of them. The head holds the sizes of both and a checksum of itself and
// the latter, begun with where the record is; messages carry their own.
const (
	recordHead = 4 + 4 + 4
	maxRecord  = 64 << 20
)

// record encodes an entry behind dst as a record for the place it will have.
func (e *entry) record(dst []byte, file, at int64) []byte {
	begin := len(dst)
	dst = e.encode(append(dst, make([]byte, recordHead)...))
	size := len(dst) - begin - recordHead
	foot := len(dst)
	dst = binary.AppendUvarint(dst, uint64(e.queue))
	dst = append(binary.AppendUvarint(dst, uint64(len(e.extents))), e.extents...)
	dst = append(dst, e.ids...)
	head := dst[begin : begin+recordHead]
	binary.LittleEndian.PutUint32(head, uint32(size))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(dst)-foot))
	binary.LittleEndian.PutUint32(head[8:], recordSum(file, at, head[:8], dst[foot:]))
	e.data = nil
	return dst
}

func recordSum(file, at int64, sizes, foot []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], uint64(file))
	binary.LittleEndian.PutUint64(place[8:], uint64(at))
	sum := crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, sizes)
	return crc32.Update(sum, castagnoli, foot)
}

// readRecord reads the record at a place of a file that ends at end, and says
// how long it is. errCorrupt: there is no whole one.
func readRecord(r io.ReaderAt, file, at, end int64) (e *entry, size int64, err error) {
	var head [recordHead]byte
	if at+recordHead > end {
		return nil, 0, errCorrupt
	}
	if _, err := r.ReadAt(head[:], at); err != nil {
		return nil, 0, err
	}
	bodies, foot := int64(binary.LittleEndian.Uint32(head[:])), int64(binary.LittleEndian.Uint32(head[4:]))
	size = recordHead + bodies + foot
	if at+size > end {
		return nil, 0, errCorrupt
	}
	b := make([]byte, bodies+foot)
	if _, err := r.ReadAt(b, at+recordHead); err != nil {
		return nil, 0, err
	}
	if recordSum(file, at, head[:8], b[bodies:]) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, 0, errCorrupt
	}
	e = &entry{file: file, at: at + recordHead}
	return e, size, e.decodeRecord(b[:bodies], b[bodies:])
}

// decodeRecord reads what follows a record's head, and checks its messages.
func (e *entry) decodeRecord(bodies, foot []byte) error {
	queue, n := binary.Uvarint(foot)
	if n <= 0 {
		return errCorrupt
	}
	foot = foot[n:]
	length, n := binary.Uvarint(foot)
	if n <= 0 || length > uint64(len(foot)-n) {
		return errCorrupt
	}
	e.queue, e.extents, e.ids = int64(queue), foot[n:n+int(length)], foot[n+int(length):]
	if err := e.decode(); err != nil {
		return err
	}
	for _, r := range e.segments {
		if r.extent.at+int64(r.extent.size) > int64(len(bodies)) {
			return errCorrupt
		}
		if _, _, err := decodeBody(r.base, bodies[r.extent.at:][:r.extent.size]); err != nil {
			return err
		}
	}
	return nil
}

// logged stores a commit as a record, if it is one for that.
func (w *writing) logged(c *changes, list []*entry) (done bool) {
	if len(list) != 1 || !c.pushesOnly() || list[0].bound() > maxRecord/2 {
		return false
	}
	e := list[0]
	var bytes []byte
	done, w.err = w.store.bodies.follow(e.queue, func(file, at int64) []byte {
		e.file, e.at = file, at+recordHead
		bytes = e.record(w.store.buffer(e.bound()+recordHead), file, at)
		return bytes
	})
	if !done || w.err != nil {
		return done
	}
	w.store.keep(bytes)
	row := w.store.row()
	w.recent = e.settle(row)
	w.store.unlisted = append(w.store.unlisted, unlisted{row, e})
	w.bytes = len(e.ids) + len(e.extents)
	return true
}

// pushesOnly says that a commit adds messages and changes nothing else.
func (c *changes) pushesOnly() bool {
	others := len(c.queues) + len(c.parts) + len(c.groups) + len(c.cursors) + len(c.timers) + len(c.kv) + len(c.dead) + len(c.traces) +
		len(c.noTimers) + len(c.noKV) + len(c.noDead) + len(c.noGroups) + len(c.noQueues)
	return len(c.segments) > 0 && others == 0
}

// unlisted is a record that has no row in the journal yet.
type unlisted struct {
	row int64
	*entry
}

// list writes the rows of the records that have none, but for those that a fold
// takes away at once, and the tails of the files that have grown.
func (w *writing) list() {
	for _, u := range w.store.unlisted {
		if u.row > w.folded {
			w.do("journal", u.row, u.queue, u.file, u.at, u.extents, u.ids, nil)
		}
	}
	w.tails = w.store.bodies.grownFiles()
	for _, t := range w.tails {
		w.do("tail", t.num, t.queue, t.size)
	}
}

// listed notes that a transaction has done so.
func (w *writing) listed() {
	w.store.unlisted = nil
	w.store.bodies.settle(w.tails)
}

// recoverRecords takes in the records behind the tails, and cuts off what a
// crash left behind those.
func (s *sqliteStore) recoverRecords() error {
	for _, c := range s.bodies.currentFiles() {
		entries, err := s.recordsOf(c)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.bodies.path(c.num), err)
		}
		for _, e := range entries {
			row := s.row()
			s.journal.add(e.settle(row))
			s.unlisted = append(s.unlisted, unlisted{row, e})
		}
	}
	if len(s.unlisted) == 0 {
		return nil
	}
	return s.listAll()
}

// recordsOf reads the records behind the tail of a file.
func (s *sqliteStore) recordsOf(c *bodyFile) (entries []*entry, err error) {
	f, err := os.OpenFile(s.bodies.path(c.num), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing but a truncation was written
	info, err := f.Stat()
	if err != nil || info.Size() <= c.tail {
		return nil, err
	}
	at := c.tail
	for at < info.Size() {
		e, size, err := readRecord(f, c.num, at, info.Size())
		if err != nil {
			break // it was being written
		}
		entries, at = append(entries, e), at+size
	}
	s.bodies.grow(c, at)
	if torn := info.Size() - at; torn > 0 {
		s.log.Warn("the end of a file was cut off by a crash and is dropped; nothing of it was acknowledged",
			slog.String("file", f.Name()), slog.Int64("bytes", torn))
		return entries, f.Truncate(at)
	}
	return entries, nil
}

// listAll gives every record its row.
func (s *sqliteStore) listAll() error {
	w := s.newWriting()
	w.transaction(func() {})
	return w.err
}

// buffer is memory to encode a commit in. Only the writer uses it.
func (s *sqliteStore) buffer(size int) []byte {
	if cap(s.scratch) < size {
		s.scratch = make([]byte, 0, size+size/4)
	}
	return s.scratch[:0]
}

// keepScratch is the largest buffer worth keeping.
const keepScratch = 8 << 20

// keep gives back a buffer.
func (s *sqliteStore) keep(b []byte) {
	if s.scratch = b[:0]; cap(b) > keepScratch {
		s.scratch = nil
	}
}

// row is the number of the next row of the journal.
func (s *sqliteStore) row() int64 {
	n := s.nextRow
	s.nextRow++
	return n
}
