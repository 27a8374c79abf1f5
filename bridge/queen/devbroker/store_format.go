package devbroker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// messageTables hold messages: the journal of the latest commits, runs of
// segments by partition, and the files their bytes are in. live is how many
// bytes of a file runs point to; behind tail there are records, or nothing.
const messageTables = `CREATE TABLE journal (id INTEGER PRIMARY KEY, queue INTEGER, file INTEGER, at INTEGER, extents BLOB, ids BLOB, data BLOB);
CREATE TABLE run (part INTEGER, base INTEGER, count INTEGER, extents BLOB, ids BLOB, PRIMARY KEY (part, base)) WITHOUT ROWID;
CREATE TABLE file (num INTEGER PRIMARY KEY, queue INTEGER, live INTEGER, tail INTEGER);`

// newColumns are those that format 1 lacks: what it could not hold is false.
const newColumns = `
ALTER TABLE grp ADD COLUMN conflates INTEGER DEFAULT 0;
ALTER TABLE cursor ADD COLUMN conflated INTEGER DEFAULT 0;
ALTER TABLE timer ADD COLUMN zstd INTEGER DEFAULT 0;`

// bodiesDir is the folder of the files, beside the database.
const bodiesDir = "bodies"

// migrate makes the tables of a new database, brings one of an earlier format
// up to date and refuses one of a later.
func (s *sqliteStore) migrate(ctx context.Context, file string) error {
	var version int
	if err := s.write.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(file), bodiesDir)
	switch {
	case version > format:
		return fmt.Errorf("the data has format %d, this broker knows formats up to %d", version, format)
	case version == 0:
		if err := s.create(ctx); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	case version == 1:
		if err := s.fromFormat1(ctx, dir); err != nil {
			return fmt.Errorf("bring the data from format 1 to %d: %w", format, err)
		}
	case version == 2:
		if err := s.fromFormat2(ctx, dir); err != nil {
			return fmt.Errorf("bring the data from format 2 to %d: %w", format, err)
		}
	}
	known, err := s.knownFiles()
	if err == nil {
		s.bodies, err = openBodies(dir, known)
	}
	s.journal = newJournal()
	return err
}

func (s *sqliteStore) create(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, schema); err != nil {
		return err
	}
	if _, err := s.write.ExecContext(ctx, `INSERT INTO meta VALUES ('hash_key', ?), ('kv_version', 0)`, newSnapshot().key.bytes()); err != nil {
		return err
	}
	_, err := s.write.ExecContext(ctx, `COMMIT`)
	return err
}

// knownFiles are the files that hold anything.
func (s *sqliteStore) knownFiles() (map[int64]knownFile, error) {
	known := map[int64]knownFile{}
	l := &loading{store: s}
	l.each("files", `SELECT num, queue, tail FROM file`, func(scan func(...any) error) error {
		var num int64
		var is knownFile
		err := scan(&num, &is.queue, &is.tail)
		known[num] = is
		return err
	})
	return known, l.err
}

// fromFormat1 moves message bytes out of the database, in one transaction:
// format 1 had a row for each segment and one for its bytes.
func (s *sqliteStore) fromFormat1(ctx context.Context, dir string) (err error) {
	if s.bodies, err = openBodies(dir, nil); err != nil {
		return err
	}
	defer s.bodies.close()
	// Read beside the transaction that writes: the tables are as they were.
	rows, err := s.reader.QueryContext(ctx, `SELECT p.queue, s.part, s.base, s.ids, b.data
		FROM segment s JOIN body b ON b.id = s.body JOIN part p ON p.num = s.part ORDER BY s.part, s.base`)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reading is over, rows.Err tells
	if _, err := s.write.ExecContext(ctx, `BEGIN IMMEDIATE; `+messageTables+newColumns); err != nil {
		return err
	}
	if err := s.moveSegments(ctx, rows); err != nil {
		_, back := s.write.ExecContext(ctx, `ROLLBACK`)
		return errors.Join(err, back)
	}
	_, err = s.write.ExecContext(ctx, `DROP TABLE segment; DROP TABLE body; PRAGMA user_version = 3; COMMIT`)
	return err
}

