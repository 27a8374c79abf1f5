package sqlitefile

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Sizes of SQLite's write-ahead log (sqlite.org/fileformat2.html, 4.1).
const (
	logHeader   = 32
	frameHeader = 24
)

// Querier is what Torn asks: a database or one connection to it.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Torn returns how many bytes of the log of a database in WAL mode stand behind
// its last whole commit: what a crash cut off, which SQLite dropped when it
// opened the file. It must be asked before anything is written.
func Torn(ctx context.Context, q Querier, file string) (int64, error) {
	var busy, frames, folded int64
	if err := q.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &folded); err != nil {
		return 0, err
	}
	f, err := os.Open(file + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return tornTail(f, info.Size(), frames)
}

// tornTail are the bytes behind the last whole commit of a log, of which
// SQLite took so many frames. Frames of an earlier run of the log, whose room
// is used again, are none: they carry another salt.
func tornTail(log io.ReaderAt, size, committed int64) (torn int64, err error) {
	if size < logHeader {
		return 0, nil
	}
	var head, frame [logHeader]byte
	if _, err := log.ReadAt(head[:], 0); err != nil {
		return 0, err
	}
	step := frameHeader + int64(binary.BigEndian.Uint32(head[8:]))
	at := logHeader + min(max(committed, 0), (size-logHeader)/step)*step
	for ; at+step <= size; at += step {
		if _, err := log.ReadAt(frame[:frameHeader], at); err != nil {
			return 0, err
		}
		if string(frame[8:16]) != string(head[16:24]) {
			return torn, nil
		}
		torn += step
	}
	return torn + size - at, nil
}
