package devbroker

import (
	"github.com/klauspost/compress/zstd"
)

// Bounds of a compressed payload: what it becomes, for a frame of a few bytes
// can claim gigabytes, and its window (libzstd's default; more is refused by
// 1.3.0, measured).
const (
	maxUnpacked = maxBody
	maxWindow   = 128 << 20
)

var jsonNull = []byte("null")

// unpack decompresses the payload of a timer that fires. Nobody looks at it
// before: what is no zstd, or nothing, is null (measured 1.3.0), and so is what
// becomes more than limit bytes.
func unpack(payload []byte, limit uint64) []byte {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(limit), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return jsonNull
	}
	defer d.Close()
	out, err := d.DecodeAll(payload, nil)
	if err != nil || len(out) == 0 {
		return jsonNull
	}
	return out
}
