package devbroker

import (
	"slices"
)

// where says where the message of an ack stands.
type where int

const (
	inWindow  where = iota // acknowledgeable now
	below                  // the cursor moved past it
	unknownID              // not to be found
)

// resolved is one ack with its message found.
type resolved struct {
	where  where
	offset uint64
	status ackStatus
}

// position is what the decision about acks starts from.
type position struct {
	next     uint64
	leased   bool
	leaseEnd uint64
	newest   bool // the lease conflates: only its last message was delivered
	retries  int64
	limit    int64 // retryLimit
	keepDead bool  // exhausted messages become dead letters
	above    bool  // acks above a dead letter count (2.x)
}

// decision is what acks do to a cursor (queen-contract.md §5.2).
type decision struct {
	next    uint64
	release bool
	retries int64
	passes  bool     // a lease that conflates is completed
	dead    bool     // the message at head becomes a dead letter
	more    []uint64 // so do these, above it (2.x)
	head    uint64   // offset of the signal that decided
}

// settle is the ack rule of 1.x as a pure function: completed acks move the
// cursor as a prefix, up to the lowest nack, and that nack decides the rest.
func settle(p position, acks []resolved) decision {
	head, signal := headSignal(acks)
	d := decision{next: p.next, retries: p.retries, head: head}
	for _, a := range acks {
		if a.where == inWindow && a.status == ackCompleted && (signal == ackCompleted || a.offset < head) {
			d.next = max(d.next, a.offset+1)
		}
	}
	if p.newest && p.leased && signal == ackCompleted && d.next > p.next {
		d.next, d.passes = p.leaseEnd, true // whichever of its messages was named
	}
	switch {
	case signal == ackCompleted:
		if p.leased && d.next >= p.leaseEnd {
			d.release, d.retries = true, 0
		}
	case signal == ackRetry:
		d.release = true
	case signal == ackFailed && p.retries < p.limit:
		d.release, d.retries = true, p.retries+1
	default: // dlq, or failed with the budget spent
		d.dead = signal == ackDead || p.keepDead
		d.next, d.release, d.retries = max(d.next, head+1), true, 0
		if p.above {
			d.next, d.more = settleAbove(p, acks, d.next)
		}
	}
	return d
}

// headSignal is the lowest nack: of several on one message dlq beats failed
// beats retry. Without one the signal is completed.
func headSignal(acks []resolved) (head uint64, signal ackStatus) {
	for _, a := range acks {
		if a.where != inWindow || a.status == ackCompleted {
			continue
		}
		if signal == ackCompleted || a.offset < head || a.offset == head && a.status > signal {
			head, signal = a.offset, a.status
		}
	}
	return head, signal
}

// ackPlan is a decision about one cursor, ready to be carried out.
type ackPlan struct {
	cursor   *cursor
	acks     []resolved
	text     string                     // of the ack that decided
	textOf   func(offset uint64) string // of a nack
	decision decision
}

// planAck finds the messages of acks and decides. It changes nothing.
func (b *Broker) planAck(c *cursor, which []int, items []ackItem, now micros) *ackPlan {
	plan := &ackPlan{cursor: c, acks: b.resolve(c, which, items, now)}
	o := &c.part.queue.opts
	plan.decision = settle(position{
		next: c.position(), leased: c.leased(now), leaseEnd: c.leaseEnd, newest: c.conflated,
		retries: c.retries, limit: o.RetryLimit, keepDead: o.deadLetters(), above: b.raft(),
	}, plan.acks)
	plan.textOf = func(offset uint64) string {
		n := slices.IndexFunc(plan.acks, func(a resolved) bool { return a.where == inWindow && a.offset == offset && a.status != ackCompleted })
		return items[which[n]].text
	}
	head, signal := headSignal(plan.acks)
	for n, a := range plan.acks {
		if a.where == inWindow && a.offset == head && a.status == signal && signal != ackCompleted {
			plan.text = items[which[n]].text
			break
		}
	}
	return plan
}

