package ingress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Spool is the local log of events that were accepted while Queen was away:
// each is on disk, synced, before its request is answered. Safe for concurrent
// use. One process at a time may open it (ErrSpoolInUse); ReadSpool looks at it
// beside that process.
//
// It is kept in SQLite, so a crash at any moment leaves whole batches or none:
// what was being written when the process died was not answered.
type Spool struct {
	dir   string
	limit int64
	store *spoolStore

	mu     sync.Mutex
	queues map[string]*spooledQueue // those that hold something
	bytes  int64
	torn   int64
}

// SpoolOptions open a Spool.
type SpoolOptions struct {
	// MaxBytes bounds what the spool holds, in bytes of events. The file may
	// be somewhat larger. 0, the default, means no bound.
	MaxBytes int64
}

// ErrSpoolInUse says that another process has the spool open: a bridge that
// runs, which replays it by itself.
var ErrSpoolInUse = errors.New("the spool is in use")

// errSpoolFull is an append over MaxBytes.
var errSpoolFull = errors.New("the spool is full")

// SpoolStatus is what a spool holds.
type SpoolStatus struct {
	// Bytes are those of all events, MaxBytes the bound on them, 0 where it is
	// not known.
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
	// Torn are the bytes of a write that a crash cut off, dropped when the
	// spool was opened: nothing in it was ever answered 2xx.
	Torn int64 `json:"torn"`
	// Queues are sorted by name.
	Queues []SpooledQueue `json:"queues"`
}

// SpooledQueue is what a spool holds of one queue.
type SpooledQueue struct {
	Queue  string `json:"queue"`
	Events int64  `json:"events"` // that wait for Queen
	Bytes  int64  `json:"bytes"`  // refused ones included
	// Oldest is when the oldest of the waiting events was accepted, the zero
	// time where none waits.
	Oldest time.Time `json:"oldest"`
	// Refused are events that Queen will never take. They are kept, and no
	// longer sent.
	Refused int64 `json:"refused"`
}

// spooledQueue counts what is held of one queue.
type spooledQueue struct {
	events, bytes, refused int64
}

// spoolOverhead is what an event takes beside its texts, in bytes.
const spoolOverhead = 64

func spoolBytes(item *queen.Item) int64 {
	return int64(len(item.Queue)+len(item.Partition)+len(item.TransactionID)+len(item.Payload)) + spoolOverhead
}

// OpenSpool opens the spool in a directory, and makes it where there is none.
// Close it.
func OpenSpool(dir string, o SpoolOptions) (*Spool, error) {
	s, err := openSpool(dir, o)
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", dir, err)
	}
	return s, nil
}

func openSpool(dir string, o SpoolOptions) (*Spool, error) {
	store, err := openSpoolStore(dir)
	if err != nil {
		return nil, err
	}
	s := &Spool{dir: dir, limit: o.MaxBytes, store: store, queues: make(map[string]*spooledQueue)}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// load counts what is there.
func (s *Spool) load() error {
	list, err := s.store.count()
	if err != nil {
		return err
	}
	for _, q := range list {
		s.queues[q.Queue] = &spooledQueue{events: q.Events, bytes: q.Bytes, refused: q.Refused}
		s.bytes += q.Bytes
	}
	s.torn = s.store.torn
	return nil
}

// Close lets go of the spool; what it holds stays.
func (s *Spool) Close() error { return s.store.close() }

// Status is what the spool holds.
func (s *Spool) Status() (SpoolStatus, error) {
	list, err := s.store.count()
	if err != nil {
		return SpoolStatus{}, fmt.Errorf("read spool %s: %w", s.dir, err)
	}
	return spoolStatus(list, s.limit, s.torn), nil
}

// ReadSpool is the status of the spool in a directory, also while another
// process has it open.
func ReadSpool(dir string) (SpoolStatus, error) {
	name := filepath.Join(dir, spoolFile)
	if _, err := os.Stat(name); err != nil {
		return SpoolStatus{}, fmt.Errorf("read spool: %w", err)
	}
	store, err := readSpoolStore(name)
	if err != nil {
		return SpoolStatus{}, fmt.Errorf("read spool %s: %w", dir, err)
	}
	list, err := store.count()
	if err := errors.Join(err, store.close()); err != nil {
		return SpoolStatus{}, fmt.Errorf("read spool %s: %w", dir, err)
	}
	return spoolStatus(list, 0, 0), nil
}

func spoolStatus(list []SpooledQueue, limit, torn int64) SpoolStatus {
	slices.SortFunc(list, func(a, b SpooledQueue) int { return strings.Compare(a.Queue, b.Queue) })
	out := SpoolStatus{MaxBytes: limit, Torn: torn, Queues: list}
	for _, q := range list {
		out.Bytes += q.Bytes
	}
	return out
}

// append writes items, all or none, and returns when they are on disk.
func (s *Spool) append(items []queen.Item) error {
	need := int64(0)
	for i := range items {
		need += spoolBytes(&items[i])
	}
	name := items[0].Queue
	if err := s.reserve(name, int64(len(items)), need); err != nil {
		return err
	}
	if err := s.store.append(items, time.Now()); err != nil {
		s.book(name, -int64(len(items)), -need, 0)
		return fmt.Errorf("write to spool %s: %w", s.dir, err)
	}
	return nil
}

// reserve counts events in before they are written: what comes behind them
// must not overtake them.
func (s *Spool) reserve(name string, events, need int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && s.bytes+need > s.limit {
		return errSpoolFull
	}
	s.count(name, events, need, 0)
	return nil
}

func (s *Spool) book(name string, events, bytes, refused int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(name, events, bytes, refused)
}

func (s *Spool) count(name string, events, bytes, refused int64) {
	q := s.queues[name]
	if q == nil {
		q = &spooledQueue{}
		s.queues[name] = q
	}
	q.events, q.bytes, q.refused = q.events+events, q.bytes+bytes, q.refused+refused
	s.bytes += bytes
	if *q == (spooledQueue{}) {
		delete(s.queues, name)
	}
}

// waits says that events of a queue wait for Queen.
func (s *Spool) waits(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	return q != nil && q.events > 0
}

// totals are the events that wait, the bytes of all and the events refused.
func (s *Spool) totals() (events, bytes, refused int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		events, refused = events+q.events, refused+q.refused
	}
	return events, s.bytes, refused
}

// room says that n more bytes fit.
func (s *Spool) room(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit <= 0 || s.bytes+n <= s.limit
}

// waiting are the queues of which events wait, sorted.
func (s *Spool) waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, q := range s.queues {
		if q.events > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Drain pushes what waits, oldest first and each queue's partitions in order,
// until none is left, and returns how many events Queen has taken. It tries
// again, ever more slowly, while Queen is away, until ctx ends: its error says
// how many are left.
func (s *Spool) Drain(ctx context.Context, p Pusher) (taken int, err error) {
	for _, name := range s.waiting() {
		r := newReplay(s, name, p)
		err := r.run(ctx)
		taken += r.taken
		if err != nil {
			return taken, fmt.Errorf("drain spool %s: queue %q: %w", s.dir, name, err)
		}
	}
	if err := s.store.shrink(); err != nil {
		return taken, fmt.Errorf("drain spool %s: give back its room: %w", s.dir, err)
	}
	return taken, nil
}
