package devbroker

import (
	"time"
)

// delivery is what one pop claimed: one lease id over one or more partitions,
// each of which is held and lost on its own.
type delivery struct {
	lease  string // "" with autoAck
	group  string
	queue  string // "" on discovery
	claims []claim

	policy   policy
	pinnedID string // of the partition a pinned pop named
}

// claim is the messages [from, to) of one partition.
type claim struct {
	cursor   *cursor
	from, to uint64
	attempt  int64
	cached   []*segment // what of it is in memory: its end
	commit   ticket     // makes the messages durable
}

func (d *delivery) messages() (n uint64) {
	for i := range d.claims {
		n += d.claims[i].to - d.claims[i].from
	}
	return n
}

// claim takes what a pop may have now: partition by partition, those that
// waited longest first, until the batch is full (measured 1.3.0).
func (b *Broker) claim(req *popRequest) delivery {
	now := b.now()
	if req.arrived == 0 {
		req.arrived = now
	}
	d := delivery{group: req.scope.group, queue: req.queue}
	left := req.batch
	for _, q := range b.claimQueues(req) {
		g := b.contact(q, req)
		if req.pinned {
			b.claimPinned(&d, g, req, now)
			break
		}
		left = b.claimReady(&d, g, req, left, now)
		if g.ready.len() > 0 {
			b.wakeMore(g) // let the next pop look too
		}
		if left == 0 || len(d.claims) >= req.width(req.conflates(g)) {
			break
		}
	}
	d.policy = b.policyOf(req)
	for i := range d.claims {
		if d.claims[i].commit != nil {
			b.startWriter()
		}
	}
	return d
}

// claimQueues lists the queues to claim from. A queue-scoped pop makes its
// queue, a pinned one does not (measured 1.3.0).
func (b *Broker) claimQueues(req *popRequest) []*queue {
	if !req.discovery && !req.pinned && b.st.queues[req.queue] == nil && len(req.queue) <= maxQueueName {
		return []*queue{b.ensureQueue(req.queue)}
	}
	return b.queuesOf(req)
}

func (b *Broker) claimPinned(d *delivery, g *group, req *popRequest, now micros) {
	p := g.queue.parts[req.partition]
	if p == nil {
		return
	}
	c := p.cursor(g)
	d.pinnedID = p.id
	if !c.there() {
		b.seedAlone(c, req)
	}
	if b.claimable(c, now) {
		b.take(d, c, req, req.batch, now)
	}
}

// claimReady claims from the partitions that took a turn. Those that turn out
// to have nothing lose it; whatever gives them something gives them a new one.
func (b *Broker) claimReady(d *delivery, g *group, req *popRequest, left uint64, now micros) uint64 {
	width := req.width(req.conflates(g))
	for left > 0 && len(d.claims) < width {
		c, ok := g.ready.pop()
		if !ok {
			break
		}
		c.inReady = false
		if b.claimable(c, now) {
			left -= b.take(d, c, req, left, now)
		} else {
			b.release(c, now)
		}
	}
	return left
}

func (b *Broker) claimable(c *cursor, now micros) bool {
	if !c.known && c.part.created < c.group.since {
		b.seedLate(c)
	}
	return !c.leased(now) && c.position() < b.visibleEnd(c.part, now)
}

// take claims up to n messages of a partition, or of a group that conflates all
// of them, of which the newest is delivered.
func (b *Broker) take(d *delivery, c *cursor, req *popRequest, n uint64, now micros) uint64 {
	from, conflates := c.position(), req.conflates(c.group)
	to := b.visibleEnd(c.part, now)
	cl := claim{cursor: c, from: to - 1, to: to}
	if !conflates {
		to = min(to, from+n)
		cl.from, cl.to = from, to
	}
	cl.cached, cl.commit = cachedSpan(c.part, cl.from, to)
	if req.autoAck {
		c.next = to
		c.attempts = 0
		b.noteCursor(c)
		cl.attempt, cl.commit = 1, b.batch
		b.release(c, now)
	} else {
		b.grant(d, c, req, from, to, now)
		c.conflated = conflates
		cl.attempt = c.attempts
	}
	d.claims = append(d.claims, cl)
	return cl.to - cl.from
}

// grant leases [from, to) of a partition under the delivery's lease id.
func (b *Broker) grant(d *delivery, c *cursor, req *popRequest, from, to uint64, now micros) {
	if d.lease == "" {
		m := newMinter(now)
		d.lease = m.id().String()
	}
	if c.lease != "" {
		b.dropLease(c) // expired, and the clock has not looked yet
	}
	length := c.part.queue.opts.lease(req.lease)
	if req.early > 0 {
		length = req.early
	}
	c.lease, c.until, c.local = d.lease, now.add(length), !req.remote
	c.next, c.leaseStart, c.leaseEnd, c.blurred = from, from, to, false
	if c.attempts == 0 || c.attemptAt != from {
		c.attempts, c.attemptAt = 0, from
	}
	c.attempts++
	c.known = true
	b.st.leases[d.lease] = append(b.st.leases[d.lease], c)
	b.hold(c, c.until)
	b.noteLease(c)
}

// dropLease ends a lease on one partition.
func (b *Broker) dropLease(c *cursor) {
	held := b.st.leases[c.lease]
	for i, other := range held {
		if other == c {
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			break
		}
	}
	if len(held) == 0 {
		delete(b.st.leases, c.lease)
	} else {
		b.st.leases[c.lease] = held
	}
	c.lease, c.until, c.leaseEnd, c.conflated = "", 0, 0, false
}

// giveBack ends the leases of a delivery that nobody received. It does not
// count as an attempt.
func (b *Broker) giveBack(d delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usable() != nil || d.lease == "" {
		return
	}
	now := b.now()
	for _, c := range append([]*cursor(nil), b.st.leases[d.lease]...) {
		b.dropLease(c)
		c.attempts = max(c.attempts-1, 0)
		b.noteLease(c)
		b.release(c, now)
	}
}

// cachedSpan returns the segments in memory that hold part of [from, to), and
// the commit that makes them durable.
func cachedSpan(p *partition, from, to uint64) (cached []*segment, commit ticket) {
	start := len(p.tail)
	for start > 0 && p.tail[start-1].end() > from {
		start--
	}
	for _, s := range p.tail[start:] {
		if s.base >= to {
			break
		}
		cached = append(cached, s)
		if s.batch != nil {
			commit = s.batch
		}
	}
	return cached, commit
}

// expiry says when a lease taken now ends, for a lease of so many seconds.
func expiry(now micros, seconds int64) micros {
	return now.add(time.Duration(min(max(seconds, 1), maxLeaseSeconds)) * time.Second)
}
