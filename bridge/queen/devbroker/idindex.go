package devbroker

import (
	"slices"
	"sort"
)

// idIndex knows the transaction ids of one partition by their hashes, by
// offset, and when each was stored. It serves deduplication and acks without
// touching message bytes, at about 16 bytes a message plus 16 a push.
type idIndex struct {
	base   uint64   // offset of hashes[0]
	hashes []uint64 // by offset
	spans  []span   // when, ascending; the last one is open

	// table is an open-addressed set of origin-relative offsets; tags says of
	// each place whether it is taken and holds some more bits of the hash, so
	// that looking for an id that is new touches little memory. Both are nil
	// while the index is small enough to be searched through.
	table  []uint32
	tags   []byte
	origin uint64
	filled int
}

// tagOf is never 0, which is a free place. The place itself comes of the low
// bits.
func tagOf(hash uint64) byte { return byte(hash>>56) | 1 }

// span says that the messages from offset start on were stored at.
type span struct {
	start uint64
	at    micros
}

// small is the size up to which searching through beats hashing.
const small = 8

func (x *idIndex) next() uint64 { return x.base + uint64(len(x.hashes)) }

// add appends the ids of messages stored together.
func (x *idIndex) add(at micros, hashes ...uint64) {
	if len(hashes) == 0 {
		return
	}
	if n := len(x.spans); n == 0 || x.spans[n-1].at != at {
		x.spans = append(x.spans, span{x.next(), at})
	}
	for _, h := range hashes {
		x.hashes = append(x.hashes, h)
		x.insert(x.next()-1, h)
	}
}

func (x *idIndex) insert(offset, hash uint64) {
	switch {
	case x.table == nil && len(x.hashes) <= small:
		return
	case x.table == nil || x.filled >= len(x.table)/4*3 || offset-x.origin >= 1<<32-1:
		x.rebuild()
		return
	}
	x.place(offset, hash)
}

func (x *idIndex) place(offset, hash uint64) {
	mask := uint64(len(x.table) - 1)
	i := hash & mask
	for x.tags[i] != 0 {
		i = (i + 1) & mask
	}
	x.table[i], x.tags[i] = uint32(offset-x.origin), tagOf(hash)
	x.filled++
}

func (x *idIndex) rebuild() {
	size := 4 * small
	for size < 2*len(x.hashes) {
		size *= 2
	}
	x.table, x.tags, x.origin, x.filled = make([]uint32, size), make([]byte, size), x.base, 0
	for i, h := range x.hashes {
		x.place(x.base+uint64(i), h)
	}
}

// each calls found with the offset of every message with this hash, in no
// order.
func (x *idIndex) each(hash uint64, found func(offset uint64)) {
	if x.table == nil {
		for i, h := range x.hashes {
			if h == hash {
				found(x.base + uint64(i))
			}
		}
		return
	}
	mask, tag := uint64(len(x.table)-1), tagOf(hash)
	for i := hash & mask; x.tags[i] != 0; i = (i + 1) & mask {
		if x.tags[i] != tag {
			continue
		}
		offset := x.origin + uint64(x.table[i])
		if offset >= x.base && x.hashes[offset-x.base] == hash {
			found(offset)
		}
	}
}

// newest returns the highest offset with this hash.
func (x *idIndex) newest(hash uint64) (offset uint64, ok bool) {
	x.each(hash, func(o uint64) {
		if !ok || o > offset {
			offset, ok = o, true
		}
	})
	return offset, ok
}

// lowest returns the lowest offset with this hash in [from, to).
func (x *idIndex) lowest(hash, from, to uint64) (offset uint64, ok bool) {
	x.each(hash, func(o uint64) {
		if o >= from && o < to && (!ok || o < offset) {
			offset, ok = o, true
		}
	})
	return offset, ok
}

// stored returns when the message at offset was stored, or the earliest time
// known for one that is older than the index.
func (x *idIndex) stored(offset uint64) micros {
	i := sort.Search(len(x.spans), func(i int) bool { return x.spans[i].start > offset })
	if i == 0 {
		if len(x.spans) > 0 {
			return x.spans[0].at
		}
		return 0
	}
	return x.spans[i-1].at
}

// firstSince returns the first known offset stored at or after t, or the next
// offset.
func (x *idIndex) firstSince(t micros) uint64 {
	i := sort.Search(len(x.spans), func(i int) bool { return x.spans[i].at >= t })
	if i == len(x.spans) {
		return x.next()
	}
	return max(x.spans[i].start, x.base)
}

// forget drops everything below offset.
func (x *idIndex) forget(offset uint64) {
	offset = min(offset, x.next())
	if offset <= x.base {
		return
	}
	x.hashes = x.hashes[offset-x.base:]
	x.base = offset
	i := sort.Search(len(x.spans), func(i int) bool { return x.spans[i].start > offset })
	x.spans = x.spans[max(i-1, 0):]
	if len(x.hashes) <= small {
		x.table, x.tags, x.filled = nil, nil, 0
		x.hashes, x.spans = slices.Clone(x.hashes), slices.Clone(x.spans)
	}
}

// load appends a stored row; rows come in order. A gap means that what lies
// before it is gone.
func (x *idIndex) load(r idRow) {
	if x.next() != r.base {
		*x = idIndex{base: r.base}
	}
	for _, sp := range r.spans {
		if n := len(x.spans); n == 0 || x.spans[n-1].at != sp.at {
			x.spans = append(x.spans, sp)
		}
	}
	x.hashes = append(x.hashes, r.hashes...)
}

// settleAt ends loading: the table is built, and an empty index stands at the
// partition's next offset.
func (x *idIndex) settleAt(next uint64) {
	if x.next() != next {
		*x = idIndex{base: next}
	}
	if len(x.hashes) > small {
		x.rebuild()
	}
}
