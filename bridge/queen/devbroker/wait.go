package devbroker

import "container/list"

// waiter is one parked pop. It stands in one list; a wake takes it out, and it
// puts itself back when it finds nothing.
type waiter struct {
	wake chan struct{} // one slot
	list *list.List
	elem *list.Element
}

func newWaiter() *waiter { return &waiter{wake: make(chan struct{}, 1)} }

func (w *waiter) park(l *list.List) {
	w.list, w.elem = l, l.PushBack(w)
}

// leave takes the waiter out of its list. It reports whether a wake had taken
// it out already: a wake that whoever leaves must pass on.
func (w *waiter) leave() (woken bool) {
	if w.list == nil {
		return true
	}
	w.list.Remove(w.elem)
	w.list, w.elem = nil, nil
	return false
}

// wakeOne wakes the pop that has been parked longest.
func wakeOne(l *list.List) {
	if l == nil || l.Len() == 0 {
		return
	}
	w := l.Front().Value.(*waiter)
	w.leave()
	w.wake <- struct{}{}
}

func wakeAll(l *list.List) {
	for l != nil && l.Len() > 0 {
		wakeOne(l)
	}
}

// parkingPlace returns the list of key, making it.
func parkingPlace[K comparable](places map[K]*list.List, key K) *list.List {
	l := places[key]
	if l == nil {
		l = list.New()
		places[key] = l
	}
	return l
}

// offer says that a partition may have something for a group: it takes its
// turn behind the others, and one parked pop of each kind looks.
func (b *Broker) offer(c *cursor) {
	if c.group.gone {
		return
	}
	if !c.inReady {
		c.inReady = true
		c.group.ready.push(c)
	}
	b.wakeFor(c.group, c.part.name)
}

func (b *Broker) wakeFor(g *group, partition string) {
	wakeOne(g.pinned[partition])
	b.wakeMore(g)
}

// wakeMore wakes a pop of each kind that takes any partition.
func (b *Broker) wakeMore(g *group) {
	wakeOne(&g.waiting)
	q := g.queue
	if len(b.st.discovery) > 0 {
		for _, s := range scopesOf(q, g.name) {
			wakeOne(b.st.discovery[s])
		}
	}
}

// scopesOf lists the discovery scopes that see a queue.
func scopesOf(q *queue, group string) []scope {
	return []scope{{q.namespace, q.task, group}, {q.namespace, "", group}, {"", q.task, group}}
}

// wakeForQueue lets every pop look that was parked before this queue was made,
// or before it moved into its namespace.
func (b *Broker) wakeForQueue(q *queue) {
	wakeAll(b.st.absent[q.name])
	delete(b.st.absent, q.name)
	for s, l := range b.st.discovery {
		if s.matches(q) {
			wakeAll(l)
		}
	}
}

func (s scope) matches(q *queue) bool {
	return (s.namespace == "" || s.namespace == q.namespace) && (s.task == "" || s.task == q.task)
}

// wakeGroup lets every parked pop of a group look again.
func (b *Broker) wakeGroup(g *group) {
	wakeAll(&g.waiting)
	for _, l := range g.pinned {
		wakeAll(l)
	}
	for _, s := range scopesOf(g.queue, g.name) {
		wakeAll(b.st.discovery[s])
	}
}
