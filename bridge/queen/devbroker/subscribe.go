package devbroker

import (
	"strings"
	"time"
)

// contact returns the group of a pop on a queue, making it on first contact:
// from then on its subscription is fixed (queen-contract.md §4). A pinned pop
// is a contact with its partition alone (measured 1.3.0).
func (b *Broker) contact(q *queue, req *popRequest) *group {
	g := q.group(req.scope.group)
	if g == nil {
		g = b.addGroup(q, req.scope.group)
	}
	if !g.subscribed() && (!req.pinned || req.registers(g)) {
		b.subscribe(g, req)
	}
	return g
}

func (b *Broker) addGroup(q *queue, name string) *group {
	g := &group{queue: q, name: name}
	q.groups = append(q.groups, g)
	for _, p := range q.order {
		p.addCursor(g, 0)
	}
	return g
}

// subscribe fixes where a group begins; where it has been already it stays.
func (b *Broker) subscribe(g *group, req *popRequest) {
	g.created = b.now()
	g.all, g.since = subscription(req)
	g.conflates = req.conflation.wanted && g.name != queueMode
	for _, p := range g.queue.order {
		if c := p.cursor(g); !c.known {
			b.seed(c, g.all, g.since, req.arrived)
		}
	}
	b.noteGroup(g)
}

// seedAlone gives a group that has no subscription its place in the one
// partition that a pinned pop names.
func (b *Broker) seedAlone(c *cursor, req *popRequest) {
	all, since := subscription(req)
	b.seed(c, all, since, req.arrived)
	b.noteCursor(c)
	b.noteGroup(c.group)
}

// seed gives a group its place in a partition there already is.
func (b *Broker) seed(c *cursor, all bool, since, arrived micros) {
	p := c.part
	switch {
	case all: // from the first there is
	case since == arrived && p.lastPush <= arrived:
		c.next = p.next // what there was before the group's first pop
	case since > p.lastPush:
		c.next = p.next
	default:
		c.next = b.firstSince(p, since)
	}
	if c.next > 0 {
		b.noteCursor(c)
	}
	b.release(c, b.now())
}

// seedLate gives a group its place in a partition that was made after the
// group, but before the time the group reads from.
func (b *Broker) seedLate(c *cursor) {
	c.next = max(c.next, b.firstSince(c.part, c.group.since))
	b.noteCursor(c)
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
		if t, ok := parseTime(req.from, req.arrived.time()); ok {
			return false, microsOf(t)
		}
		return false, req.arrived
	case req.mode == "" || req.mode == "new" || req.mode == "new-only":
		return false, req.arrived
	}
	return true, 0
}

// parseTime reads a time the way PostgreSQL does, as far as people write them:
// RFC 3339, with a space, without a zone (UTC), a date alone, and a few words.
func parseTime(text string, now time.Time) (t time.Time, ok bool) {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "epoch":
		return time.Unix(0, 0), true
	case "today":
		return day, true
	case "yesterday":
		return day.AddDate(0, 0, -1), true
	case "tomorrow":
		return day.AddDate(0, 0, 1), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t, true
		}
	}
	return t, false
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
