package devbroker

import "time"

// batch is one commit in the making, then under way, then done. It names what
// has changed; the rows are taken from the state when the commit begins.
type batch struct {
	done   chan struct{}
	err    error // valid once done is closed
	urgent bool  // somebody waits for it, or may
	size   int

	queues  []*queue
	parts   []*partition
	groups  []*group
	cursors []*cursor
	segs    []*segment
	timers  map[int64]*timer // by number; nil: removed
	kv      map[kvKey]*kvRow // nil: removed
	dead    map[string]*deadLetter
	traces  []*trace
	gone    []int64
	left    []groupID
}

func newBatch() *batch {
	return &batch{
		done:   make(chan struct{}),
		timers: map[int64]*timer{}, kv: map[kvKey]*kvRow{}, dead: map[string]*deadLetter{},
	}
}

// ticket is what an answer waits for: nil for nothing.
type ticket = *batch

// wait returns when the batch is on disk, or why it is not.
func (t *batch) wait() error {
	if t == nil {
		return nil
	}
	<-t.done
	return t.err
}

// ticket returns the commit that makes durable all that has been done or seen
// so far.
func (b *Broker) ticket() ticket {
	switch {
	case b.batch == nil:
		return nil
	case b.batch.urgent:
		b.startWriter()
		return b.batch
	}
	return b.inflight
}

func (b *Broker) startWriter() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

func (b *Broker) noteQueue(q *queue) {
	if t := b.batch; t != nil && q.noted != t {
		q.noted, t.urgent = t, true
		t.size++
		t.queues = append(t.queues, q)
	}
}

func (b *Broker) notePartition(p *partition) {
	if t := b.batch; t != nil && p.noted != t {
		p.noted, t.urgent = t, true
		t.size++
		t.parts = append(t.parts, p)
	}
}

func (b *Broker) noteGroup(g *group) {
	if t := b.batch; t != nil && g.noted != t {
		g.noted, t.urgent = t, true
		t.size++
		t.groups = append(t.groups, g)
	}
}

// noteLease notes a change nobody needs on disk before the answer: a lease
// that a crash loses means that its messages come again at once.
func (b *Broker) noteLease(c *cursor) {
	if t := b.batch; t != nil && c.noted != t {
		c.noted = t
		t.size++
		t.cursors = append(t.cursors, c)
		if t.size == 1 {
			b.startWriter()
		}
	}
}

func (b *Broker) noteCursor(c *cursor) {
	c.known = true
	if b.batch != nil {
		b.batch.urgent = true
		b.noteLease(c)
	}
}

func (b *Broker) noteSegment(s *segment) {
	if t := b.batch; t != nil {
		s.batch, t.urgent = t, true
		t.size++
		t.segs = append(t.segs, s)
	}
}

func (b *Broker) noteTimer(tm *timer) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.timers[tm.num] = tm
	}
}

func (b *Broker) noteTimerGone(tm *timer) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.timers[tm.num] = nil
	}
}

func (b *Broker) noteKV(key kvKey, row *kvRow) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.kv[key] = row
	}
}

func (b *Broker) noteDead(id string, d *deadLetter) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.dead[id] = d
	}
}

func (b *Broker) noteTrace(tr *trace) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.traces = append(t.traces, tr)
	}
}

func (b *Broker) noteQueueGone(q *queue) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.gone = append(t.gone, q.num)
	}
}

func (b *Broker) noteGroupGone(g *group) {
	if t := b.batch; t != nil {
		t.urgent = true
		t.size++
		t.left = append(t.left, groupID{g.queue.num, g.name})
	}
}

// lazyFlush is how long a lease may wait for company before it is written.
const lazyFlush = 50 * time.Millisecond

// runWriter commits batch after batch: whatever gathered while one was being
// written is the next one.
func (b *Broker) runWriter() {
	lazy := time.NewTimer(time.Hour)
	lazy.Stop()
	for {
		select {
		case <-b.kick:
		case <-lazy.C:
			b.commitPending(true)
			continue
		case <-b.ctx.Done():
			b.commitPending(true)
			return
		}
		if b.commitPending(false) {
			lazy.Reset(lazyFlush)
		}
	}
}

// commitPending commits the pending batch. One that nobody waits for is left
// alone unless all is set; it reports that it left one.
func (b *Broker) commitPending(all bool) (left bool) {
	b.mu.Lock()
	t := b.batch
	if t.size == 0 || b.down != nil {
		b.mu.Unlock()
		return false
	}
	if !t.urgent && !all {
		b.mu.Unlock()
		return true
	}
	rows := b.rows(t)
	b.batch, b.inflight = newBatch(), t
	b.mu.Unlock()

	err := b.store.commit(rows)

	b.mu.Lock()
	b.inflight = nil
	if err != nil {
		b.fail(err)
		t.err = b.down
	} else {
		b.stored(t)
	}
	b.mu.Unlock()
	close(t.done)
	return false
}

