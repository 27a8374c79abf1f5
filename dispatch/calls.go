package dispatch

import (
	"context"
	"slices"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
)

// calls are the events of a route that are ready to be called, in the order they
// were popped, and the goroutines that call them: as many as there are slots.
// An event that waits costs no goroutine, and a slot that is free again finds
// the next event without waking anybody up. For ordering none, one event per
// call.
type calls struct {
	r    *route
	shed func() // for the limiter

	mu      sync.Mutex
	ready   []ready
	first   int // those before it were taken
	callers int
}

// ready is an item that waits for its call.
type ready struct {
	p     *part
	it    *item
	event *bridge.Event
}

// add lets an event be called as soon as there is a slot.
func (c *calls) add(x ready) {
	c.mu.Lock()
	if c.first > len(c.ready)/2 {
		c.compact()
	}
	c.ready = append(c.ready, x)
	c.hire(c.slots())
	c.mu.Unlock()
	if x.p.lease.ctx.Err() != nil { // drop may have come before
		c.drop(x.p.lease)
	}
}

// slots tells the limiter how many wait, and asks how many may be called at
// once; mu is held.
func (c *calls) slots() int {
	return c.r.d.limiter.backlog(c.r.claim, len(c.ready)-c.first, c.shed)
}

// hire starts a goroutine for what waits, unless there are enough; mu is held.
func (c *calls) hire(slots int) {
	if c.first < len(c.ready) && c.callers < slots && c.r.spawn(c.work) {
		c.callers++
	}
}

// work calls events until none waits, or there are fewer slots.
func (c *calls) work() {
	for x, more := c.next(); more; x, more = c.next() {
		x.p.call(x.it, x.event)
	}
}

// next takes the event that waits longest.
func (c *calls) next() (x ready, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slots := c.slots()
	if c.first == len(c.ready) || c.callers > slots {
		c.callers--
		return ready{}, false
	}
	x, c.ready[c.first] = c.ready[c.first], ready{}
	if c.first++; c.first == len(c.ready) {
		c.slots() // nobody waits any more
	}
	c.hire(slots) // there may be more of them by now
	return x, true
}

// compact moves those that wait to the front; mu is held.
func (c *calls) compact() {
	n := copy(c.ready, c.ready[c.first:])
	clear(c.ready[n:])
	c.ready, c.first = c.ready[:n], 0
}

// drop takes out what a lease covers that has ended.
func (c *calls) drop(l *lease) {
	c.giveUp(context.Cause(l.ctx), func(x ready) bool { return x.p.lease == l })
}

// turnAway takes out everything: the target is held.
func (c *calls) turnAway() { c.giveUp(errHeld, func(ready) bool { return true }) }

// giveUp takes out what is not to be called.
func (c *calls) giveUp(why error, which func(ready) bool) {
	c.mu.Lock()
	c.compact()
	var out []ready
	c.ready = slices.DeleteFunc(c.ready, func(x ready) bool {
		gone := which(x)
		if gone {
			out = append(out, x)
		}
		return gone
	})
	c.slots()
	c.mu.Unlock()
	for _, x := range out {
		c.r.d.limiter.expect(c.r.claim, -1)
		x.p.giveUp(x.it, why)
	}
}
