package devbroker

import "encoding/binary"

// appendSpans packs when messages were stored: the number of spans, then each
// as its distance from the base and its time after the one before.
func appendSpans(dst []byte, base uint64, spans []span) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(spans)))
	last := micros(0)
	for _, s := range spans {
		dst = binary.AppendUvarint(dst, s.start-base)
		dst = binary.AppendVarint(dst, int64(s.at-last))
		last = s.at
	}
	return dst
}

// decodeSpans reads them, and returns what follows.
func decodeSpans(base uint64, b []byte) (spans []span, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)) {
		return nil, nil, errCorrupt
	}
	b = b[w:]
	last := micros(0)
	spans = make([]span, n)
	for i := range spans {
		start, w := binary.Uvarint(b)
		if w <= 0 {
			return nil, nil, errCorrupt
		}
		at, v := binary.Varint(b[w:])
		if v <= 0 {
			return nil, nil, errCorrupt
		}
		b = b[w+v:]
		last += micros(at)
		spans[i] = span{base + start, last}
	}
	return spans, b, nil
}

// encodeIDs packs when the messages of a row were stored, and the hashes of
// their ids, eight bytes each.
func encodeIDs(base uint64, spans []span, hashes []uint64) []byte {
	out := appendSpans(make([]byte, 0, 2+len(spans)*12+8*len(hashes)), base, spans)
	for _, h := range hashes {
		out = binary.LittleEndian.AppendUint64(out, h)
	}
	return out
}

func decodeIDs(base uint64, b []byte) (spans []span, hashes []uint64, err error) {
	spans, b, err = decodeSpans(base, b)
	if err != nil || len(b)%8 != 0 {
		return nil, nil, errCorrupt
	}
	hashes = make([]uint64, len(b)/8)
	for i := range hashes {
		hashes[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return spans, hashes, nil
}
