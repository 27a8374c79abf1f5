package devbroker

import (
	"strings"
	"time"
)

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
	var next uint64
	switch {
	case g.all: // from the first there is
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
