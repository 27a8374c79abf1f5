package devbroker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// bodies are the files that hold message bytes: append-only, a series for each
// queue, so that what is kept equally long dies together and a file goes as a
// whole. SQLite holds what is where; bytes it knows nothing of are the rest of
// a crash and cost nothing but room.
type bodies struct {
	dir   string
	limit int64              // bytes beyond which the next file of a series begins
	enter func(string) error // makes a folder's entries durable: syncDir
	sync  func(*os.File) error

	mu      sync.Mutex
	last    int64               // the highest number given
	current map[int64]*bodyFile // by queue: what is appended to
	grown   map[*bodyFile]bool  // beyond their tails
	open    int
}

// bodyFile is a file of a queue. Up to its tail SQLite knows what is in it;
// behind it are records, if the bytes of all that grew it since are one.
type bodyFile struct {
	num, queue int64
	size, tail int64
	records    int64    // where the records behind the tail end
	f          *os.File // nil: not open
}

// grownFile is how far a file has grown.
type grownFile struct {
	file             *bodyFile
	num, queue, size int64
}

// extent is where encoded messages of a segment are.
type extent struct {
	file, at    int64
	size, count int
}

const (
	bodyFileSize = 64 << 20
	maxOpenFiles = 64
	bodySuffix   = ".log"
)

// knownFile is what SQLite knows of a file.
type knownFile struct{ queue, tail int64 }

// openBodies finds the files of a directory; known are those that hold anything.
// Others are left by a crash, and removed.
func openBodies(dir string, known map[int64]knownFile) (*bodies, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(dir)); err != nil { // or a crash takes the folder and keeps the database
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b := &bodies{dir: dir, limit: bodyFileSize, enter: syncDir, sync: (*os.File).Sync, current: map[int64]*bodyFile{}, grown: map[*bodyFile]bool{}}
	for _, e := range entries {
		num, err := strconv.ParseInt(strings.TrimSuffix(e.Name(), bodySuffix), 10, 64)
		if err != nil {
			continue // not ours
		}
		b.last = max(b.last, num)
		is, ok := known[num]
		if !ok {
			if err := b.remove(num); err != nil {
				return nil, err
			}
			continue
		}
		if c := b.current[is.queue]; c == nil || c.num < num {
			b.current[is.queue] = &bodyFile{num: num, queue: is.queue, size: is.tail, tail: is.tail, records: is.tail}
		}
	}
	for num := range known {
		b.last = max(b.last, num)
	}
	return b, nil
}

func (b *bodies) path(num int64) string { return filepath.Join(b.dir, bodyName(num)) }

func bodyName(num int64) string { return fmt.Sprintf("%010d%s", num, bodySuffix) }

// append writes data to a queue's series and returns where, once it is on
// disk. What a failed write left is overwritten by the next.
func (b *bodies) append(queue int64, data []byte) (file, at int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.writable(queue)
	if err != nil {
		return 0, 0, err
	}
	if err := b.write(c, data); err != nil {
		return 0, 0, err
	}
	at = c.size
	c.size += int64(len(data))
	b.grown[c] = true
	return c.num, at, nil
}

// follow appends a record to a queue's file, when all behind its tail are
// records and it has room. What a failed write left is passed over by all that
// follow: it may be a whole record, which a start must not find.
func (b *bodies) follow(queue int64, record func(file, at int64) []byte) (done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.current[queue]
	if c == nil || c.tail == 0 || c.records != c.size || c.size >= b.limit {
		return false, nil
	}
	if c, err = b.writable(queue); err != nil {
		return true, err
	}
	data := record(c.num, c.size)
	if err = b.write(c, data); err == nil {
		c.records += int64(len(data))
	}
	c.size += int64(len(data))
	b.grown[c] = true
	return true, err
}

