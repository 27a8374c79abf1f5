package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// wal is a log with frames of so many salts, of 512 bytes a page.
func wal(salts ...byte) []byte {
	log := make([]byte, logHeader)
	binary.BigEndian.PutUint32(log[8:], 512)
	log[16] = 1
	for _, salt := range salts {
		frame := make([]byte, frameHeader+512)
		frame[8] = salt
		log = append(log, frame...)
	}
	return log
}

func TestTornTail(t *testing.T) {
	t.Parallel()
	const frame = frameHeader + 512
	for _, tt := range []struct {
		name      string
		log       []byte
		committed int64
		want      int64
	}{
		{"empty", nil, 0, 0},
		{"no whole header", wal()[:20], 0, 0},
		{"all committed", wal(1, 1), 2, 0},
		{"one frame behind the commit", wal(1, 1), 1, frame},
		{"a part of a frame", wal(1, 1)[:logHeader+frame+100], 1, 100},
		{"frames of an earlier run", wal(1, 7, 7), 1, 0},
		{"one of this run, then of an earlier one", wal(1, 1, 7), 1, frame},
		{"SQLite counted none", wal(1), -1, frame},
		{"more than there are", wal(1), 9, 0},
	} {
		got, err := tornTail(bytes.NewReader(tt.log), int64(len(tt.log)), tt.committed)
		if err != nil || got != tt.want {
			t.Errorf("%s: tornTail(%d committed) = %d, %v, want %d", tt.name, tt.committed, got, err, tt.want)
		}
	}
}

// FuzzTornTail: a log may hold anything after a crash.
func FuzzTornTail(f *testing.F) {
	f.Add(wal(1, 1), int64(1))
	f.Add(wal(1)[:40], int64(0))
	f.Add([]byte{}, int64(-1))
	f.Add(make([]byte, 200), int64(9))
	f.Fuzz(func(t *testing.T, raw []byte, committed int64) {
		if n, err := tornTail(bytes.NewReader(raw), int64(len(raw)), committed); err != nil || n < 0 || n > int64(len(raw)) {
			t.Errorf("tornTail = %d, %v of %d bytes", n, err, len(raw))
		}
	})
}
