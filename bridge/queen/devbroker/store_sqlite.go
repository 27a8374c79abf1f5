package devbroker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge/sqlitefile"
)

// sqliteStore keeps the state in one SQLite database, in WAL mode with a sync
// at every commit, and message bytes, with the records of plain pushes, in
// files beside it. One connection writes, others read beside it; the journal and SQLite's own log are folded
// off the commit path.
type sqliteStore struct {
	log    *slog.Logger
	unlock func() error

	mu      sync.Mutex // the writing connection
	write   *sql.Conn
	exec    map[string]*sql.Stmt
	nextRow int64 // of the journal
	scratch []byte
	// unlisted are the records since the last transaction.
	unlisted []unlisted

	bodies  *bodies
	journal *journal
	deleted atomic.Bool // messages, since files were swept

	tidying   sync.Mutex // held while folding or sweeping; taken before mu
	foldAgain time.Time  // when a fold that failed is tried again

	writer, reader *sql.DB
	readRuns       *sql.Stmt
	readTimer      *sql.Stmt

	written chan int // bytes committed, for the checkpointer
	wg      sync.WaitGroup
}

const dataFile = "queen.db"

// openSQLite opens, and if need be makes, the database in a directory.
func openSQLite(dir string, log *slog.Logger) (store, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	unlock, err := sqlitefile.Lock(dir)
	if err != nil {
		return nil, err
	}
	s := &sqliteStore{log: log, unlock: unlock, written: make(chan int, 1), exec: map[string]*sql.Stmt{}}
	if err := s.open(filepath.Join(dir, dataFile)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.wg.Go(s.runCheckpoints)
	return s, nil
}

func (s *sqliteStore) open(file string) (err error) {
	s.writer = openFile(file, "cache_size(-4000)")
	s.reader = openFile(file, "cache_size(-2000)")
	s.reader.SetMaxOpenConns(2)
	ctx := context.Background()
	if s.write, err = s.writer.Conn(ctx); err != nil {
		return err
	}
	if err := s.reportTorn(ctx, file); err != nil {
		return err
	}
	if err := s.migrate(ctx, file); err != nil {
		return err
	}
	for name, text := range writeStatements {
		if s.exec[name], err = s.write.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	if s.readRuns, err = s.reader.PrepareContext(ctx, selectRuns); err != nil {
		return err
	}
	if s.readTimer, err = s.reader.PrepareContext(ctx, `SELECT data FROM timerbody WHERE id = ?`); err != nil {
		return err
	}
	if err := s.loadJournal(); err != nil {
		return err
	}
	return s.recoverRecords()
}

func (s *sqliteStore) durable() bool { return true }

// openFile opens the database; its log is folded by checkpoints of our own.
func openFile(file, cache string) *sql.DB {
	return sqlitefile.Open(file, cache, "journal_mode(WAL)", "wal_autocheckpoint(0)", "temp_store(MEMORY)")
}

// reportTorn says what a crash cut off: nothing of it was ever acknowledged.
func (s *sqliteStore) reportTorn(ctx context.Context, file string) error {
	torn, err := sqlitefile.Torn(ctx, s.write, file)
	if err == nil && torn > 0 {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the end of the log was cut off by a crash and is dropped; nothing of it was acknowledged",
			slog.Int64("bytes", torn))
	}
	return err
}

// format is the version of the tables below, which they carry as user_version.
// A broker refuses data of a later one.
const format = 3

const schema = `BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE queue (num INTEGER PRIMARY KEY, id TEXT, name TEXT, namespace TEXT, task TEXT, created INTEGER, options TEXT);
CREATE TABLE part (num INTEGER PRIMARY KEY, queue INTEGER, id TEXT, name TEXT, created INTEGER,
	first INTEGER, next INTEGER, known INTEGER);
CREATE TABLE grp (queue INTEGER, name TEXT, everything INTEGER, since INTEGER, created INTEGER, conflates INTEGER,
	PRIMARY KEY (queue, name)) WITHOUT ROWID;
CREATE TABLE cursor (part INTEGER, grp TEXT, next INTEGER, lease TEXT, until INTEGER, lease_start INTEGER, lease_end INTEGER,
	retries INTEGER, attempts INTEGER, attempt_at INTEGER, conflated INTEGER, PRIMARY KEY (part, grp)) WITHOUT ROWID;
` + messageTables + `
CREATE TABLE timer (id INTEGER PRIMARY KEY, queue TEXT, key TEXT, partition TEXT, txn TEXT, message BLOB,
	at INTEGER, created INTEGER, modified INTEGER, zstd INTEGER);
CREATE TABLE timerbody (id INTEGER PRIMARY KEY, data BLOB);
CREATE TABLE kv (ns TEXT, key TEXT, value BLOB, version INTEGER, modified INTEGER, expires INTEGER, PRIMARY KEY (ns, key)) WITHOUT ROWID;
CREATE TABLE dead (id TEXT PRIMARY KEY, queue TEXT, queue_num INTEGER, partition TEXT, part_id TEXT, grp TEXT, txn TEXT, message BLOB,
	text TEXT, retries INTEGER, at INTEGER, data BLOB);
CREATE TABLE trace (id TEXT PRIMARY KEY, txn TEXT, part TEXT, grp TEXT, event TEXT, names TEXT, data BLOB, at INTEGER);
PRAGMA user_version = 3;
`

func (s *sqliteStore) close() error {
	close(s.written)
	s.wg.Wait()
	var errs []error
	if len(s.unlisted) > 0 {
		errs = append(errs, s.listAll())
	}
	if s.bodies != nil {
		s.bodies.close()
	}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.write != nil {
		_, err := s.write.ExecContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`)
		errs = append(errs, err, s.write.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	return errors.Join(append(errs, s.unlock())...)
}

// When the log is folded into the database: quietly after so many bytes, and
// with the writer held up, for the short rest, when it has become long.
const (
	checkpointAfter = 8 << 20
	checkpointFull  = 64 << 20
)

// runCheckpoints keeps journal and log short. A quiet checkpoint copies what it
// can beside the writer; only while nobody writes can the log start over.
func (s *sqliteStore) runCheckpoints() {
	fresh, total := 0, 0
	for n := range s.written {
		s.tidy()
		fresh, total = fresh+n, total+n
		if fresh < checkpointAfter {
			continue
		}
		fresh = 0
		s.checkpoint("PASSIVE")
		if total >= checkpointFull {
			s.mu.Lock()
			s.checkpoint("RESTART")
			s.mu.Unlock()
			total = 0
		}
	}
}

// foldPause is the time between a fold that failed and the next.
const foldPause = 5 * time.Second

// tidy folds the journal once it is long, and removes files that are empty. A
// failure is not the writer's, as long as there is room for more.
func (s *sqliteStore) tidy() {
	s.tidying.Lock()
	defer s.tidying.Unlock()
	if s.journal.long() && time.Now().After(s.foldAgain) {
		if err := s.fold(); err != nil {
			s.log.Warn("folding the journal failed; it grows until that works", "err", err)
			s.foldAgain = time.Now().Add(foldPause)
		}
	}
	if s.deleted.Swap(false) {
		if err := s.sweep(); err != nil {
			s.log.Warn("removing files of deleted messages failed", "err", err)
			s.deleted.Store(true)
		}
	}
}

// makeRoom folds before a commit that would add to a full journal.
func (s *sqliteStore) makeRoom(c *changes) error {
	if len(c.segments) == 0 || !s.journal.full() {
		return nil
	}
	s.tidying.Lock()
	defer s.tidying.Unlock()
	if !s.journal.full() {
		return nil // the fold that was under way made it
	}
	return s.fold()
}

func (s *sqliteStore) checkpoint(mode string) {
	if _, err := s.reader.ExecContext(context.Background(), `PRAGMA wal_checkpoint(`+mode+`)`); err != nil {
		s.log.Warn("checkpoint failed", "mode", mode, "err", err)
	}
}
