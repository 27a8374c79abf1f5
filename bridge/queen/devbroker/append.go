package devbroker

import (
	"time"
)

// parcel is encoded messages for one partition, ready to be appended.
type parcel struct {
	blob   []byte
	start  []uint32
	hashes []uint64
}

func (p *parcel) add(m message, hash uint64) {
	p.start = append(p.start, uint32(len(p.blob)))
	p.blob = appendMessage(p.blob, m)
	p.hashes = append(p.hashes, hash)
}

// append puts a parcel at the tail of a partition and tells whoever waits.
// Every message enters a partition here.
func (b *Broker) append(p *partition, messages parcel) *segment {
	now := b.now()
	s := &segment{part: p, base: p.next, at: now, blob: messages.blob, start: messages.start}
	p.next += s.len()
	p.lastPush = now
	p.ids.add(now, messages.hashes...)
	p.tail = append(p.tail, s)
	b.counts.pushed += s.len()
	if b.batch != nil {
		s.hashes = messages.hashes
		b.noteSegment(s)
	}
	for _, c := range p.cursors {
		b.release(c, now)
	}
	return s
}

// release offers a cursor that nobody holds and that has something to give, or
// sees to it that this happens when a holdback has passed.
func (b *Broker) release(c *cursor, now micros) {
	if c.leased(now) || c.position() >= c.part.next {
		return
	}
	if c.position() < b.visibleEnd(c.part, now) {
		b.offer(c)
		return
	}
	delay := time.Duration(c.part.queue.opts.DelayedProcessing) * time.Second
	b.hold(c, c.part.ids.stored(c.position()).add(delay))
}

// visibleEnd is the offset up to which a partition may be popped now:
// delayedProcessing holds younger messages back.
func (b *Broker) visibleEnd(p *partition, now micros) uint64 {
	delay := p.queue.opts.DelayedProcessing
	if delay <= 0 {
		return p.next
	}
	return p.ids.firstSince(now.add(-time.Duration(delay)*time.Second) + 1)
}

// cache bounds the message bytes kept in memory beside the store. It lets go
// of the oldest first, of whatever partition, once they are on disk.
type cache struct {
	limit, bytes int64
	order        fifo[*segment]
}

func (c *cache) add(s *segment) {
	c.bytes += cost(s)
	c.order.push(s)
}

// cost is about what a segment takes in memory.
func cost(s *segment) int64 { return int64(len(s.blob)) + 4*int64(len(s.start)) + 160 }

// trim lets go of segments until the rest fits.
func (c *cache) trim() {
	for c.bytes > c.limit {
		s, ok := c.order.pop()
		if !ok {
			return
		}
		c.bytes -= cost(s)
		s.part.uncache(s)
	}
}

// uncache drops a segment from memory; it is the oldest of its partition
// unless retention was here before.
func (p *partition) uncache(s *segment) {
	if len(p.tail) > 0 && p.tail[0] == s {
		p.tail[0] = nil
		p.tail = p.tail[1:]
	}
}
