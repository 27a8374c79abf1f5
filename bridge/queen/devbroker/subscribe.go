package devbroker

import "time"

// contact returns the group of a pop on a queue, making it on first contact:
// from then on its subscription is fixed (queen-contract.md §4).
func (b *Broker) contact(q *queue, req *popRequest) *group {
	if g := q.group(req.scope.group); g != nil {
		return g
	}
	now := b.now()
	g := &group{queue: q, name: req.scope.group, created: now}
	g.all, g.since = subscription(req)
	q.groups = append(q.groups, g)
	for _, p := range q.order {
		b.seed(p, g, req.arrived)
	}
	b.noteGroup(g)
	return g
}

// seed gives a new group its place in a partition there already is.
func (b *Broker) seed(p *partition, g *group, arrived micros) {
	next := p.first
	switch {
	case g.all:
		next = 0
	case g.since == arrived && p.lastPush <= arrived:
		next = p.next // what there was before the group's first pop
	case g.since > p.lastPush:
		next = p.next
	default:
		next = b.firstSince(p, g.since)
	}
	c := p.addCursor(g, next)
	if next > 0 {
		b.noteCursor(c)
	}
	b.release(c, b.now())
}

// subscription is where a group starts: everything, or what is stored from a
// time on. The words are those of 1.3.0 (measured): any mode but new means
// all, and a time that cannot be read means now, even with all.
func subscription(req *popRequest) (all bool, since micros) {
	switch {
	case req.scope.group == queueMode:
		return true, 0
	case req.from == "now":
		return false, req.arrived
	case req.from != "":
		if t, err := time.Parse(time.RFC3339Nano, req.from); err == nil {
			return false, microsOf(t)
		}
		return false, req.arrived
	case req.mode == "" || req.mode == "new" || req.mode == "new-only":
		return false, req.arrived
	}
	return true, 0
}

// firstSince is the first offset of a partition stored at or after a time.
func (b *Broker) firstSince(p *partition, t micros) uint64 {
	if p.ids.base > p.first && (len(p.ids.spans) == 0 || t <= p.ids.spans[0].at) {
		if offset, ok := b.storedSince(p, t); ok {
			return offset
		}
	}
	return max(p.ids.firstSince(t), p.first)
}
