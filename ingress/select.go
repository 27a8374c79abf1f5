package ingress

import (
	"runtime"
	"time"
)

// pump starts a pusher where a push may start now. The pusher selects its
// batch itself, a moment later, so that requests which are just being handled
// come along.
func (q *batchQueue) pump(now time.Time) {
	if q.starting || !q.wanted(now) {
		return
	}
	q.starting = q.launch(q.run)
}

// wanted says whether a push may start: one when none is in flight, more only
// when a full batch waits, since one push of 64 beats 16 of 4 three times over
// (measured 1.3.0).
func (q *batchQueue) wanted(now time.Time) bool {
	switch {
	case q.closed || q.waiting.len == 0:
		return false
	case now.Before(q.notBefore):
		q.arm(now, q.notBefore)
		return false
	case q.full(q.eligible):
		return true
	}
	return len(q.inFlight) == 0 && !q.lingers(now, q.waiting.first)
}

// begin selects and takes the next push, nil if none may start.
func (q *batchQueue) begin() *batch {
	runtime.Gosched() // whoever is ready to enqueue shall
	q.mu.Lock()
	defer q.mu.Unlock()
	q.starting = false
	now := time.Now()
	if !q.wanted(now) {
		return nil
	}
	b := q.newBatch()
	full := q.choose(b, now)
	if len(b.groups) == 0 || len(q.inFlight) > 0 && !full {
		q.recycle(b)
		return nil
	}
	q.take(b)
	q.pump(now)
	return b
}

func (q *batchQueue) full(a amount) bool {
	return a.items >= q.limits.maxItems || a.bytes >= q.limits.maxBytes
}

// lingers says whether a batch that is not full should wait for more. What
// failed before does not wait again.
func (q *batchQueue) lingers(now time.Time, oldest *group) bool {
	until := oldest.enqueued.Add(q.limits.linger)
	if q.limits.linger <= 0 || !now.Before(until) {
		return false
	}
	q.arm(now, until)
	return true
}

// choose walks the waiting groups in order and picks those that one push may
// carry. A group is never divided; where one cannot go, nothing behind it in
// the same lanes may.
func (q *batchQueue) choose(b *batch, now time.Time) (full bool) {
	q.pass++
	var sum amount
	for g := q.waiting.first; g != nil; g = g.next {
		if !q.ready(g, now) {
			q.bar(g)
			continue
		}
		if len(b.groups) > 0 && (sum.items+g.open > q.limits.maxItems || sum.bytes+g.size > q.limits.maxBytes) {
			return true
		}
		b.groups = append(b.groups, g)
		sum.items += g.open
		sum.bytes += g.size
		if q.full(sum) {
			return true
		}
	}
	return false
}

// ready says whether every lane of the group is free.
func (q *batchQueue) ready(g *group, now time.Time) bool {
	ok := true
	for i := range g.entries {
		l := g.entries[i].lane
		if g.entries[i].status != "" {
			continue
		}
		if l.busy || l.pass == q.pass {
			ok = false
		} else if now.Before(l.notBefore) {
			ok = false
			q.arm(now, l.notBefore)
		}
	}
	return ok
}

func (q *batchQueue) bar(g *group) {
	for i := range g.entries {
		if g.entries[i].status == "" {
			g.entries[i].lane.pass = q.pass
		}
	}
}

// take moves the groups of a selected batch from waiting to in flight.
func (q *batchQueue) take(b *batch) {
	for _, g := range b.groups {
		q.waiting.remove(g)
		q.count(g, -1)
		g.state = flying
		if g.deadline.After(b.deadline) {
			b.deadline = g.deadline
		}
		for i := range g.entries {
			if e := &g.entries[i]; e.status == "" {
				b.entries = append(b.entries, e)
				b.items = append(b.items, e.item)
				if !e.lane.busy {
					b.lanes = append(b.lanes, e.lane)
					q.hold(e.lane, true)
				}
			}
		}
	}
	b.verdicts = append(b.verdicts, make([]verdict, len(b.entries))...)
	q.inFlight = append(q.inFlight, b)
}
