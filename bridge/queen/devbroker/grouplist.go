package devbroker

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// lane is how far a group is in one partition, as the routes show it.
type lane struct {
	cursor   *cursor
	lag      int64
	oldest   micros // when the next message was stored; 0: nothing is left
	behind   int64  // seconds since then
	consumed int64
}

// lanes lists the cursors that 1.3.0 has rows for: those seeded at the group's
// first contact, and those popped since.
func (g *group) lanes() []*cursor {
	var out []*cursor
	for _, p := range g.queue.order {
		if c := p.cursor(g); c.known || p.created <= g.created {
			out = append(out, c)
		}
	}
	return out
}

func (b *Broker) laneOf(c *cursor) lane {
	p := c.part
	l := lane{cursor: c, lag: count(p.next - c.position())}
	if l.lag > 0 {
		l.oldest = p.ids.stored(c.position())
		l.behind = int64((time.Duration(b.now()-l.oldest) * time.Microsecond).Round(time.Second) / time.Second)
	}
	if began := b.beginning(c); c.next > began {
		l.consumed = count(c.next - began)
	}
	return l
}

// beginning is where the subscription of a group has a partition begin.
func (b *Broker) beginning(c *cursor) uint64 {
	if c.group.since == 0 {
		return 0
	}
	return b.firstSince(c.part, c.group.since)
}

// When 1.3.0 calls a group lagging.
const laggingSeconds = 300

// groupJSON is one group on one queue as the list shows it.
func (b *Broker) groupJSON(g *group) []byte {
	var lag, lagging, consumed, behind int64
	cursors := g.lanes()
	for _, c := range cursors {
		l := b.laneOf(c)
		consumed += l.consumed
		behind = max(behind, l.behind)
		if l.lag > 0 {
			lag += l.lag
			lagging++
		}
	}
	state, mode := "Dead", "new" // nobody ever acked
	switch {
	case behind > laggingSeconds:
		state = "Lagging"
	case consumed > 0:
		state = "Stable"
	}
	if g.all {
		mode = "all"
	}
	created, since := g.created.zoned(), g.since.zoned()
	if !g.subscribed() {
		mode, created, since = "", "", ""
	}
	members := int64(len(cursors))
	var o jsonObject
	o.str("name", g.name).str("state", state).raw("topics", jsonStrings([]string{g.queue.name}))
	o.num("members", members).str("storage", "segments").num("totalLag", lag).str("queueName", g.queue.name)
	o.flag("conflation", g.conflates).num("maxTimeLag", behind).num("partitionCursors", members)
	o.strOrNull("subscriptionMode", mode).num("partitionsWithLag", lagging)
	o.strOrNull("subscriptionCreatedAt", created)
	return o.strOrNull("subscriptionTimestamp", since).bytes()
}

// handleGroups is GET /api/v1/consumer-groups.
func (b *Broker) handleGroups(w http.ResponseWriter, _ *http.Request, _ params) {
	var rows [][]byte
	err := b.view(func() {
		for _, q := range b.sortedQueues() {
			for _, g := range q.groups {
				if g.subscribed() || len(g.lanes()) > 0 {
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
// …/lagging comes here too.
func (b *Broker) handleGroup(w http.ResponseWriter, r *http.Request, p params) {
	if p[0] == "lagging" {
		b.handleLagging(w, r)
		return
	}
	var o jsonObject
	err := b.view(func() {
		for _, q := range b.sortedQueues() {
			g := q.group(p[0])
			var rows [][]byte
			if g != nil {
				for _, c := range g.lanes() {
					rows = append(rows, b.laneJSON(b.laneOf(c)))
				}
			}
			if len(rows) == 0 {
				continue
			}
			var one jsonObject
			o.member(q.name, one.flag("conflation", g.conflates).raw("partitions", jsonList(rows)).bytes())
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, o.bytes())
}

func (b *Broker) laneJSON(l lane) []byte {
	c := l.cursor
	live := c.leased(b.now())
	holder := ""
	if live {
		holder = c.lease
	}
	var o jsonObject
	o.strOrNull("workerId", holder).num("offsetLag", l.lag).str("partition", c.part.name).flag("leaseActive", live)
	o.num("totalConsumed", l.consumed).raw("lastConsumedAt", "null")
	return o.num("timeLagSeconds", l.behind).bytes()
}

// handleLagging lists the partitions in which a group is behind by more than a
// time, longest first; one hour unless minLagSeconds says otherwise.
func (b *Broker) handleLagging(w http.ResponseWriter, r *http.Request) {
	query := queryReader{values: r.URL.Query()}
	behind := query.number("minLagSeconds", 3600)
	if query.err != nil {
		badQuery(w, query.err)
		return
	}
	var late []lane
	var rows [][]byte
	err := b.view(func() {
		for _, q := range b.sortedQueues() {
			for _, g := range q.groups {
				for _, c := range g.lanes() {
					if l := b.laneOf(c); l.lag > 0 && l.behind > behind {
						late = append(late, l)
					}
				}
			}
		}
		slices.SortStableFunc(late, func(x, y lane) int { return cmp.Compare(y.behind, x.behind) })
		for _, l := range late {
			rows = append(rows, l.lateJSON())
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, []byte(jsonList(rows)))
}

func (l lane) lateJSON() []byte {
	c := l.cursor
	var o jsonObject
	o.raw("lag_hours", strconv.FormatFloat(float64(l.behind)/3600, 'f', 2, 64)).strOrNull("worker_id", c.lease)
	o.num("offset_lag", l.lag).str("queue_name", c.part.queue.name).str("partition_id", c.part.id)
	o.str("consumer_group", c.group.name).str("partition_name", c.part.name).raw("last_consumed_at", "null")
	return o.num("time_lag_seconds", l.behind).str("oldest_unconsumed_at", l.oldest.milli()).bytes()
}
