package devbroker

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// tally counts the messages of a partition the way 1.3.0 shows them: pending
// is what some group has not consumed, processing the leased part of that,
// completed the rest but for the dead letters.
type tally struct{ total, pending, processing, completed, dead int64 }

func (t *tally) add(o tally) {
	t.total += o.total
	t.pending += o.pending
	t.processing += o.processing
	t.completed += o.completed
	t.dead += o.dead
}

// waiting is what is pending and in nobody's hands.
func (t tally) waiting() int64 { return t.pending - t.processing }

func (t tally) json() string {
	var o jsonObject
	o.num("completed", t.completed).num("deadLetter", t.dead).raw("failed", "null")
	return string(o.num("pending", t.pending).num("processing", t.processing).num("total", t.total).bytes())
}

func count(n uint64) int64 { return int64(n) } //nolint:gosec // a number of messages

// survey counts messages for one answer. A real broker shows most of these
// counts as of its last refresh; here they are always of now.
type survey struct {
	now  micros
	dead map[string]int64 // dead letters by partition id
}

func (b *Broker) survey() *survey {
	s := &survey{now: b.now(), dead: map[string]int64{}}
	for _, d := range b.st.dead {
		s.dead[d.partID]++
	}
	return s
}

func (s *survey) of(p *partition) tally {
	t := tally{total: count(p.next - p.first), pending: count(p.next - p.floor()), dead: s.dead[p.id]}
	for _, c := range p.cursors {
		if c.leased(s.now) {
			t.processing += count(c.leaseEnd - c.next)
		}
	}
	t.processing = min(t.processing, t.pending)
	t.completed = max(t.total-t.pending-t.dead, 0)
	return t
}

func (s *survey) ofQueue(q *queue) (t tally) {
	for _, p := range q.order {
		t.add(s.of(p))
	}
	return t
}

// floor is the first message that some named group has not consumed. Queue
// mode decides where there is no other group; with none at all nothing is
// consumed.
func (p *partition) floor() uint64 {
	lowest, named, read := p.next, false, false
	for _, c := range p.cursors {
		if !c.there() {
			continue
		}
		read = true
		switch {
		case c.group.name != queueMode && !named:
			lowest, named = c.position(), true
		case c.group.name != queueMode:
			lowest = min(lowest, c.position())
		case !named:
			lowest = c.position()
		}
	}
	if !read {
		return p.first
	}
	return lowest
}

// handleNamespaces and handleTasks list what queues are filed under.
func (b *Broker) handleNamespaces(w http.ResponseWriter, _ *http.Request, _ params) {
	b.listScopes(w, "namespaces", "namespace", func(q *queue) string { return q.namespace })
}

func (b *Broker) handleTasks(w http.ResponseWriter, _ *http.Request, _ params) {
	b.listScopes(w, "tasks", "task", func(q *queue) string { return q.task })
}

// scopeCount is what is filed under one namespace or task.
type scopeCount struct {
	name               string
	queues, partitions int64
	tally
}

func (b *Broker) listScopes(w http.ResponseWriter, list, name string, of func(*queue) string) {
	var scopes []*scopeCount
	if err := b.view(func() { scopes = b.scopes(of) }); err != nil {
		unavailable(w, err)
		return
	}
	rows := make([][]byte, len(scopes))
	for i, s := range scopes {
		var o, messages jsonObject
		messages.num("total", s.total).num("pending", s.pending)
		o.num("queues", s.queues).raw("messages", string(messages.bytes())).str(name, s.name)
		rows[i] = o.num("partitions", s.partitions).bytes()
	}
	answer(w, http.StatusOK, new(jsonObject).raw(list, jsonList(rows)).bytes())
}

// scopes counts by namespace or task, in order; queues without one are left
// out.
func (b *Broker) scopes(of func(*queue) string) []*scopeCount {
	s := b.survey()
	found := map[string]*scopeCount{}
	var out []*scopeCount
	for _, q := range b.st.queues {
		name := of(q)
		if name == "" {
			continue
		}
		c := found[name]
		if c == nil {
			c = &scopeCount{name: name}
			found[name], out = c, append(out, c)
		}
		c.queues++
		c.partitions += int64(len(q.order))
		c.add(s.ofQueue(q))
	}
	slices.SortFunc(out, func(x, y *scopeCount) int { return cmp.Compare(x.name, y.name) })
	return out
}

// inScope says whether a filter, where there is one, lets a queue through.
func (q *queue) inScope(namespace, task string) bool {
	return (namespace == "" || q.namespace == namespace) && (task == "" || q.task == task)
}

// newestFirst lists the queues the way the status routes do.
func (b *Broker) newestFirst() []*queue {
	out := b.sortedQueues()
	slices.SortStableFunc(out, func(x, y *queue) int {
		return cmp.Or(cmp.Compare(y.created, x.created), strings.Compare(x.name, y.name))
	})
	return out
}
