package ingress

import (
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// result is what became of a group. The zero value means that it is not
// decided yet.
type result uint8

const (
	undecided result = iota
	stored           // every item is queued or was there already
	spooled          // every item is stored or in Queen's own local spool
	unsure           // an item is only in Queen's own spool, and that is not accepted
	expired          // the deadline passed first; it may still be stored
	refused          // Queen will never take one of its items
	stopped          // the server is stopping
)

// entry is one item of a group on its way to Queen.
type entry struct {
	item  queen.Item
	group *group
	lane  *lane
	// status is empty until Queen gave a verdict that ends the item.
	status queen.PushStatus
}

// group is what one request pushes: all its items in one call, answered
// together. It belongs to the batcher from submit until done has fired; a
// group that expired stays with it for good, because a push may still hold
// its payloads.
type group struct {
	entries  []entry
	deadline time.Time
	// done carries one token when result is set.
	done   chan struct{}
	result result

	// The rest is the queue's, under its mutex.
	open     int // entries without a verdict
	size     int // payload bytes of all entries
	enqueued time.Time
	state    groupState
	next     *group
	prev     *group
}

type groupState uint8

const (
	outside  groupState = iota
	blocked             // waits to be admitted
	waiting             // waits for a push
	flying              // is being pushed
	orphaned            // is being pushed, its request gave up
)

func newGroup() *group { return &group{done: make(chan struct{}, 1)} }

// add appends an entry and returns its item to fill in; the room of an earlier
// payload is in Payload, with length 0. It must not be called after submit.
func (g *group) add() *queen.Item {
	n := len(g.entries)
	if n < cap(g.entries) {
		g.entries = g.entries[:n+1]
	} else {
		g.entries = append(g.entries, entry{})
	}
	e := &g.entries[n]
	*e = entry{group: g, item: queen.Item{Payload: e.item.Payload[:0]}}
	return &e.item
}

const (
	// maxKeptEntries and maxKeptBytes bound the room a group keeps for the
	// next request: one large batch or body must not make every later one cost
	// as much memory.
	maxKeptEntries = 4
	maxKeptBytes   = 64 << 10
)

// reset makes a decided group usable again.
func (g *group) reset() {
	entries := g.entries[:min(len(g.entries), maxKeptEntries)]
	if len(g.entries) > maxKeptEntries {
		entries = slices.Clone(entries)
	}
	for i := range entries {
		payload := entries[i].item.Payload
		if cap(payload) > maxKeptBytes {
			payload = nil
		}
		entries[i] = entry{item: queen.Item{Payload: payload}}
	}
	*g = group{entries: entries[:0], done: g.done}
}

// duplicates counts the items that Queen had already.
func (g *group) duplicates() int {
	n := 0
	for i := range g.entries {
		if g.entries[i].status == queen.PushDuplicate {
			n++
		}
	}
	return n
}

// groupList is a list of groups in order of arrival. A group is in one list
// at most.
type groupList struct {
	first, last *group
	len         int
}

func (l *groupList) pushBack(g *group) {
	g.prev, g.next = l.last, nil
	if l.last == nil {
		l.first = g
	} else {
		l.last.next = g
	}
	l.last = g
	l.len++
}

func (l *groupList) pushFront(g *group) {
	g.prev, g.next = nil, l.first
	if l.first == nil {
		l.last = g
	} else {
		l.first.prev = g
	}
	l.first = g
	l.len++
}

func (l *groupList) remove(g *group) {
	if g.prev == nil {
		l.first = g.next
	} else {
		g.prev.next = g.next
	}
	if g.next == nil {
		l.last = g.prev
	} else {
		g.next.prev = g.prev
	}
	g.prev, g.next = nil, nil
	l.len--
}
