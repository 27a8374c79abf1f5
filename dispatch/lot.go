package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// lots gather the events of a route for calls of several (batch.size above 1,
// ordering none), over all partitions of all its pops. Until its call each
// event keeps its lease; then each gets its own outcome, and its part settles
// as ever.
type lots struct {
	r *route

	mu      sync.Mutex
	open    map[int]*lot  // by how many events they take
	waiting map[*lot]bool // not called yet: the open ones, and those that are full
}

// lot is the events of one call to come. It is called once it is full, or
// batch.window after its first event; until it gets a slot it takes more.
type lot struct {
	most    int
	members []member
	bytes   int
	ready   chan struct{} // closed when it is to be called
}

// member is one event of a lot.
type member struct {
	p    *part
	it   *item
	form *format.Item // as it is sent
}

// together is how many events one call of a delivery with so many attempts
// behind it may have. A failure that no function can be asked about is found
// by calling less and less together: half as many with every attempt, and the
// last attempt alone, so that nothing ends as a dead letter for the fault of
// another.
func (r *route) together(attempts int) int {
	if attempts >= r.policy.MaxAttempts()-1 {
		return 1
	}
	return max(1, r.cfg.Batch.Size>>min(attempts, 30))
}

// batched says that a call may have several events.
func (r *route) batched() bool { return r.cfg.Batch.Size > 1 }

// gather takes the parts of a pop into lots.
func (r *route) gather(l *lease, parts []*part) {
	for _, p := range parts {
		if p.waiting == 0 {
			p.step()
			continue
		}
		for _, it := range p.items {
			switch {
			case it.state != waiting:
			case claimed(&it.d) > 0: // to be read from Queen: nobody waits for it
				r.spawn(func() { p.gather(it); r.lots.whatIsThere() })
			default:
				p.gather(it)
			}
		}
	}
	r.lots.whatIsThere()
	l.whenEnded(func() { r.lots.drop(l) })
}

// gather takes one item into a lot, unless it needs no call.
func (p *part) gather(it *item) {
	defer p.rescue(it)
	event, ok := p.judge(it)
	if !ok {
		return
	}
	m := member{p, it, &format.Item{Event: event, Delivery: &it.d}}
	most := 1
	if p.r.cfg.Ordering != bridge.OrderingPartition { // a redriven event stands alone
		most = p.r.together(it.d.Attempt)
	}
	p.r.lots.add(m, most, p.r.encoder.Size(m.form))
}

// add puts an event into the lot that takes so many.
func (s *lots) add(m member, most, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open[most]
	if l != nil && l.bytes+size > s.r.encoder.Limit() {
		s.fill(l)
		l = nil
	}
	if l == nil {
		l = &lot{most: most, ready: make(chan struct{})}
		s.open[most], s.waiting[l] = l, true
		s.r.spawn(func() { s.r.callLot(l) })
	}
	l.members, l.bytes = append(l.members, m), l.bytes+size
	if len(l.members) >= most || l.bytes >= s.r.encoder.Limit() {
		s.fill(l)
	}
}

// fill lets a lot take nothing more; mu is held.
func (s *lots) fill(l *lot) {
	if s.open[l.most] == l {
		delete(s.open, l.most)
	}
	l.call()
}

// call says that a lot is to be called as soon as there is a slot; mu is held.
func (l *lot) call() {
	select {
	case <-l.ready:
	default:
		close(l.ready)
	}
}

// whatIsThere says, where there is no window, that every lot is to be called.
func (s *lots) whatIsThere() {
	if s.r.cfg.Batch.Window > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.open {
		l.call()
	}
}

// take ends a lot and returns its events.
func (s *lots) take(l *lot) []member {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fill(l)
	delete(s.waiting, l)
	members := l.members
	l.members = nil
	return members
}

// drop takes out what a lease covers that has ended.
func (s *lots) drop(lease *lease) {
	s.mu.Lock()
	var dropped []member
	for l := range s.waiting {
		l.members = slices.DeleteFunc(l.members, func(m member) bool {
			if m.p.lease != lease {
				return false
			}
			dropped = append(dropped, m)
			return true
		})
	}
	s.mu.Unlock()
	for _, m := range dropped {
		m.p.giveUp(m.it, context.Cause(lease.ctx))
	}
}

// callLot calls a lot once it is ready.
func (r *route) callLot(l *lot) {
	var members []member
	defer func() {
		if v := recover(); v != nil {
			r.log.Error("panic while attempting", slog.Any(keyError, v), stack())
			for _, m := range members {
				m.p.ended(m.it, panicked(v))
			}
		}
	}()
	_ = sleepOr(r.life, r.window(), l.ready) // the end of life is the next line's
	permit, err := r.d.limiter.acquire(r.life, r.claim, 0)
	members = r.lots.take(l)
	if err != nil {
		for _, m := range members {
			m.p.giveUp(m.it, err)
		}
		return
	}
	now := time.Now()
	r.resolve(r.callMembers(&permit, slices.DeleteFunc(slices.Clone(members), func(m member) bool {
		err := m.p.begin(m.it, now)
		switch {
		case errors.Is(err, errStale):
			r.spawn(func() { r.lots.again(m, l.most) })
		case err != nil:
			m.p.giveUp(m.it, err)
		}
		return err != nil
	})))
}

// again lets an event be called once its lease is renewed.
func (s *lots) again(m member, most int) {
	defer m.p.rescue(m.it)
	if err := m.p.lease.fresh(); err != nil {
		m.p.giveUp(m.it, err)
		return
	}
	s.add(m, most, s.r.encoder.Size(m.form))
	s.mu.Lock()
	if l := s.open[most]; l != nil { // its window is over
		l.call()
	}
	s.mu.Unlock()
	if m.p.lease.ctx.Err() != nil { // drop may have come before
		s.drop(m.p.lease)
	}
}

// window is how long a lot may wait to be filled. With none it is filled by
// the pop it came with, which ends soon.
func (r *route) window() time.Duration {
	if r.cfg.Batch.Window > 0 {
		return r.cfg.Batch.Window
	}
	return time.Minute
}
