package devbroker

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
)

// Sizes of SQLite's write-ahead log (sqlite.org/fileformat2.html, 4.1).
const (
	walHeader      = 32
	walFrameHeader = 24
)

// reportTorn says what a crash cut off: SQLite drops it when it opens the
// database, and nothing of it was ever acknowledged.
func (s *sqliteStore) reportTorn(ctx context.Context, file string) error {
	var busy, frames, folded int64
	if err := s.write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &folded); err != nil {
		return err
	}
	torn, err := tornTail(file+"-wal", max(frames, 0))
	if err == nil && torn > 0 {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the end of the log was cut off by a crash and is dropped; nothing of it was acknowledged",
			slog.Int64("bytes", torn))
	}
	return err
}

// tornTail are the bytes behind the last whole commit of a log, of which
// SQLite took so many frames. Frames of an earlier run of the log, whose room
// is used again, are none: they carry another salt.
func tornTail(file string, committed int64) (torn int64, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil || info.Size() < walHeader {
		return 0, err
	}
	var head, frame [walHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return 0, err
	}
	size := walFrameHeader + int64(binary.BigEndian.Uint32(head[8:]))
	at := walHeader + committed*size
	for ; at+size <= info.Size(); at += size {
		if _, err := f.ReadAt(frame[:walFrameHeader], at); err != nil {
			return 0, err
		}
		if string(frame[8:16]) != string(head[16:24]) {
			return torn, nil
		}
		torn += size
	}
	return torn + max(info.Size()-at, 0), nil
}
