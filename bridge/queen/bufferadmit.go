package queen

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// amount counts items and their payload bytes.
type amount struct{ items, bytes int }

// lane is one partition with work. A lane never has two pushes in flight:
// what the first one failed to store would come behind the second.
type lane struct {
	name      string
	busy      bool
	waiting   amount
	pass      uint64 // the selection that must not take more from this lane
	failed    bool   // by the push that is being settled
	notBefore time.Time
	retry     *backoff.ExponentialBackOff
}

// maxIdleLanes bounds the lanes that are remembered without work.
const maxIdleLanes = 256

// enqueue takes a bundle over and starts a push where one may start. It
// returns where the bundle went: waiting, blocked, or outside where the buffer
// is closed. The bundle may be decided by then.
func (b *Buffer) enqueue(g *Bundle) bundleState {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.arrivals++
	g.enqueued, g.number, g.open, g.size = now, b.arrivals, len(g.entries), g.payloadBytes()
	if b.closing {
		b.decide(g, BundleStopped)
		return outside
	}
	state := waiting
	if b.blocked.len > 0 || !b.fits(g) {
		state = blocked
		g.state = blocked
		if g.done == nil {
			g.done = make(chan BundleResult, 1)
		}
		b.blocked.pushBack(g)
	} else {
		b.admit(g)
	}
	b.arm(now, g.deadline)
	b.pump(now)
	return state
}

// fits says whether a bundle may join the waiting ones. One that is larger
// than the bound fits when it is alone, or it never would.
func (b *Buffer) fits(g *Bundle) bool {
	if b.pending.items == 0 {
		return true
	}
	return b.pending.items+len(g.entries) <= b.limits.pending.items &&
		b.pending.bytes+g.size <= b.limits.pending.bytes
}

func (b *Buffer) admit(g *Bundle) {
	b.pending.items += len(g.entries)
	b.pending.bytes += g.size
	b.observe.Pending(b.pending.items)
	for i := range g.entries {
		e := &g.entries[i]
		e.lane = b.lane(e.item.Partition)
	}
	g.state = waiting
	b.waiting.pushBack(g)
	b.count(g, +1)
}

// promote admits blocked bundles in order, as far as they fit.
func (b *Buffer) promote() {
	for g := b.blocked.first; g != nil && b.fits(g); g = b.blocked.first {
		b.blocked.remove(g)
		b.admit(g)
		if g.background {
			g.done <- undecided
		}
	}
}

// withdraw takes back a bundle that is still blocked.
func (b *Buffer) withdraw(g *Bundle) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.state != blocked {
		return false
	}
	b.blocked.remove(g)
	g.state = outside
	b.promote() // smaller ones may have waited behind it
	b.pump(time.Now())
	return true
}

func (b *Buffer) lane(name string) *lane {
	l := b.lanes[name]
	if l == nil {
		l = &lane{name: name}
		b.lanes[name] = l
	}
	return l
}

// forget drops a lane without work, unless there are few: the next item of the
// same partition is often near.
func (b *Buffer) forget(l *lane) {
	if len(b.lanes) > maxIdleLanes && !l.busy && l.waiting.items == 0 && b.lanes[l.name] == l {
		delete(b.lanes, l.name)
	}
}

// count adds (or takes) a waiting bundle's open entries to the sums.
func (b *Buffer) count(g *Bundle, sign int) {
	for i := range g.entries {
		e := &g.entries[i]
		if e.status != "" {
			continue
		}
		items, bytes := sign, sign*len(e.item.Payload)
		e.lane.waiting.items += items
		e.lane.waiting.bytes += bytes
		if !e.lane.busy {
			b.eligible.items += items
			b.eligible.bytes += bytes
		}
	}
}

// hold marks a lane as being pushed, or free again.
func (b *Buffer) hold(l *lane, busy bool) {
	if l.busy == busy {
		return
	}
	l.busy = busy
	sign := 1
	if busy {
		sign = -1
	}
	b.eligible.items += sign * l.waiting.items
	b.eligible.bytes += sign * l.waiting.bytes
}

// decide tells a bundle's caller what became of it. Of an item of Add only a
// blocked one has a caller.
func (b *Buffer) decide(g *Bundle, r BundleResult) {
	heard := !g.background || g.state == blocked
	g.state = outside
	if heard {
		g.done <- r
	}
}

// release gives back the room of an admitted bundle.
func (b *Buffer) release(g *Bundle) {
	b.pending.items -= len(g.entries)
	b.pending.bytes -= g.size
	b.observe.Pending(b.pending.items)
}

// drop takes a bundle out of the waiting ones and forgets its lanes.
func (b *Buffer) drop(g *Bundle) {
	b.waiting.remove(g)
	b.count(g, -1)
	b.release(g)
	for i := range g.entries {
		b.forget(g.entries[i].lane)
	}
}
