package devbroker

import (
	"net/http"
	"time"
)

// groupJSON is one group on one queue as the routes show it.
func (b *Broker) groupJSON(g *group) []byte {
	var lag, lagging, known int64
	var oldest micros
	now := b.now()
	for _, p := range g.queue.order {
		c := p.cursor(g)
		if c.known {
			known++
		}
		n := count(p.next - c.position())
		if n == 0 {
			continue
		}
		lag += n
		lagging++
		if age := now - p.ids.stored(c.position()); age > oldest {
			oldest = age
		}
	}
	state, mode := "Stable", "new"
	if oldest > micros(time.Hour/time.Microsecond) {
		state = "Lagging"
	}
	if g.all {
		mode = "all"
	}
	var o jsonObject
	o.str("name", g.name).str("state", state).raw("topics", jsonStrings([]string{g.queue.name}))
	o.num("members", known).str("storage", "segments").num("totalLag", lag).str("queueName", g.queue.name)
	o.flag("conflation", false).num("maxTimeLag", int64(oldest)/1e6).num("partitionCursors", known)
	o.str("subscriptionMode", mode).num("partitionsWithLag", lagging)
	o.str("subscriptionCreatedAt", g.created.zoned())
	return o.str("subscriptionTimestamp", g.since.zoned()).bytes()
}

// handleGroups is GET /api/v1/consumer-groups, and …/lagging through
// handleGroup.
func (b *Broker) handleGroups(w http.ResponseWriter, _ *http.Request, _ params) {
	b.listGroups(w, func(*group) bool { return true })
}

func (b *Broker) listGroups(w http.ResponseWriter, want func(*group) bool) {
	var rows [][]byte
	err := b.view(func() {
		for _, q := range b.sortedQueues() {
			for _, g := range q.groups {
				if want(g) {
					rows = append(rows, b.groupJSON(g))
				}
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, []byte(jsonList(rows)))
}

// handleGroup is GET /api/v1/consumer-groups/:group: an object by queue.
func (b *Broker) handleGroup(w http.ResponseWriter, r *http.Request, p params) {
	if p[0] == "lagging" {
		b.handleLagging(w, r)
		return
	}
	var o jsonObject
	err := b.view(func() {
		for _, q := range b.sortedQueues() {
			if g := q.group(p[0]); g != nil {
				o.member(q.name, b.groupJSON(g))
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, o.bytes())
}

// handleLagging lists the groups that are behind by a time, one hour unless
// minLagSeconds says otherwise.
func (b *Broker) handleLagging(w http.ResponseWriter, r *http.Request) {
	q := queryReader{values: r.URL.Query()}
	behind := micros(max(q.number("minLagSeconds", 3600), 0)) * 1e6
	if q.err != nil {
		badQuery(w, q.err)
		return
	}
	b.listGroups(w, func(g *group) bool {
		now := b.now()
		for _, p := range g.queue.order {
			if c := p.cursor(g); c.position() < p.next && now-p.ids.stored(c.position()) >= behind {
				return true
			}
		}
		return false
	})
}

// handleDeleteGroup deletes a group on every queue, or on one; its next pop is
// a first contact again.
func (b *Broker) handleDeleteGroup(w http.ResponseWriter, _ *http.Request, p params) {
	deleted := int64(0)
	err := b.update(func() {
		for _, q := range b.sortedQueues() {
			if len(p) > 1 && q.name != p[1] {
				continue
			}
			if g := q.group(p[0]); g != nil {
				b.deleteGroup(g)
				deleted++
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.str("consumerGroup", p[0])
	if len(p) > 1 {
		o.str("queueName", p[1])
	}
	answer(w, http.StatusOK, o.num("deleted", deleted).flag("success", true).bytes())
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
		failure(w, http.StatusBadRequest, "toEnd or timestamp is required")
		return
	}
	moved, missing := int64(0), true
	err = b.update(func() {
		if q := b.st.queues[p[1]]; q != nil {
			missing = false
			moved = b.seek(q, p, target)
		}
	})
	switch {
	case err != nil:
		unavailable(w, err)
	case missing:
		failure(w, http.StatusNotFound, "Queue not found")
	default:
		answer(w, http.StatusOK, seekJSON(p, target, moved))
	}
}

// seek moves a group's cursors. It takes the leases and resets the retry
// counters (queen-contract.md §7.5).
func (b *Broker) seek(q *queue, p params, target seekTarget) (moved int64) {
	g := q.group(p[0])
	if g == nil {
		g = b.contact(q, &popRequest{scope: scope{group: p[0]}, mode: "all", arrived: b.now()})
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
	o.flag("success", true).str("queueName", p[1]).flag("seekToEnd", target.toEnd).str("consumerGroup", p[0])
	if target.toEnd {
		o.raw("targetTimestamp", "null")
	} else {
		o.str("targetTimestamp", target.at.milli())
	}
	return o.num("partitionsUpdated", moved).bytes()
}