// verdict is the answer for the n-th ack of a plan that was carried out.
// leaseReleased and dlq prove nothing, as on 1.3.0 (measured): every ack that
// was found says leaseReleased, and all say dlq when one message was filed.
func (p *ackPlan) verdict(n int, status ackStatus) ackVerdict {
	switch p.acks[n].where {
	case unknownID:
		return ackVerdict{text: unresolvable}
	case below:
		if status != ackCompleted {
			return ackVerdict{text: pastCursor, released: true, dead: p.decision.dead}
		}
		return ackVerdict{ok: true, released: true, noop: true, dead: p.decision.dead}
	}
	return ackVerdict{ok: true, released: true, dead: p.decision.dead}
}

// resolve finds the message of each ack: the lowest with its id in the leased
// batch, or anywhere above the cursor when there is no lease.
func (b *Broker) resolve(c *cursor, which []int, items []ackItem, now micros) []resolved {
	out := make([]resolved, len(which))
	from, to := c.position(), c.part.next
	if c.leased(now) {
		to = c.leaseEnd
	}
	for n, i := range which {
		out[n] = b.resolveOne(c, b.key.hash([]byte(items[i].txn)), from, to)
		out[n].status = items[i].status
	}
	return out
}

func (b *Broker) resolveOne(c *cursor, hash, from, to uint64) resolved {
	ids := &c.part.ids
	if offset, ok := ids.lowest(hash, from, to); ok && (b.raft() || !b.forgotten(c.part, offset)) {
		return resolved{where: inWindow, offset: offset}
	}
	if ids.base > from { // leased, and older than the index
		if hashes, err := b.hashes(c.part, from, min(to, ids.base)); err == nil {
			if i := slices.Index(hashes, hash); i >= 0 && !b.forgotten(c.part, from+uint64(i)) {
				return resolved{where: inWindow, offset: from + uint64(i)}
			}
		}
	}
	if offset, ok := ids.lowest(hash, 0, from); ok && !b.forgotten(c.part, offset) {
		return resolved{where: below, offset: offset}
	}
	return resolved{where: unknownID}
}

// forgotten says whether the broker acts as if it had purged an id
// (Config.ForgetAfter).
func (b *Broker) forgotten(p *partition, offset uint64) bool {
	return b.cfg.ForgetAfter > 0 && p.ids.stored(offset).add(b.cfg.ForgetAfter) <= b.now()
}

// carryOut does what a plan decided. It fails, and then has done nothing, when
// the dead letter could not be stored by a real Queen.
func (b *Broker) carryOut(plan *ackPlan) error {
	c, d := plan.cursor, plan.decision
	if d.dead {
		if err := b.bury(c, d.head, plan.text); err != nil {
			return err
		}
	}
	for _, offset := range d.more {
		if err := b.bury(c, offset, plan.textOf(offset)); err != nil {
			return err
		}
	}
	if d.next > c.next {
		b.counts.acked += d.next - c.next
	}
	c.next = d.next
	c.retries = d.retries
	b.noteCursor(c)
	if d.release {
		b.finish(c, d.next)
	} else if c.lease == "" {
		b.release(c, b.now())
	}
	return nil
}

// finish ends the lease of a cursor at a new position and lets the next pop
// have the rest.
func (b *Broker) finish(c *cursor, next uint64) {
	if next >= c.leaseEnd {
		c.attempts = 0
	}
	c.next = next
	if c.lease != "" {
		b.dropLease(c)
	}
	b.noteCursor(c)
	b.release(c, b.now())
}

// sameHashes compares two lists of ids as sets, as 1.3.0 does (measured). They
// mostly agree in order.
func sameHashes(a, b []uint64) bool {
	return slices.Equal(a, b) || slices.Equal(distinct(a), distinct(b))
}

func distinct(hashes []uint64) []uint64 {
	hashes = slices.Clone(hashes)
	slices.Sort(hashes)
	return slices.Compact(hashes)
}