// write puts data at the end of a file, on disk; mu is held. A file that failed
// is opened again by the next.
func (b *bodies) write(c *bodyFile, data []byte) error {
	_, err := c.f.WriteAt(data, c.size)
	if err == nil {
		err = b.sync(c.f)
	}
	if err != nil {
		_ = c.f.Truncate(c.size) // gives the room back; its failure changes nothing
		b.shut(c)
	}
	return err
}

// currentFiles are the files that are appended to.
func (b *bodies) currentFiles() []*bodyFile {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.current))
}

// grow notes that a file has records up to a size.
func (b *bodies) grow(c *bodyFile, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.size, c.records = size, size
	b.grown[c] = true
}

// grownFiles are the files that have grown beyond their tails.
func (b *bodies) grownFiles() []grownFile {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]grownFile, 0, len(b.grown))
	for c := range b.grown {
		list = append(list, grownFile{file: c, num: c.num, queue: c.queue, size: c.size})
	}
	return list
}

// settle notes the tails that SQLite knows now.
func (b *bodies) settle(list []grownFile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range list {
		g.file.tail = g.size
		g.file.records = max(g.file.records, g.size)
		if g.file.size == g.size {
			delete(b.grown, g.file)
		}
	}
}

// writable is the open file a queue's bytes go to; mu is held.
func (b *bodies) writable(queue int64) (*bodyFile, error) {
	c := b.current[queue]
	if c == nil || c.size >= b.limit {
		b.shut(c)
		b.last++
		c = &bodyFile{num: b.last, queue: queue}
		b.current[queue] = c
	}
	if c.f != nil {
		return c, nil
	}
	if b.open >= maxOpenFiles {
		for _, other := range b.current {
			b.shut(other)
		}
	}
	f, err := os.OpenFile(b.path(c.num), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c.f = f
	b.open++
	if c.size > 0 {
		return c, nil
	}
	if err := b.enter(b.dir); err != nil { // or a crash takes the file and keeps its bytes
		b.shut(c) // and the next append tries again
		return nil, err
	}
	return c, nil
}

// shut closes a file that may be nil or closed; mu is held.
func (b *bodies) shut(c *bodyFile) {
	if c == nil || c.f == nil {
		return
	}
	_ = c.f.Close() // all of it is synced
	c.f = nil
	b.open--
}

// seal ends a file, so that nothing is appended to it any more.
func (b *bodies) seal(num int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue, c := range b.current {
		if c.num == num {
			b.shut(c)
			delete(b.current, queue)
			delete(b.grown, c)
		}
	}
}

func (b *bodies) remove(num int64) error {
	err := os.Remove(b.path(num))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (b *bodies) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.current {
		b.shut(c)
	}
}

// bodyReader reads extents; it keeps the file of the last one open.
type bodyReader struct {
	b   *bodies
	num int64
	f   *os.File
}

func (r *bodyReader) read(p extent) ([]byte, error) {
	if r.f == nil || r.num != p.file {
		r.close()
		f, err := os.Open(r.b.path(p.file))
		if err != nil {
			return nil, fmt.Errorf("read messages: %w", err)
		}
		r.f, r.num = f, p.file
	}
	data := make([]byte, p.size)
	if _, err := r.f.ReadAt(data, p.at); err != nil {
		return nil, fmt.Errorf("read messages of %s at %d: %w", r.f.Name(), p.at, err)
	}
	return data, nil
}

func (r *bodyReader) close() {
	if r.f != nil {
		_ = r.f.Close() // only read
		r.f = nil
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendBody encodes the messages of a segment: a checksum of the rest, when
// they were stored, then the messages.
func appendBody(dst []byte, s *storedSegment) []byte {
	begin := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = appendSpans(dst, s.base, s.spans)
	for _, b := range s.blobs {
		dst = append(dst, b...)
	}
	binary.LittleEndian.PutUint32(dst[begin:], crc32.Checksum(dst[begin+4:], castagnoli))
	return dst
}

func decodeBody(base uint64, b []byte) (spans []span, blob []byte, err error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return nil, nil, errCorrupt
	}
	return decodeSpans(base, b[4:])
}
