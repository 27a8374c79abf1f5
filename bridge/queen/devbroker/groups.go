package devbroker

import (
	"net/http"
	"time"
)

// handleDeleteGroup deletes a group on every queue, or on one; its next pop is
// a first contact again. With deleteMetadata=false its subscription stays, and
// the group begins anew where that says.
func (b *Broker) handleDeleteGroup(w http.ResponseWriter, r *http.Request, p params) {
	query := queryReader{values: r.URL.Query()}
	whole := !query.values.Has("deleteMetadata") || query.boolean("deleteMetadata")
	if query.err != nil {
		badQuery(w, query.err)
		return
	}
	deleted := int64(0)
	err := b.update(func() {
		for _, q := range b.sortedQueues() {
			g := q.group(p[0])
			if g == nil || len(p) > 1 && q.name != p[1] {
				continue
			}
			deleted += int64(len(g.lanes()))
			if whole || !g.subscribed() {
				b.deleteGroup(g)
			} else {
				b.beginAnew(g)
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.str("consumerGroup", p[0]).num("deletedPartitions", deleted).flag("metadataDeleted", whole)
	if len(p) > 1 {
		o.str("queueName", p[1])
	}
	answer(w, http.StatusOK, o.flag("success", true).bytes())
}

// beginAnew puts a group where its subscription says it begins.
func (b *Broker) beginAnew(g *group) {
	now := b.now()
	for _, p := range g.queue.order {
		c := p.cursor(g)
		if c.lease != "" {
			b.dropLease(c)
		}
		c.next, c.retries, c.attempts = 0, 0, 0
		if !g.all || g.since > 0 {
			c.next = b.firstSince(p, g.since)
		}
		b.noteCursor(c)
		b.release(c, now)
	}
}

// handleSubscription is POST /api/v1/consumer-groups/:group/subscription. A
// new time moves nothing there is; it says where partitions begin that come
// later (measured 1.3.0).
func (b *Broker) handleSubscription(w http.ResponseWriter, r *http.Request, p params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	text, err := parseSubscription(body.bytes)
	body.free()
	since, known := parseTime(text, time.Now())
	switch {
	case err != nil:
		badBody(w, err)
		return
	case text == "":
		failure(w, http.StatusBadRequest, "subscriptionTimestamp is required")
		return
	case !known:
		failure(w, http.StatusInternalServerError, "subscription failed: db error")
		return
	}
	rows := int64(0)
	err = b.update(func() {
		for _, q := range b.sortedQueues() {
			if g := q.group(p[0]); g != nil && g.subscribed() {
				b.subscribeFrom(g, microsOf(since))
				rows++
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.flag("success", true).num("rowsUpdated", rows).str("newTimestamp", text)
	answer(w, http.StatusOK, o.str("consumerGroup", p[0]).bytes())
}

func parseSubscription(body []byte) (text string, err error) {
	s, err := scan(body)
	if err != nil {
		return "", err
	}
	err = s.object(func(key []byte) (err error) {
		if string(key) == "subscriptionTimestamp" {
			text, err = s.optional()
		} else {
			_, err = s.raw()
		}
		return err
	})
	return text, err
}

func (b *Broker) subscribeFrom(g *group, since micros) {
	for _, p := range g.queue.order {
		if c := p.cursor(g); !c.known {
			b.noteCursor(c) // it stays where it is
		}
	}
	g.since = since
	b.noteGroup(g)
}

func (b *Broker) deleteGroup(g *group) {
	q := g.queue
	for i, other := range q.groups {
		if other == g {
			q.groups = append(q.groups[:i:i], q.groups[i+1:]...)
			break
		}
	}
	for _, p := range q.order {
		for i, c := range p.cursors {
			if c.group == g {
				b.forgetCursor(c)
				p.cursors = append(p.cursors[:i:i], p.cursors[i+1:]...)
				break
			}
		}
	}
	g.gone = true
	b.wakeGroup(g)
	b.noteGroupGone(g)
}

// seekTarget is where a seek moves a group.
type seekTarget struct {
	toEnd bool
	at    micros
	given bool
	wrong bool
}

func parseSeek(body []byte) (t seekTarget, err error) {
	s, err := scan(body)
	if err != nil {
		return t, err
	}
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "toEnd":
			t.toEnd, err = flagOrNull(s)
			t.given = t.given || t.toEnd
		case "timestamp":
			var text string
			if text, err = s.optional(); text == "" {
				return err
			}
			at, ok := parseTime(text, time.Now())
			t.at, t.given, t.wrong = microsOf(at), true, !ok
		default:
			_, err = s.raw()
		}
		return err
	})
	return t, err
}

// handleSeek is POST …/consumer-groups/:group/queues/:queue[/partitions/:name]/seek.
func (b *Broker) handleSeek(w http.ResponseWriter, r *http.Request, p params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	target, err := parseSeek(body.bytes)
	body.free()
	switch {
	case err != nil:
		badBody(w, err)
		return
	case target.wrong:
		failure(w, http.StatusInternalServerError, "seek failed: db error")
		return
	case !target.given:
		failure(w, http.StatusBadRequest, "Must specify toEnd=true or a timestamp")
		return
	}
	var moved int64
	err = b.update(func() {
		if q := b.st.queues[p[1]]; q != nil {
			moved = b.seek(q, p, target)
		}
	})
	switch {
	case err != nil:
		unavailable(w, err)
	case moved == 0 && len(p) > 2:
		answer(w, http.StatusNotFound, []byte(`{"error":"Partition not found","success":false}`))
	case moved == 0:
		var o jsonObject
		o.str("error", "Queue not found or has no partitions").flag("success", false).str("queueName", p[1])
		answer(w, http.StatusNotFound, o.str("consumerGroup", p[0]).num("partitionsUpdated", 0).bytes())
	default:
		answer(w, http.StatusOK, seekJSON(p, target, moved))
	}
}

// seek moves a group's cursors. It takes the leases and resets the retry
// counters (queen-contract.md §7.5).
func (b *Broker) seek(q *queue, p params, target seekTarget) (moved int64) {
	if len(q.order) == 0 || len(p) > 2 && q.parts[p[2]] == nil {
		return 0
	}
	g := q.group(p[0])
	if g == nil {
		g = b.addGroup(q, p[0])
		b.noteGroup(g)
	}
	now := b.now()
	for _, part := range q.order {
		if len(p) > 2 && part.name != p[2] {
			continue
		}
		c := part.cursor(g)
		next := part.next
		if !target.toEnd {
			next = b.firstSince(part, target.at)
		}
		if c.lease != "" {
			b.dropLease(c)
		}
		c.next, c.retries, c.attempts = next, 0, 0
		b.noteCursor(c)
		b.release(c, now)
		moved++
	}
	return moved
}

func seekJSON(p params, target seekTarget, moved int64) []byte {
	var o jsonObject
	o.flag("success", true)
	if len(p) > 2 {
		o.flag("updated", true)
	}
	o.str("queueName", p[1]).flag("seekToEnd", target.toEnd).str("consumerGroup", p[0])
	if len(p) > 2 {
		o.str("partitionName", p[2])
	}
	if target.toEnd {
		o.raw("targetTimestamp", "null")
	} else {
		o.str("targetTimestamp", target.at.milli())
	}
	if len(p) > 2 {
		return o.bytes()
	}
	return o.num("partitionsUpdated", moved).bytes()
}
