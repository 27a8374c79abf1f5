package devbroker

import (
	"errors"
	"math"
)

// This file reads messages that may no longer be in memory.

var errGone = errors.New("message is gone")

// message returns the message at an offset of a partition.
func (b *Broker) message(p *partition, offset uint64) (message, error) {
	s, err := b.segmentOf(p, offset)
	if err != nil {
		return message{}, err
	}
	return s.message(offset), nil
}

// segmentOf returns a segment that holds an offset.
func (b *Broker) segmentOf(p *partition, offset uint64) (*segment, error) {
	if offset < p.first || offset >= p.next {
		return nil, errGone
	}
	if s := p.segmentAt(offset); s != nil {
		return s, nil
	}
	segs, err := b.storedMessages(p, offset, offset+1, 1)
	if err != nil {
		return nil, err
	}
	for _, s := range segs {
		if s.base <= offset && offset < s.end() {
			return s, nil
		}
	}
	return nil, errGone
}

// storedMessages reads messages of a partition in [from, to) from the store,
// up to about limit bytes. It needs no lock.
func (b *Broker) storedMessages(p *partition, from, to uint64, limit int) ([]*segment, error) {
	rows, err := b.store.segments(p.num, from, to, limit)
	if err != nil {
		return nil, err
	}
	var out []*segment
	for i := range rows {
		segs, err := rows[i].split(p)
		if err != nil {
			return nil, err
		}
		out = append(out, segs...)
	}
	return out, nil
}

// split turns a stored row back into segments, one for each time its messages
// were stored at.
func (r *storedSegment) split(p *partition) ([]*segment, error) {
	start, err := splitSegment(r.blob)
	if err != nil {
		return nil, err
	}
	var out []*segment
	end := r.base + uint64(len(start))
	for i, sp := range r.spans {
		to := end
		if i+1 < len(r.spans) {
			to = r.spans[i+1].start
		}
		if sp.start < r.base || to > end || sp.start >= to {
			return nil, errCorrupt
		}
		out = append(out, &segment{
			part: p, base: sp.start, at: sp.at, blob: r.blob, start: start[sp.start-r.base : to-r.base],
		})
	}
	return out, nil
}

// hashes returns the id hashes of the messages in [from, to).
func (b *Broker) hashes(p *partition, from, to uint64) ([]uint64, error) {
	if from >= p.ids.base && to <= p.ids.next() {
		return p.ids.hashes[from-p.ids.base : to-p.ids.base], nil
	}
	out := make([]uint64, 0, to-from)
	for from < to {
		s, err := b.segmentOf(p, from)
		if err != nil {
			return nil, err
		}
		for ; from < min(to, s.end()); from++ {
			out = append(out, b.key.hash(s.message(from).txn))
		}
	}
	return out, nil
}

// storedSince finds, among messages older than the id index, the first stored
// at or after a time.
func (b *Broker) storedSince(p *partition, t micros) (offset uint64, ok bool) {
	for from := p.first; from < p.ids.base; {
		segs, err := b.storedMessages(p, from, p.ids.base, math.MaxInt)
		if err != nil || len(segs) == 0 {
			return 0, false
		}
		for _, s := range segs {
			if s.at >= t {
				return max(s.base, p.first), true
			}
			from = max(from, s.end())
		}
	}
	return 0, false
}
