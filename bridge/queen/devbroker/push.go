package devbroker

import (
	"bytes"
	"net/http"
	"strconv"
)

// pushGroup is the items of one push that go to one partition.
type pushGroup struct {
	queue, partition []byte
	items            []int // into the request
	size             int   // of items, before they are there
	parcel           parcel
	lost             bool // a queue name that 1.3.0 takes and loses
}

// verdict is the answer for one pushed item.
type verdict struct {
	id     messageID
	status string
}

// pushPlan is a push made ready outside the lock: grouped, hashed, encoded.
type pushPlan struct {
	items    []pushItem
	ids      []messageID
	hashes   []uint64
	groups   []pushGroup
	verdicts []verdict
}

func (b *Broker) planPush(items []pushItem) *pushPlan {
	p := &pushPlan{
		items: items, ids: make([]messageID, len(items)),
		hashes: make([]uint64, len(items)), verdicts: make([]verdict, len(items)),
	}
	mint, size := newMinter(b.now()), 0
	for i := range items {
		it := &items[i]
		p.ids[i] = mint.id()
		if it.minted {
			it.txn = p.ids[i].append(nil)
		}
		p.hashes[i] = b.key.hash(it.txn)
		size += encodedOverhead + len(it.txn) + len(it.payload)
	}
	p.group()
	// One allocation holds the whole push; the groups share it.
	blob := make([]byte, 0, size)
	for i := range p.groups {
		g := &p.groups[i]
		g.parcel.blob = blob[len(blob):]
		p.encode(g, g.items)
		blob = blob[:len(blob)+len(g.parcel.blob)]
		g.parcel.blob = g.parcel.blob[:len(g.parcel.blob):len(g.parcel.blob)]
	}
	return p
}

// encode fills the group's parcel with some of its items.
func (p *pushPlan) encode(g *pushGroup, items []int) {
	for _, i := range items {
		it := &p.items[i]
		g.parcel.add(message{id: p.ids[i], txn: it.txn, trace: it.trace, payload: it.payload}, p.hashes[i])
	}
}

// group sorts the items into groups, in order of first appearance.
func (p *pushPlan) group() {
	of := make([]int, len(p.items)) // the group of each
	var find groupFinder
	for i := range p.items {
		it := &p.items[i]
		at := find.group(p.groups, it)
		if at == len(p.groups) {
			lost := len(it.queue) == 0 || len(it.queue) > maxQueueName && len([]rune(string(it.queue))) > maxQueueName
			p.groups = append(p.groups, pushGroup{queue: it.queue, partition: it.partition, lost: lost})
		}
		p.groups[at].size++
		of[i] = at
	}
	p.share()
	for i, at := range of {
		p.groups[at].items = append(p.groups[at].items, i)
	}
}

// share gives each group its part of what is allocated for all.
func (p *pushPlan) share() {
	n := len(p.items)
	items, start, hashes := make([]int, 0, n), make([]uint32, 0, n), make([]uint64, 0, n)
	for i, from := 0, 0; i < len(p.groups); i++ {
		g := &p.groups[i]
		to := from + g.size
		g.items, g.parcel.start, g.parcel.hashes = items[from:from:to], start[from:from:to], hashes[from:from:to]
		from = to
	}
}

// groupFinder finds the group of an item.
type groupFinder struct {
	last int
	many map[string]int // nil while there are few
	key  []byte
}

// fewGroups are looked through faster than they are put into a map.
const fewGroups = 32

// group is the place of an item's group, the number of groups where it is a new
// one's.
func (f *groupFinder) group(groups []pushGroup, it *pushItem) int {
	switch {
	case f.last < len(groups) && groups[f.last].holds(it):
		return f.last
	case len(groups) < fewGroups:
		for f.last = 0; f.last < len(groups) && !groups[f.last].holds(it); f.last++ {
		}
		return f.last
	case f.many == nil:
		f.many = make(map[string]int, 2*fewGroups)
		for i := range groups {
			f.many[string(f.keyOf(groups[i].queue, groups[i].partition))] = i
		}
	}
	key := f.keyOf(it.queue, it.partition)
	at, known := f.many[string(key)]
	if !known {
		at = len(groups)
		f.many[string(key)] = at
	}
	f.last = at
	return at
}

func (f *groupFinder) keyOf(queue, partition []byte) []byte {
	f.key = append(append(append(f.key[:0], queue...), 0), partition...)
	return f.key
}

func (g *pushGroup) holds(it *pushItem) bool {
	return bytes.Equal(g.partition, it.partition) && bytes.Equal(g.queue, it.queue)
}

// push stores a planned push, under the lock.
func (b *Broker) push(p *pushPlan) {
	for i := range p.groups {
		g := &p.groups[i]
		if g.lost {
			for _, i := range g.items {
				p.verdicts[i] = verdict{p.ids[i], b.lostWord()}
			}
			continue
		}
		b.pushGroup(p, g)
	}
}

