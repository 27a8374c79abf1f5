package dispatch

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// pausesAt says that an outcome pauses the route instead of ending the event
// (on_exhausted: pause): its policy allows no further attempt. What is hopeless
// for another reason is a dead letter on every route.
func (r *route) pausesAt(out bridge.Outcome) bool {
	return r.cfg.OnExhausted == bridge.OnExhaustedPause && out.Kind == bridge.Dead &&
		(out.Failure.Class == bridge.FailureExhausted || out.Failure.Class == bridge.FailureExpired)
}

// pauseAt pauses the route before the event is settled: were it the other way
// round, the event could be popped and called in between. A death in between
// costs one call.
func (r *route) pauseAt(it *item, out bridge.Outcome) {
	r.pauseItself(fmt.Sprintf("on_exhausted: event %s is %s after %d attempts: %s",
		it.d.Origin.TransactionID, out.Failure.Class, it.ended(time.Now()).Attempt, out.Failure.Error))
}

// addAgain begins a delivery anew, as a redrive does: it waits in the retry
// queue, no attempt made, until the route is resumed.
func (r *route) addAgain(e *entry, d bridge.Delivery, nonce string) {
	next := d
	next.Hop, next.Attempt, next.FirstFailed = d.Hop+1, 0, time.Time{}
	e.was, e.d = &d, &next
	payload, ok := e.travel(&next, r.d.room)
	if !ok {
		r.leaveBehind(e, d, "it is too large to begin anew", nonce)
		return
	}
	e.push = &queen.Item{
		Queue: r.retryQueue, Partition: bridge.RetryLane(d.Lineage),
		TransactionID: bridge.SettleTxn(d.Lineage, next.Hop, nonce), Payload: payload,
	}
}

// standStill pauses the route with the exhausted event in front of its
// partition, so that nothing overtakes it: its count is set back instead.
func (o *ordered) standStill(it *item, out bridge.Outcome) bool {
	o.r.pauseAt(it, out)
	if o.commit(nil, &count{MessageID: it.msg.ID, By: rand.Text()}) {
		o.giveBack()
	}
	return false
}
