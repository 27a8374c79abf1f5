//go:build !nospool

package ingress

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// spoolStore is the table of spooled events: SQLite in WAL mode with a sync at
// every commit. One commit holds one batch, which is the group commit of the
// batcher in front of it.
type spoolStore struct {
	db   *sql.DB
	mu   sync.Mutex // one connection writes
	torn int64      // bytes behind the last whole commit when it was opened
}

const (
	spoolFile = "spool.db"
	// spoolFormat is the version of the table, which it carries as
	// user_version.
	spoolFormat = 1
	spoolSchema = `BEGIN;
CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, partition TEXT NOT NULL, txn TEXT NOT NULL,
	payload BLOB NOT NULL, size INTEGER NOT NULL, at INTEGER NOT NULL, refused TEXT);
CREATE INDEX event_queue ON event (queue, seq);
PRAGMA user_version = 1;
COMMIT;`
)

// spoolDSN names the file and the pragmas of each connection to it.
func spoolDSN(file string, pragmas ...string) string {
	q := url.Values{}
	for _, p := range append(pragmas, "busy_timeout(10000)", "synchronous(FULL)") {
		q.Add("_pragma", p)
	}
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + q.Encode()
}

// spoolConnector opens connections without registering a driver under a name.
type spoolConnector struct{ dsn string }

// Connect opens one connection.
func (c spoolConnector) Connect(context.Context) (driver.Conn, error) {
	return new(sqlite.Driver).Open(c.dsn)
}

// Driver returns the driver.
func (c spoolConnector) Driver() driver.Driver { return new(sqlite.Driver) }

func openSpoolStore(file string) (*spoolStore, error) {
	log, err := readLog(file + "-wal")
	if err != nil {
		return nil, err
	}
	s := &spoolStore{db: sql.OpenDB(spoolConnector{spoolDSN(file, "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "journal_size_limit(4194304)")})}
	s.db.SetMaxOpenConns(1)
	if err := s.prepare(log); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// readSpoolStore opens a store of another process, to look at it: nothing is
// recovered or folded.
func readSpoolStore(file string) (*spoolStore, error) {
	s := &spoolStore{db: sql.OpenDB(spoolConnector{spoolDSN(file) + "&mode=ro"})}
	s.db.SetMaxOpenConns(1)
	if _, err := s.format(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *spoolStore) prepare(log walLog) error {
	version, err := s.format()
	if err != nil {
		return err
	}
	if version == 0 {
		if _, err := s.db.Exec(spoolSchema); err != nil {
			return fmt.Errorf("make the table: %w", err)
		}
		return nil
	}
	var busy, frames, folded int64
	if err := s.db.QueryRow(`PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &folded); err != nil {
		return err
	}
	s.torn = log.torn(frames)
	return nil
}

func (s *spoolStore) format() (version int, err error) {
	if err := s.db.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
		return 0, err
	}
	if version > spoolFormat {
		return 0, fmt.Errorf("it has format %d, this version knows formats up to %d", version, spoolFormat)
	}
	return version, nil
}

// walLog is what stands in a write-ahead log before SQLite recovers it
// (sqlite.org/fileformat2.html, 4.1): which frames belong to its last run.
type walLog struct {
	frameSize int64
	current   []bool
	rest      int64 // bytes of a frame that is not whole
}

const (
	walHeader      = 32
	walFrameHeader = 24
)

func readLog(file string) (walLog, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return walLog{}, nil
	}
	return parseLog(raw), err
}

func parseLog(raw []byte) walLog {
	if len(raw) < walHeader {
		return walLog{}
	}
	log := walLog{frameSize: walFrameHeader + int64(binary.BigEndian.Uint32(raw[8:]))}
	salt := string(raw[16:24])
	frames := raw[walHeader:]
	for int64(len(frames)) >= log.frameSize {
		log.current = append(log.current, string(frames[8:16]) == salt)
		frames = frames[log.frameSize:]
	}
	log.rest = int64(len(frames))
	return log
}

// torn are the bytes of the last run behind its whole commits. Frames of an
// earlier run, whose room is used again, are none.
func (l walLog) torn(committed int64) int64 {
	n := int64(0)
	for i := max(committed, 0); i < int64(len(l.current)) && l.current[i]; i++ {
		n += l.frameSize
	}
	return n + l.rest
}

// append writes items in one commit. The disk has them when it returns nil.
func (s *spoolStore) append(items []queen.Item, now time.Time) error {
	return s.transact(func(tx *sql.Tx) error {
		insert, err := tx.Prepare(`INSERT INTO event (queue, partition, txn, payload, size, at) VALUES (?, ?, ?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer func() { _ = insert.Close() }()
		for i := range items {
			it := &items[i]
			if _, err := insert.Exec(it.Queue, it.Partition, it.TransactionID, []byte(it.Payload), spoolBytes(it), now.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *spoolStore) transact(do func(*sql.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// spooledEvent is one event that waits.
type spooledEvent struct {
	seq  int64
	item queen.Item
}

// next are events of a queue behind a number, in order, up to limit and about
// so many bytes.
func (s *spoolStore) next(name string, after int64, limit int, size int64) (out []spooledEvent, err error) {
	rows, err := s.db.Query(`SELECT seq, partition, txn, payload, size FROM event
		WHERE queue = ? AND seq > ? AND refused IS NULL ORDER BY seq LIMIT ?`, name, after, limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for size > 0 && rows.Next() {
		e := spooledEvent{item: queen.Item{Queue: name}}
		var payload []byte
		var n int64
		if err := rows.Scan(&e.seq, &e.item.Partition, &e.item.TransactionID, &payload, &n); err != nil {
			return nil, err
		}
		e.item.Payload = payload
		size -= n
		out = append(out, e)
	}
	return out, rows.Err()
}

// settle takes away what Queen has, and marks what it refused with its words.
func (s *spoolStore) settle(stored []int64, refused map[int64]string) error {
	return s.transact(func(tx *sql.Tx) error {
		for _, seq := range stored {
			if _, err := tx.Exec(`DELETE FROM event WHERE seq = ?`, seq); err != nil {
				return err
			}
		}
		for seq, text := range refused {
			if _, err := tx.Exec(`UPDATE event SET refused = ? WHERE seq = ?`, text, seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// count sums up what is held, by queue.
func (s *spoolStore) count() (out []SpooledQueue, err error) {
	rows, err := s.db.Query(`SELECT queue, count(*) - count(refused), sum(size), count(refused),
		coalesce(min(CASE WHEN refused IS NULL THEN at END), 0) FROM event GROUP BY queue`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var q SpooledQueue
		var at int64
		if err := rows.Scan(&q.Queue, &q.Events, &q.Bytes, &q.Refused, &at); err != nil {
			return nil, err
		}
		if at > 0 {
			q.Oldest = time.UnixMilli(at).UTC()
		}
		out = append(out, q)
	}
	return out, rows.Err()
}

// oldest is when the oldest event that waits was accepted.
func (s *spoolStore) oldest() (time.Time, error) {
	var at sql.NullInt64
	if err := s.db.QueryRow(`SELECT at FROM event WHERE refused IS NULL ORDER BY seq LIMIT 1`).Scan(&at); err != nil || !at.Valid {
		return time.Time{}, err
	}
	return time.UnixMilli(at.Int64), nil
}

// shrink gives the disk back what is free.
func (s *spoolStore) shrink() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.db.Exec(`PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);`)
	return err
}

func (s *spoolStore) close() error { return s.db.Close() }
