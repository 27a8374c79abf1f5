package queen

import (
	"runtime"
	"time"
)

// batch is one push. Its slices are used again for later ones.
type batch struct {
	bundles  []*Bundle
	entries  []*entry
	lanes    []*lane // those of the entries, each once
	items    []Item
	verdicts []verdict
	deadline time.Time // of the bundle that waits longest; zero: none
}

// newBatch returns an empty batch.
func (b *Buffer) newBatch() *batch {
	if n := len(b.spare); n > 0 {
		x := b.spare[n-1]
		b.spare = b.spare[:n-1]
		return x
	}
	return &batch{}
}

// recycle keeps the room of a batch that is over. There are never more than
// were in flight at once.
func (b *Buffer) recycle(x *batch) {
	clear(x.bundles)
	clear(x.entries)
	clear(x.items)
	*x = batch{bundles: x.bundles[:0], entries: x.entries[:0], lanes: x.lanes[:0],
		items: x.items[:0], verdicts: x.verdicts[:0]}
	b.spare = append(b.spare, x)
}

// pump starts a pusher where a push may start now. The pusher selects its
// batch itself, a moment later, so that items which are just being handed over
// come along.
func (b *Buffer) pump(now time.Time) {
	if b.starting || !b.wanted(now) {
		return
	}
	b.starting = true
	b.pushes.Go(b.run)
}

// wanted says whether a push may start: one when none is in flight, more only
// when a full batch waits, since one push of 64 beats 16 of 4 three times over
// (measured 1.3.0).
func (b *Buffer) wanted(now time.Time) bool {
	switch {
	case b.closed || b.waiting.len == 0:
		return false
	case now.Before(b.notBefore):
		b.arm(now, b.notBefore)
		return false
	case b.full(b.eligible):
		return true
	}
	return len(b.inFlight) == 0 && !b.lingers(now, b.waiting.first)
}

// begin selects and takes the next push, nil if none may start.
func (b *Buffer) begin() *batch {
	runtime.Gosched() // whoever is ready to enqueue shall
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starting = false
	now := time.Now()
	if !b.wanted(now) {
		return nil
	}
	x := b.newBatch()
	full := b.choose(x, now)
	if len(x.bundles) == 0 || len(b.inFlight) > 0 && !full {
		b.recycle(x)
		return nil
	}
	b.take(x)
	b.pump(now)
	return x
}

func (b *Buffer) full(a amount) bool {
	return a.items >= b.limits.full.items || a.bytes >= b.limits.full.bytes
}

// lingers says whether a batch that is not full should wait for more. What
// failed before does not wait again.
func (b *Buffer) lingers(now time.Time, oldest *Bundle) bool {
	until := oldest.enqueued.Add(b.limits.linger)
	if b.limits.linger <= 0 || !now.Before(until) || len(b.flushes) > 0 {
		return false
	}
	b.arm(now, until)
	return true
}

// choose walks the waiting bundles in order and picks those that one push may
// carry. A bundle is never divided; where one cannot go, nothing behind it in
// the same lanes may.
func (b *Buffer) choose(x *batch, now time.Time) (full bool) {
	b.pass++
	var sum amount
	for g := b.waiting.first; g != nil; g = g.next {
		if !b.ready(g, now) {
			b.bar(g)
			continue
		}
		if len(x.bundles) > 0 && (sum.items+g.open > b.limits.full.items || sum.bytes+g.size > b.limits.full.bytes) {
			return true
		}
		x.bundles = append(x.bundles, g)
		sum.items += g.open
		sum.bytes += g.size
		if b.full(sum) {
			return true
		}
	}
	return false
}

// ready says whether every lane of the bundle is free.
func (b *Buffer) ready(g *Bundle, now time.Time) bool {
	ok := true
	for i := range g.entries {
		l := g.entries[i].lane
		if g.entries[i].status != "" {
			continue
		}
		if l.busy || l.pass == b.pass {
			ok = false
		} else if now.Before(l.notBefore) {
			ok = false
			b.arm(now, l.notBefore)
		}
	}
	return ok
}

func (b *Buffer) bar(g *Bundle) {
	for i := range g.entries {
		if g.entries[i].status == "" {
			g.entries[i].lane.pass = b.pass
		}
	}
}

// take moves the bundles of a selected batch from waiting to in flight.
func (b *Buffer) take(x *batch) {
	unbounded := false
	for _, g := range x.bundles {
		b.waiting.remove(g)
		b.count(g, -1)
		g.state = flying
		unbounded = unbounded || g.deadline.IsZero()
		if g.deadline.After(x.deadline) {
			x.deadline = g.deadline
		}
		for i := range g.entries {
			if e := &g.entries[i]; e.status == "" {
				x.entries = append(x.entries, e)
				x.items = append(x.items, e.item)
				if !e.lane.busy {
					x.lanes = append(x.lanes, e.lane)
					b.hold(e.lane, true)
				}
			}
		}
	}
	if unbounded {
		x.deadline = time.Time{}
	}
	x.verdicts = append(x.verdicts, make([]verdict, len(x.entries))...)
	b.inFlight = append(b.inFlight, x)
}
