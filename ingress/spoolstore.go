//go:build !nospool

package ingress

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/sqlitefile"
)

// spoolStore is the table of spooled events: SQLite in WAL mode with a sync at
// every commit. One commit holds one batch, which is the group commit of the
// batcher in front of it.
type spoolStore struct {
	db   *sql.DB
	mu   sync.Mutex // one connection writes
	torn int64      // bytes behind the last whole commit when it was opened

	unlock func() error
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

// openSpoolStore opens the store in a directory, for one process at a time.
func openSpoolStore(dir string) (*spoolStore, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	unlock, err := sqlitefile.Lock(dir)
	if errors.Is(err, sqlitefile.ErrInUse) {
		return nil, fmt.Errorf("%w: %w", ErrSpoolInUse, err)
	}
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, spoolFile)
	db := sqlitefile.Open(file, "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "journal_size_limit(4194304)")
	db.SetMaxOpenConns(1)
	s := &spoolStore{db: db, unlock: unlock}
	if err := s.prepare(file); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// readSpoolStore opens a store of another process, to look at it.
func readSpoolStore(file string) (*spoolStore, error) {
	s := &spoolStore{db: sqlitefile.OpenReadOnly(file), unlock: func() error { return nil }}
	s.db.SetMaxOpenConns(1)
	if _, err := s.format(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *spoolStore) prepare(file string) error {
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
	s.torn, err = sqlitefile.Torn(context.Background(), s.db, file)
	return err
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

func (s *spoolStore) close() error { return errors.Join(s.db.Close(), s.unlock()) }
