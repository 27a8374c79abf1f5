package dispatch

import (
	"errors"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// call makes one call of one item. An error says that none was made, or that
// its outcome does not count.
func (o *ordered) call(it *item, event *bridge.Event) (bridge.Outcome, error) {
	var by asked
	resp, err := o.attempt([]*item{it}, func() (req *bridge.Request) {
		req, by = o.r.request(it, event)
		return req
	})
	if err != nil {
		return bridge.Outcome{}, err
	}
	out := o.r.addReply(it, event, &resp, o.r.decideOne(it, &resp, by))
	it.out, it.since = out, time.Now()
	o.r.record(attempted{it: it, resp: &resp, out: out, batch: 1})
	return out, o.kept()
}

// attempt makes one call while the lease surely outlasts its beginning: a stale
// holder would call behind its successor.
func (o *ordered) attempt(items []*item, request func() *bridge.Request) (bridge.Response, error) {
	r := o.r
	arriving := o.arriving
	o.arriving = 0
	permit, err := r.d.limiter.acquire(o.lease.ctx, r.claim, arriving)
	if err != nil {
		return bridge.Response{}, err
	}
	defer permit.release()
	if err := o.lease.ensure(r.d.settling); err != nil {
		return bridge.Response{}, err
	}
	deadline := time.Now().Add(r.target.timeout())
	for _, it := range items {
		it.called, it.deadline = true, deadline
	}
	return r.attempt(o.lease.held, &permit, request(), deadline), nil
}

// kept is errLeaseLost where the lease was lost during a call.
func (o *ordered) kept() error {
	if !o.lease.isLost() {
		return nil
	}
	o.r.m.lost.WithLabelValues(o.r.cfg.Name).Inc()
	return errLeaseLost
}

// notCalled: why no call was made decides whether to try again.
func (o *ordered) notCalled(err error) bool {
	switch {
	case errors.Is(err, errStopping):
		o.giveBack()
		return false
	case errors.Is(err, errHeld) && o.r.policy.Expired(o.items[o.at].d, time.Now()):
		return o.expire(o.items[o.at])
	case errors.Is(err, errHeld):
		return o.pause(o.r.d.limiter.held(o.r.target.share, time.Now(), time.Minute))
	case errors.Is(err, errLeaseLost), o.lease.left() <= 0:
		o.leave()
		o.r.log.Warn("lease lost, the partition is left to its next holder",
			slog.String(keyQueue, o.r.cfg.Queue), slog.String(keyPartition, o.items[o.at].msg.Partition))
		return false
	}
	// Queen did not answer the renewal; the lease still lasts a while.
	return o.wait(jitter(500 * time.Millisecond))
}
