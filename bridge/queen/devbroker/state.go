package devbroker

import (
	"container/list"
	"slices"
	"strings"
)

// queueMode is the group of consumers that name none.
const queueMode = "__QUEUE_MODE__"

// defaultPartition is the partition of what names none.
const defaultPartition = "Default"

// state is everything the broker decides from. It is guarded by Broker.mu and
// thrown away and read again when a commit has failed.
type state struct {
	queues  map[string]*queue
	parts   map[string]*partition // by id
	leases  map[string][]*cursor  // by lease id
	timers  map[string]*ordered[*timer]
	kv      map[string]*ordered[*kvRow]
	dead    map[string]*deadLetter // by id
	traces  []*trace
	lastNum int64 // last number given to a queue or partition
	version int64 // last KV version given

	holds   agenda[*cursor] // leases that end, holdbacks that pass
	pending agenda[*timer]  // timers by due time
	// expiring is the KV rows that do not stay forever.
	expiring agenda[*kvRow]

	discovery map[scope]*list.List  // parked discovery pops
	absent    map[string]*list.List // parked pinned pops of a queue there is not
}

func newState() *state {
	return &state{
		queues: map[string]*queue{}, parts: map[string]*partition{}, leases: map[string][]*cursor{},
		timers: map[string]*ordered[*timer]{}, kv: map[string]*ordered[*kvRow]{}, dead: map[string]*deadLetter{},
		discovery: map[scope]*list.List{}, absent: map[string]*list.List{},
	}
}

// scope is what a discovery pop asks for.
type scope struct{ namespace, task, group string }

type queue struct {
	num             int64
	id, name        string
	namespace, task string
	created         micros
	opts            options
	parts           map[string]*partition
	order           []*partition
	groups          []*group
	noted           *batch
}

// group is one consumer group's subscription to one queue.
type group struct {
	queue *queue
	name  string
	all   bool // subscription mode
	// conflates: with its subscription; nothing without one
	conflates bool
	since     micros        // subscription time; 0 with all
	created   micros        // 0: known in some partitions only, without a subscription
	ready     fifo[*cursor] // partitions that may have something to claim
	waiting   list.List     // parked queue-scoped pops
	pinned    map[string]*list.List
	gone      bool
	noted     *batch
}

type partition struct {
	num         int64
	queue       *queue
	id, name    string
	created     micros
	first, next uint64 // retained messages are [first, next)
	known       uint64 // ids.base when it was last written down
	tail        []*segment
	ids         idIndex
	cursors     []*cursor
	lastPush    micros
	noted       *batch
}

// cursor is the position of one group in one partition (queen-contract.md
// §4.1): everything before next is done. A lease covers [next, leaseEnd).
type cursor struct {
	part       *partition
	group      *group
	next       uint64
	lease      string // "" when nobody holds it
	until      micros
	leaseStart uint64
	leaseEnd   uint64
	conflated  bool  // the lease covers more than the message that was delivered
	retries    int64 // failed acks charged
	attempts   int64 // deliveries in a row that began at attemptAt
	attemptAt  uint64
	acked      raftAck // what released the last lease, on 2.x
	local      bool    // leased to a client in this process, whose death ends the lease
	known      bool    // popped or seeded: 1.3.0 has a row for it
	blurred    bool    // the leased batch can no longer be acked by position
	inReady    bool
	wakeAt     micros // when holds should look at it
	held       int    // place in holds
	noted      *batch
}

func (c *cursor) dueAt() micros { return c.wakeAt }
func (c *cursor) place() *int   { return &c.held }

// position is next, or the first retained message where retention took some.
func (c *cursor) position() uint64 { return max(c.next, c.part.first) }

func (c *cursor) leased(now micros) bool { return c.lease != "" && now < c.until }

func (q *queue) group(name string) *group {
	for _, g := range q.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

// subscribed says whether the group has a subscription: it has popped the
// queue, and not only a partition of it.
func (g *group) subscribed() bool { return g.created != 0 }

// there says whether the cursor counts: a group without a subscription has
// none but in the partitions it was in.
func (c *cursor) there() bool { return c.known || c.group.subscribed() }

func (p *partition) cursor(g *group) *cursor {
	for _, c := range p.cursors {
		if c.group == g {
			return c
		}
	}
	return nil
}

// addCursor gives a group its place in a partition.
func (p *partition) addCursor(g *group, next uint64) *cursor {
	c := &cursor{part: p, group: g, next: next, known: next > 0}
	p.cursors = append(p.cursors, c)
	return c
}

// consumed is the offset below which every group is done; 0 while no group
// reads the queue.
func (p *partition) consumed() uint64 {
	lowest, read := p.next, false
	for _, c := range p.cursors {
		if c.there() {
			lowest, read = min(lowest, c.position()), true
		}
	}
	if !read {
		return 0
	}
	return lowest
}

// segmentAt returns the cached segment that holds offset, or nil.
func (p *partition) segmentAt(offset uint64) *segment {
	i, ok := slices.BinarySearchFunc(p.tail, offset, func(s *segment, o uint64) int {
		switch {
		case s.end() <= o:
			return -1
		case s.base > o:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return p.tail[i]
}

// derivedScope is the namespace and task of a queue nobody configured: the
// first two dotted parts of its name (measured 1.3.0).
func derivedScope(name string) (namespace, task string) {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) > 1 {
		task = parts[1]
	}
	return parts[0], task
}

// ensureQueue returns the queue of that name, making it with the options of an
// implicit one.
func (b *Broker) ensureQueue(name string) *queue {
	if q := b.st.queues[name]; q != nil {
		return q
	}
	namespace, task := derivedScope(name)
	q := &queue{name: name, namespace: namespace, task: task, opts: implicitOptions()}
	b.addQueue(q)
	return q
}

func (b *Broker) addQueue(q *queue) {
	b.st.lastNum++
	q.num, q.id, q.created, q.parts = b.st.lastNum, randomID(), b.now(), map[string]*partition{}
	b.st.queues[q.name] = q
	b.noteQueue(q)
	b.wakeForQueue(q)
}

// ensurePartition returns a partition of the queue, making it.
func (b *Broker) ensurePartition(q *queue, name string) *partition {
	if p := q.parts[name]; p != nil {
		return p
	}
	b.st.lastNum++
	p := &partition{num: b.st.lastNum, queue: q, id: b.partitionID(b.st.lastNum), name: name, created: b.now()}
	b.linkPartition(p)
	b.notePartition(p)
	return p
}

// linkPartition puts a partition in its places, with a cursor for each group:
// a partition made after a group's first contact is read from its start.
func (b *Broker) linkPartition(p *partition) {
	p.queue.parts[p.name] = p
	p.queue.order = append(p.queue.order, p)
	b.st.parts[p.id] = p
	for _, g := range p.queue.groups {
		p.addCursor(g, 0)
	}
}

// fifo is a queue of things with cheap ends.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(item T) { f.items = append(f.items, item) }

func (f *fifo[T]) pop() (item T, ok bool) {
	if f.len() == 0 {
		return item, false
	}
	var none T
	item, f.items[f.head] = f.items[f.head], none
	f.head++
	if f.head > 64 && f.head > len(f.items)/2 {
		f.items = append(f.items[:0], f.items[f.head:]...)
		f.head = 0
	}
	return item, true
}
