package dispatch

import (
	"errors"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// start begins the calls.
func (p *part) start() {
	if p.waiting == 0 {
		p.step()
		return
	}
	p.r.d.limiter.expect(p.r.claim, p.waiting)
	p.r.spawn(p.prepare)
}

// prepare makes the items ready for their calls.
func (p *part) prepare() {
	for _, it := range p.items {
		switch {
		case !it.arriving:
		case claimed(&it.d) > 0: // to be read from Queen: nobody waits for it
			p.r.spawn(func() { p.makeReady(it) })
		default:
			p.makeReady(it)
		}
	}
}

// makeReady lets one item be called, unless it needs no call.
func (p *part) makeReady(it *item) {
	event, ok := p.judged(it)
	if !ok {
		p.r.d.limiter.expect(p.r.claim, -1)
		return
	}
	p.r.calls.add(ready{p, it, event})
}

// judged is judge; a panic of our own ends the item.
func (p *part) judged(it *item) (event *bridge.Event, ok bool) {
	defer p.rescue(it)
	return p.judge(it)
}

// call takes one item from waiting to an outcome.
func (p *part) call(it *item, event *bridge.Event) {
	defer p.rescue(it)
	resp, by, err := p.callInSlot(it, event)
	switch {
	case errors.Is(err, errStale):
		p.r.d.limiter.expect(p.r.claim, 1)
		p.r.spawn(func() { p.callAgain(it, event) })
		return
	case err != nil:
		p.giveUp(it, err)
		return
	}
	out := p.r.addReply(it, event, &resp, p.r.decideOne(it, &resp, by))
	wasDetached := p.ended(it, out)
	p.r.record(attempted{it: it, resp: &resp, out: out, detached: wasDetached, batch: 1})
	if wasDetached && out.Kind == bridge.Delivered {
		p.r.spawn(func() { p.detachEnded(it, out) })
	}
}

// callAgain lets an item be called once its lease is renewed.
func (p *part) callAgain(it *item, event *bridge.Event) {
	defer p.rescue(it)
	if err := p.lease.fresh(); err != nil {
		p.r.d.limiter.expect(p.r.claim, -1)
		p.giveUp(it, err)
		return
	}
	p.r.calls.add(ready{p, it, event})
}

// rescue ends an item after a panic of our own.
func (p *part) rescue(it *item) {
	if v := recover(); v != nil {
		p.r.log.Error("panic while attempting", slog.Any(keyError, v), stack())
		p.ended(it, panicked(v))
	}
}

// judge reads the event of an item, asks the filter, and transforms it; not
// ok: it is not to be called, and its outcome is known.
func (p *part) judge(it *item) (event *bridge.Event, ok bool) {
	if !p.readBack(it) {
		return nil, false
	}
	read, err := it.d.Event()
	if err != nil {
		p.ended(it, undecodable(err))
		return nil, false
	}
	switch wanted, err := p.r.wanted(it, &read); {
	case err != nil:
		p.ended(it, unfilterable(err))
		return nil, false
	case !wanted:
		p.skip(it)
		return nil, false
	}
	if p.r.overdue(it.d) {
		p.giveUp(it, errHeld)
		return nil, false
	}
	if event, err = p.r.transformed(p.r.d.settling, &read); err != nil {
		p.ended(it, untransformable(err))
		return nil, false
	}
	return event, true
}

// callInSlot waits for a slot and makes the call; an error says that no call
// was made.
func (p *part) callInSlot(it *item, event *bridge.Event) (resp bridge.Response, by asked, err error) {
	r := p.r
	permit, err := r.d.limiter.acquire(p.lease.ctx, r.claim, 1)
	if err != nil {
		return resp, by, err
	}
	defer permit.release()
	if err := p.begin(it, time.Now()); err != nil {
		return resp, by, err
	}
	req, by := r.request(it, event)
	return r.attempt(r.d.calling, &permit, req, it.deadline), by, nil
}

// begin says that an item's call begins now, unless too little is left of its
// lease.
func (p *part) begin(it *item, now time.Time) error {
	switch {
	case p.lease.left() <= 0:
		return errLeaseLost
	case p.lease.ageing():
		return errStale
	}
	p.mu.Lock()
	it.state, it.called, it.since = running, true, now
	it.deadline = now.Add(p.r.target.timeout())
	p.waiting--
	p.running++
	if p.begun.IsZero() {
		p.begun = now
	}
	p.mu.Unlock()
	p.step()
	return nil
}

// giveUp says that an item is not called; it is no failure of the event. One
// that a held target has kept until max_age ends all the same.
func (p *part) giveUp(it *item, reason error) {
	now := time.Now()
	p.mu.Lock()
	it.state, it.reason, it.since = unstarted, reason, now
	if errors.Is(reason, errHeld) && p.r.policy.Expired(it.d, now) {
		it.state, it.out = decided, expired(it.d)
	}
	p.waiting--
	p.mu.Unlock()
	p.step()
}

// ended takes the outcome of an item; detached says that its settle did not
// wait for it.
func (p *part) ended(it *item, out bridge.Outcome) (wasDetached bool) {
	p.mu.Lock()
	switch it.state {
	case detached:
		p.mu.Unlock()
		return true
	case running:
		p.running--
	case waiting:
		p.waiting--
	default: // a panic after the outcome
		p.mu.Unlock()
		return false
	}
	it.state, it.out, it.since = decided, out, time.Now()
	p.mu.Unlock()
	p.step()
	return false
}
