package queen

import (
	"slices"
	"time"
)

// BundleResult is what became of a bundle.
type BundleResult uint8

// The results of Submit.
const (
	undecided     BundleResult = iota
	BundleStored               // every item is queued or was there already
	BundleSpooled              // every item is stored or in Queen's own local spool, from which it may be lost (measured 1.3.0)
	BundleExpired              // the deadline passed first; items may still be stored
	BundleRefused              // Queen will never take one of the items
	BundleStopped              // the buffer is closed; items may still be stored
)

// statusRefused ends an entry that Queen will never take.
const statusRefused PushStatus = "refused"

// entry is one item of a bundle on its way to Queen.
type entry struct {
	item   Item
	bundle *Bundle
	lane   *lane
	// status is empty until Queen gave a verdict that ends the item.
	status PushStatus
}

// Bundle is what is pushed in one call and decided together. It is made with
// NewBundle and used by one goroutine at a time; see Buffer.Submit for whose
// it is when.
type Bundle struct {
	entries  []entry
	deadline time.Time // zero: none
	// background marks an item of Add: nobody waits for its result, only, if
	// it is blocked, for its admission.
	background bool
	// done carries the result; undecided is the admission of an item of Add.
	done chan BundleResult

	// The rest is the buffer's, under its mutex.
	open     int // entries without a verdict
	size     int // payload bytes of all entries
	enqueued time.Time
	number   uint64 // in order of arrival, from 1
	state    bundleState
	next     *Bundle
	prev     *Bundle
	room     [1]entry // of entries, at first: most bundles have one
}

type bundleState uint8

const (
	outside  bundleState = iota
	blocked              // waits to be admitted
	waiting              // waits for a push
	flying               // is being pushed
	orphaned             // is being pushed, its caller gave up
)

// NewBundle makes an empty bundle.
func NewBundle() *Bundle {
	g := &Bundle{done: make(chan BundleResult, 1)}
	g.entries = g.room[:0]
	return g
}

// Add appends an item and returns it to fill in; the room of an earlier
// payload is in Payload, with length 0. It must not be called after Submit.
func (g *Bundle) Add() *Item {
	n := len(g.entries)
	if n < cap(g.entries) {
		g.entries = g.entries[:n+1]
	} else {
		g.entries = append(g.entries, entry{})
	}
	e := &g.entries[n]
	*e = entry{bundle: g, item: Item{Payload: e.item.Payload[:0]}}
	return &e.item
}

// adopt makes item the only one.
func (g *Bundle) adopt(item Item) {
	g.room[0] = entry{bundle: g, item: item}
	g.entries = g.room[:1]
}

// Len is the number of items.
func (g *Bundle) Len() int { return len(g.entries) }

// Item is the i'th item, in the order of Add.
func (g *Bundle) Item(i int) *Item { return &g.entries[i].item }

// Status is Queen's verdict on the i'th item; "" while there is none that ends
// it, "refused" where Queen will never take it.
func (g *Bundle) Status(i int) PushStatus { return g.entries[i].status }

// Count is the number of items with a verdict.
func (g *Bundle) Count(s PushStatus) int {
	n := 0
	for i := range g.entries {
		if g.entries[i].status == s {
			n++
		}
	}
	return n
}

const (
	// maxKeptEntries and maxKeptBytes bound the room a bundle keeps for its
	// next use: one large one must not make every later one cost as much
	// memory.
	maxKeptEntries = 4
	maxKeptBytes   = 64 << 10
)

// Reset empties a bundle for another use; some of its room stays.
func (g *Bundle) Reset() {
	entries := g.entries[:min(len(g.entries), maxKeptEntries)]
	if len(g.entries) > maxKeptEntries {
		entries = slices.Clone(entries)
	}
	for i := range entries {
		payload := entries[i].item.Payload
		if cap(payload) > maxKeptBytes {
			payload = nil
		}
		entries[i] = entry{item: Item{Payload: payload}}
	}
	g.entries, g.deadline = entries[:0], time.Time{}
}

// payloadBytes is the size of all payloads.
func (g *Bundle) payloadBytes() int {
	n := 0
	for i := range g.entries {
		n += len(g.entries[i].item.Payload)
	}
	return n
}

// lost says that an entry of the bundle can never be stored, so there is
// nothing to wait for.
func (g *Bundle) lost() bool {
	return slices.ContainsFunc(g.entries, func(e entry) bool { return e.status == statusRefused })
}

// sum is what the verdicts on all entries come to.
func (g *Bundle) sum() BundleResult {
	r := BundleStored
	for i := range g.entries {
		switch g.entries[i].status {
		case PushQueued, PushDuplicate:
		case PushBuffered:
			r = BundleSpooled
		default:
			return BundleRefused
		}
	}
	return r
}

// bundleList is a list of bundles in order of arrival. A bundle is in one list
// at most.
type bundleList struct {
	first, last *Bundle
	len         int
}

func (l *bundleList) pushBack(g *Bundle) {
	g.prev, g.next = l.last, nil
	if l.last == nil {
		l.first = g
	} else {
		l.last.next = g
	}
	l.last = g
	l.len++
}

func (l *bundleList) pushFront(g *Bundle) {
	g.prev, g.next = nil, l.first
	if l.first == nil {
		l.last = g
	} else {
		l.first.prev = g
	}
	l.first = g
	l.len++
}

func (l *bundleList) remove(g *Bundle) {
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