// stored lets go of bytes that can be read back now.
func (b *Broker) stored(t *batch) {
	for _, s := range t.segs {
		s.batch, s.hashes = nil, nil
		b.cache.add(s)
	}
	for _, tm := range t.timers {
		b.dropPayload(tm)
	}
	b.cache.trim()
}

// fail refuses everything from now on; the batch that was gathering fails with
// the one that could not be written. Recovery is the retention round's job.
func (b *Broker) fail(err error) {
	b.down = &storeError{err}
	b.log.Error("storing failed; refusing requests until the store works again", "err", err)
	t := b.batch
	t.err = b.down
	b.batch = newBatch()
	close(t.done)
	b.wakeEverybody()
}

// storeError is why nothing can be stored.
type storeError struct{ err error }

func (e *storeError) Error() string { return "storage unavailable: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// rows takes the rows of a batch from the state.
func (b *Broker) rows(t *batch) *changes {
	c := &changes{version: b.st.version, noQueues: t.gone, noGroups: t.left}
	for _, q := range t.queues {
		c.queues = append(c.queues, q.row())
	}
	for _, p := range t.parts {
		c.parts = append(c.parts, p.row())
	}
	for _, g := range t.groups {
		if !g.gone {
			c.groups = append(c.groups, g.row())
		}
	}
	for _, cur := range t.cursors {
		if !cur.group.gone {
			c.cursors = append(c.cursors, cur.row())
		}
	}
	for _, tr := range t.traces {
		c.traces = append(c.traces, *tr)
	}
	c.segments = b.segmentRows(t.segs)
	b.lateRows(t, c)
	return c
}

// lateRows takes the rows that may also be removals.
func (b *Broker) lateRows(t *batch, c *changes) {
	for num, tm := range t.timers {
		if tm == nil {
			c.noTimers = append(c.noTimers, num)
		} else {
			c.timers = append(c.timers, tm.row())
		}
	}
	for key, row := range t.kv {
		if row == nil {
			c.noKV = append(c.noKV, key)
		} else {
			c.kv = append(c.kv, row.stored(key))
		}
	}
	for id, d := range t.dead {
		if d == nil {
			c.noDead = append(c.noDead, id)
		} else {
			c.dead = append(c.dead, *d)
		}
	}
}

// segmentRows joins what was appended to one partition one after the other:
// fewer rows to write and to read back.
func (b *Broker) segmentRows(segs []*segment) []storedSegment {
	rows := make([]storedSegment, 0, len(segs))
	last := map[int64]int{}
	for _, s := range segs {
		i, ok := last[s.part.num]
		if ok && rows[i].base+uint64(len(rows[i].hashes)) == s.base && rows[i].size() < joinLimit {
			r := &rows[i]
			r.spans = append(r.spans, span{s.base, s.at})
			r.hashes = append(r.hashes, s.hashes...)
			r.blobs = append(r.blobs, s.blob)
			continue
		}
		last[s.part.num] = len(rows)
		rows = append(rows, storedSegment{
			queue: s.part.queue.num, part: s.part.num, base: s.base, spans: []span{{s.base, s.at}},
			hashes: s.hashes[:len(s.hashes):len(s.hashes)], blobs: [][]byte{s.blob},
		})
	}
	return rows
}

// size is that of the messages to be written.
func (s *storedSegment) size() (n int) {
	for _, b := range s.blobs {
		n += len(b)
	}
	return n
}

// joinLimit bounds the rows that segmentRows makes.
const joinLimit = 256 << 10

func (q *queue) row() queueRow {
	return queueRow{num: q.num, id: q.id, name: q.name, namespace: q.namespace, task: q.task, created: q.created, opts: q.opts}
}

func (p *partition) row() partitionRow {
	return partitionRow{num: p.num, queue: p.queue.num, id: p.id, name: p.name, created: p.created, first: p.first, next: p.next, known: p.known}
}

func (g *group) row() groupRow {
	return groupRow{groupID: groupID{g.queue.num, g.name}, all: g.all, conflates: g.conflates, since: g.since, created: g.created}
}

// row is the cursor as it is stored: a lease that ends with this process is
// not, so that its messages come again as soon as the next one has started.
func (c *cursor) row() cursorRow {
	r := cursorRow{
		part: c.part.num, group: c.group.name, next: c.next,
		retries: c.retries, attempts: c.attempts, attemptAt: c.attemptAt,
	}
	if !c.local {
		r.lease, r.until, r.leaseStart, r.leaseEnd = c.lease, c.until, c.leaseStart, c.leaseEnd
		r.conflated = c.conflated
	}
	return r
}
