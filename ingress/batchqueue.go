package ingress

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// batchQueue batches the items of one queue (design.md, "Batcher"). One mutex
// guards all of it; nothing slow happens under it.
type batchQueue struct {
	*batcher
	name    string
	observe queueMetrics

	mu    sync.Mutex
	lanes map[string]*lane
	// blocked groups wait to be admitted, waiting ones for a push.
	blocked, waiting groupList
	inFlight         []*batch
	spare            []*batch
	starting         bool   // a pusher is about to begin
	pending          amount // admitted and not decided
	eligible         amount // waiting in lanes that no push holds
	pass             uint64 // number of the last selection
	notBefore        time.Time
	retry            *backoff.ExponentialBackOff
	failures         int // failed pushes in a row
	timer            *time.Timer
	armed            time.Time // when timer fires; zero: it does not
	closed           bool
}

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

// batch is one push. Its slices are used again for later ones.
type batch struct {
	groups   []*group
	entries  []*entry
	lanes    []*lane // those of the entries, each once
	items    []queen.Item
	verdicts []verdict
	deadline time.Time // of the request that waits longest
}

// newBatch returns an empty batch.
func (q *batchQueue) newBatch() *batch {
	if n := len(q.spare); n > 0 {
		b := q.spare[n-1]
		q.spare = q.spare[:n-1]
		return b
	}
	return &batch{}
}

// recycle keeps the room of a batch that is over. There are never more than
// were in flight at once.
func (q *batchQueue) recycle(b *batch) {
	clear(b.groups)
	clear(b.entries)
	clear(b.items)
	*b = batch{groups: b.groups[:0], entries: b.entries[:0], lanes: b.lanes[:0],
		items: b.items[:0], verdicts: b.verdicts[:0]}
	q.spare = append(q.spare, b)
}

func newBatchQueue(b *batcher, name string) *batchQueue {
	q := &batchQueue{batcher: b, name: name, lanes: make(map[string]*lane), retry: newRetry()}
	q.observe = b.metrics.queue(name)
	return q
}

// newRetry yields 250 ms, doubling to 4 s, each ± 50 %, for ever: the requests'
// own deadlines end it.
func newRetry() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(250*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(4*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}

// enqueue takes a group over and starts a push where one may start.
func (q *batchQueue) enqueue(g *group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	g.enqueued, g.open, g.size = now, len(g.entries), payloadBytes(g.entries)
	if q.closed || g.open == 0 {
		q.decide(g, stopped)
		return
	}
	if q.blocked.len > 0 || !q.fits(g) {
		g.state = blocked
		q.blocked.pushBack(g)
	} else {
		q.admit(g)
	}
	q.arm(now, g.deadline)
	q.pump(now)
}

func payloadBytes(entries []entry) int {
	n := 0
	for i := range entries {
		n += len(entries[i].item.Payload)
	}
	return n
}

// fits says whether a group may join the waiting ones. One that is larger
// than the bound fits when it is alone, or it never would.
func (q *batchQueue) fits(g *group) bool {
	if q.pending.items == 0 {
		return true
	}
	return q.pending.items+len(g.entries) <= q.limits.maxPendingItems &&
		q.pending.bytes+g.size <= q.limits.maxPendingBytes
}

func (q *batchQueue) admit(g *group) {
	q.pending.items += len(g.entries)
	q.pending.bytes += g.size
	q.observe.pending.Set(float64(q.pending.items))
	for i := range g.entries {
		e := &g.entries[i]
		e.lane = q.lane(e.item.Partition)
	}
	g.state = waiting
	q.waiting.pushBack(g)
	q.count(g, +1)
}

// promote admits blocked groups in order, as far as they fit.
func (q *batchQueue) promote() {
	for g := q.blocked.first; g != nil && q.fits(g); g = q.blocked.first {
		q.blocked.remove(g)
		q.admit(g)
	}
}

func (q *batchQueue) lane(name string) *lane {
	l := q.lanes[name]
	if l == nil {
		l = &lane{name: name}
		q.lanes[name] = l
	}
	return l
}

// forget drops a lane without work, unless there are few: the next event of the
// same partition is often near.
func (q *batchQueue) forget(l *lane) {
	if len(q.lanes) > maxIdleLanes && !l.busy && l.waiting.items == 0 && q.lanes[l.name] == l {
		delete(q.lanes, l.name)
	}
}

// count adds (or takes) a waiting group's open entries to the sums.
func (q *batchQueue) count(g *group, sign int) {
	for i := range g.entries {
		e := &g.entries[i]
		if e.status != "" {
			continue
		}
		items, bytes := sign, sign*len(e.item.Payload)
		e.lane.waiting.items += items
		e.lane.waiting.bytes += bytes
		if !e.lane.busy {
			q.eligible.items += items
			q.eligible.bytes += bytes
		}
	}
}

// hold marks a lane as being pushed, or free again.
func (q *batchQueue) hold(l *lane, busy bool) {
	if l.busy == busy {
		return
	}
	l.busy = busy
	sign := 1
	if busy {
		sign = -1
	}
	q.eligible.items += sign * l.waiting.items
	q.eligible.bytes += sign * l.waiting.bytes
}

// decide tells a group's request what became of it.
func (q *batchQueue) decide(g *group, r result) {
	g.state, g.result = outside, r
	g.done <- struct{}{}
}

// release gives back the room of an admitted group.
func (q *batchQueue) release(g *group) {
	q.pending.items -= len(g.entries)
	q.pending.bytes -= g.size
	q.observe.pending.Set(float64(q.pending.items))
}

// drop takes a group out of the waiting ones and forgets its lanes.
func (q *batchQueue) drop(g *group) {
	q.waiting.remove(g)
	q.count(g, -1)
	q.release(g)
	for i := range g.entries {
		q.forget(g.entries[i].lane)
	}
}
