package devbroker

import (
	"encoding/binary"
	"errors"
)

// segment is what one push, transaction or timer appended to one partition:
// encoded messages side by side. It never changes once it is in a partition.
type segment struct {
	part  *partition
	base  uint64 // offset of the first message
	at    micros // when it was stored: the createdAt of all its messages
	blob  []byte
	start []uint32 // where each message begins in blob

	// Until it is durable: the commit that makes it so, and the hashes of its
	// ids for that. Nil in memory mode.
	batch  *batch
	hashes []uint64
}

func (s *segment) len() uint64 { return uint64(len(s.start)) }
func (s *segment) end() uint64 { return s.base + s.len() }

// message is one decoded message; its bytes alias the segment's.
type message struct {
	id      messageID
	txn     []byte
	trace   string // a UUID or ""
	payload []byte
}

// message decodes the one at an offset inside the segment.
func (s *segment) message(offset uint64) message {
	m, _, _ := decodeMessage(s.blob[s.start[offset-s.base]:])
	return m
}

// The encoded form, also on disk: id (16 bytes), flags, trace id (16 bytes,
// if flagged), length and bytes of the transaction id, length and bytes of the
// payload. Lengths are uvarints.
const flagTrace = 1

const encodedOverhead = 16 + 1 + 16 + 2*binary.MaxVarintLen32

func appendMessage(dst []byte, m message) []byte {
	dst = append(dst, m.id[:]...)
	if trace, ok := parseID(m.trace); ok {
		dst = append(append(dst, flagTrace), trace[:]...)
	} else {
		dst = append(dst, 0)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(m.txn))), m.txn...)
	return append(binary.AppendUvarint(dst, uint64(len(m.payload))), m.payload...)
}

var errCorrupt = errors.New("stored message is damaged")

// decodeMessage reads the first message of b and returns its encoded length.
func decodeMessage(b []byte) (m message, size int, err error) {
	at := copy(m.id[:], b)
	if at < len(m.id) || at >= len(b) {
		return m, 0, errCorrupt
	}
	flags := b[at]
	at++
	if flags&flagTrace != 0 {
		var trace messageID
		at += copy(trace[:], b[at:])
		m.trace = trace.String()
	}
	for _, field := range []*[]byte{&m.txn, &m.payload} {
		n, w := binary.Uvarint(b[at:])
		if w <= 0 || n > uint64(len(b)-at-w) {
			return m, 0, errCorrupt
		}
		at += w
		*field = b[at : at+int(n)]
		at += int(n)
	}
	return m, at, nil
}

// splitSegment finds where the messages of a stored blob begin.
func splitSegment(blob []byte) (start []uint32, err error) {
	for at := 0; at < len(blob); {
		_, n, err := decodeMessage(blob[at:])
		if err != nil {
			return nil, err
		}
		start = append(start, uint32(at))
		at += n
	}
	return start, nil
}