func (b *Broker) pushGroup(p *pushPlan, g *pushGroup) {
	part := b.partitionOf(g.queue, g.partition)
	fresh := b.dedup(p, g, part)
	if len(fresh) == 0 {
		return
	}
	if len(fresh) < len(g.items) {
		g.parcel = parcel{start: make([]uint32, 0, len(fresh)), hashes: make([]uint64, 0, len(fresh))}
		p.encode(g, fresh)
	}
	b.append(part, g.parcel)
}

// partitionOf finds or makes the partition a push goes to.
func (b *Broker) partitionOf(queue, partition []byte) *partition {
	q := b.st.queues[string(queue)]
	if q == nil {
		q = b.ensureQueue(string(queue))
	}
	if p := q.parts[string(partition)]; p != nil {
		return p
	}
	return b.ensurePartition(q, string(partition))
}

// dedup gives each item of a group its verdict and returns those to store. An
// id repeated within the request is a duplicate of the first, even with
// deduplication off (measured 1.3.0).
func (b *Broker) dedup(p *pushPlan, g *pushGroup, part *partition) (fresh []int) {
	fresh = g.items
	repeats := len(g.items) > 1 && hasRepeats(p, g)
	for n, i := range g.items {
		v := verdict{p.ids[i], "queued"}
		if id, ok := b.duplicateOf(part, p.items[i].txn, p.hashes[i]); ok {
			v = verdict{id, "duplicate"}
		} else if repeats {
			if first, ok := p.earlier(g, n); ok {
				v = verdict{p.verdicts[first].id, "duplicate"}
			}
		}
		p.verdicts[i] = v
		if v.status != "queued" && len(fresh) == len(g.items) {
			fresh = append([]int(nil), g.items[:n]...)
		} else if v.status == "queued" && len(fresh) < len(g.items) {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// hasRepeats says whether two items of a group may carry the same id.
func hasRepeats(p *pushPlan, g *pushGroup) bool {
	if len(g.items) <= 16 {
		for n, i := range g.items {
			for _, j := range g.items[:n] {
				if p.hashes[i] == p.hashes[j] {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[uint64]struct{}, len(g.items))
	for _, i := range g.items {
		seen[p.hashes[i]] = struct{}{}
	}
	return len(seen) < len(g.items)
}

// earlier finds the first item of a group with the id of the n-th.
func (p *pushPlan) earlier(g *pushGroup, n int) (first int, ok bool) {
	i := g.items[n]
	for _, j := range g.items[:n] {
		if p.hashes[i] == p.hashes[j] && bytes.Equal(p.items[i].txn, p.items[j].txn) {
			return j, true
		}
	}
	return 0, false
}

// duplicateOf finds the message that an id is a duplicate of: the newest with
// that id in the partition, if it is younger than the window. The id is all
// zeros when the message itself is gone, or cannot be read.
func (b *Broker) duplicateOf(p *partition, txn []byte, hash uint64) (original messageID, ok bool) {
	window := p.queue.opts.dedupWindow()
	if window <= 0 {
		return original, false
	}
	offset, ok := p.ids.newest(hash)
	if !ok || p.ids.stored(offset).add(window) <= b.now() {
		return original, false
	}
	m, err := b.message(p, offset)
	if err != nil {
		return original, true // the hash alone says it
	}
	return m.id, bytes.Equal(m.txn, txn)
}

func (b *Broker) handlePush(w http.ResponseWriter, r *http.Request, _ params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	defer body.free()
	items, err := parsePush(body.bytes)
	if err != nil {
		badBody(w, err)
		return
	}
	if b.raft() {
		raftItems(items)
	}
	plan := b.planPush(items)
	if faultOf(r).Buffered {
		plan.buffered()
	} else if err := b.update(func() { b.push(plan) }); err != nil {
		unavailable(w, err)
		return
	}
	b.warnLost(plan)
	answer(w, http.StatusCreated, plan.json())
}

func (p *pushPlan) buffered() {
	for i := range p.verdicts {
		p.verdicts[i] = verdict{p.ids[i], "buffered"}
	}
}

func (b *Broker) warnLost(p *pushPlan) {
	for i := range p.groups {
		if g := &p.groups[i]; g.lost {
			b.log.Warn("pushed items dropped: Queen takes no queue of this name",
				"items", len(g.items), "name_length", len(g.queue))
		}
	}
}

func (p *pushPlan) json() []byte {
	size := 2
	for i := range p.items {
		size += 160 + len(p.items[i].txn) + len(p.items[i].queue)
	}
	out := append(make([]byte, 0, size), '[')
	for i, v := range p.verdicts {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendVerdict(out, i, v, p.items[i].txn, p.items[i].queue)
	}
	return append(out, ']')
}

func appendVerdict(dst []byte, index int, v verdict, txn, queue []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	dst = v.id.append(append(dst, `,"message_id":"`...))
	dst = appendString(append(dst, `","transaction_id":`...), txn)
	dst = appendString(append(dst, `,"queueName":`...), queue)
	dst = append(append(dst, `,"status":"`...), v.status...)
	return append(dst, `"}`...)
}