// fromFormat2 notes how long the files are: format 2 had no records.
func (s *sqliteStore) fromFormat2(ctx context.Context, dir string) error {
	if _, err := s.write.ExecContext(ctx, `BEGIN IMMEDIATE; ALTER TABLE file ADD COLUMN tail INTEGER DEFAULT 0`); err != nil {
		return err
	}
	known, err := s.knownFiles()
	for num := range known {
		info, statErr := os.Stat(filepath.Join(dir, bodyName(num)))
		if statErr != nil {
			continue // reading it says so
		}
		_, setErr := s.write.ExecContext(ctx, `UPDATE file SET tail = ? WHERE num = ?`, info.Size(), num)
		err = errors.Join(err, setErr)
	}
	if err != nil {
		_, back := s.write.ExecContext(ctx, `ROLLBACK`)
		return errors.Join(err, back)
	}
	_, err = s.write.ExecContext(ctx, `PRAGMA user_version = 3; COMMIT`)
	return err
}

// moveSegments folds the rows of format 1, some megabytes at a time.
func (s *sqliteStore) moveSegments(ctx context.Context, rows *sql.Rows) error {
	for _, name := range []string{"run", "file"} {
		var err error
		if s.exec[name], err = s.write.PrepareContext(ctx, writeStatements[name]); err != nil {
			return err
		}
	}
	w := s.newWriting()
	var list []*recent
	bytes := 0
	flush := func() error {
		extents, err := s.moveOut(list)
		if err == nil {
			w.runs(list, extents)
			err = w.err
		}
		list, bytes = nil, 0
		return err
	}
	for rows.Next() {
		r, err := scanFormat1(rows)
		if err != nil {
			return err
		}
		list, bytes = append(list, r), bytes+len(r.body)
		if bytes >= foldHeld {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return errors.Join(rows.Err(), flush())
}

func scanFormat1(rows *sql.Rows) (*recent, error) {
	var ids, data sql.RawBytes
	var base int64
	r := &recent{}
	if err := rows.Scan(&r.queue, &r.part, &base, &ids, &data); err != nil {
		return nil, err
	}
	r.base = unsigned(base)
	var err error
	if r.spans, r.hashes, err = decodeIDs(r.base, ids); err != nil {
		return nil, err
	}
	r.body = appendBody(nil, &storedSegment{base: r.base, spans: r.spans, blobs: [][]byte{data}})
	r.extent = extent{size: len(r.body), count: len(r.hashes)}
	return r, nil
}

// loadJournal reads what is not folded, but for what is deleted since.
func (s *sqliteStore) loadJournal() error {
	first := map[int64]uint64{}
	l := &loading{store: s}
	l.each("partitions", `SELECT num, first FROM part`, func(scan func(...any) error) error {
		var num, at int64
		err := scan(&num, &at)
		first[num] = unsigned(at)
		return err
	})
	l.each("journal", `SELECT id, queue, file, at, extents, ids, data FROM journal ORDER BY id`, func(scan func(...any) error) error {
		var row int64
		e := &entry{}
		if err := scan(&row, &e.queue, &e.file, &e.at, &e.extents, &e.ids, &e.data); err != nil {
			return err
		}
		if err := e.decode(); err != nil {
			return err
		}
		s.nextRow = row
		s.journal.add(e.settle(row))
		return s.whole(e)
	})
	for part, at := range first {
		if at > 0 {
			s.journal.drop(part, at)
		}
	}
	s.nextRow++
	return l.err
}

// whole refuses a file that is shorter than what was stored in it.
func (s *sqliteStore) whole(e *entry) error {
	if e.file == 0 || len(e.segments) == 0 {
		return nil
	}
	last := e.segments[len(e.segments)-1].extent
	last.at, last.size = last.at+int64(last.size)-1, 1
	r := bodyReader{b: s.bodies}
	defer r.close()
	_, err := r.read(last)
	return err
}
