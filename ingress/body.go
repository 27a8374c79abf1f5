package ingress

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

const (
	// bodyTime is how long a body may take, bodyTimePerMiB is added for each
	// MiB that has arrived: 25 MiB from GitHub need time, a slow-loris gets
	// none for nothing.
	bodyTime       = 10 * time.Second
	bodyTimePerMiB = 2 * time.Second
	mebibyte       = 1 << 20
	// firstRoom bounds what a declared length alone makes us allocate.
	firstRoom = 64 << 10
	// allBodies bounds the bytes of the bodies beyond their first room that
	// all requests hold together: anybody may send a large body, and what it
	// costs us comes before its proof.
	allBodies = 512 << 20
)

var (
	errTooLarge = errors.New("body too large")
	errNoRoom   = errors.New("too many large bodies at once")
)

// bodyReader reads one body into a buffer.
type bodyReader struct {
	w     http.ResponseWriter
	r     *http.Request
	limit int64
	start time.Time
	wait  time.Duration // for Queen, after the body
	room  *atomic.Int64 // what allBodies leaves
	held  int64         // taken from room; whoever made the reader gives it back
}

// appendTo appends the whole body, as it was received, to dst. What is over
// the limit is errTooLarge: cut bodies are never taken for whole ones.
func (b *bodyReader) appendTo(dst []byte) ([]byte, error) {
	if b.r.ContentLength > b.limit {
		return dst, errTooLarge // before the first read: the sender is not asked to go on (RFC 9110, 10.1.1)
	}
	if b.r.ContentLength == 0 || b.r.Body == nil {
		return dst, nil
	}
	first := int64(firstRoom / 8)
	if b.r.ContentLength > 0 {
		first = min(b.r.ContentLength, firstRoom) + 1
	}
	dst = withRoom(dst, int(first))
	mark := int64(mebibyte)
	for {
		n, err := b.r.Body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		size := int64(len(dst))
		switch {
		case size > b.limit:
			return dst, errTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		}
		if size >= mark {
			mark = size + mebibyte
			b.extend(size)
		}
		if len(dst) < cap(dst) {
			continue
		}
		more := min(max(len(dst), firstRoom), 4*mebibyte)
		if !b.take(int64(more)) {
			return dst, errNoRoom
		}
		dst = withRoom(dst, more)
	}
}

// take reserves n bytes of the room for all bodies.
func (b *bodyReader) take(n int64) bool {
	b.held += n
	return b.room.Add(-n) >= 0
}

// withRoom makes room for n more bytes.
func withRoom(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, len(b)+n), b...)
}

// extend moves the deadlines of the connection. Where it has none (a test,
// another server) there is nothing to move.
func (b *bodyReader) extend(size int64) {
	until := b.start.Add(bodyTime + bodyTimePerMiB*time.Duration(size/mebibyte))
	connection := http.NewResponseController(b.w)
	_ = connection.SetReadDeadline(until)
	_ = connection.SetWriteDeadline(b.start.Add(exchangeTime(size) + b.wait))
}

// bodyReason is the reason of a refusal for a body that could not be read.
func bodyReason(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return reasonSlowBody
	}
	return reasonCutBody
}
