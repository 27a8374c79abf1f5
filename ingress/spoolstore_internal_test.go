package ingress

import (
	"encoding/binary"
	"testing"
)

// FuzzTornLogsAreMeasuredWithoutPanic: a log may hold anything after a crash.
func FuzzTornLogsAreMeasuredWithoutPanic(f *testing.F) {
	whole := make([]byte, walHeader+2*(walFrameHeader+512))
	binary.BigEndian.PutUint32(whole[8:], 512)
	f.Add(whole, int64(1))
	f.Add(whole[:40], int64(0))
	f.Add([]byte{}, int64(-1))
	f.Add(make([]byte, 200), int64(9))
	f.Fuzz(func(t *testing.T, raw []byte, committed int64) {
		if n := parseLog(raw).torn(committed); n < 0 || n > int64(len(raw)) {
			t.Errorf("torn = %d of %d bytes", n, len(raw))
		}
	})
}
