package dispatch

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Bounds of one settle: Queen takes 256 timers of 1 MiB and 64 kv operations
// in one transaction and 64 MiB in one request (queen-contract.md §8.5,
// measured 1.3.0).
const (
	maxBatch      = 256 // messages of one pop: one partition may fill it
	maxTimers     = 256
	maxKV         = 64
	maxRiderBytes = 32 << 20
	maxTimerBytes = 1 << 20
	maxAcks       = 4096
)

// verdict is what became of a settle.
type verdict int8

const (
	committed verdict = iota
	refused           // the lease is lost: the messages come again, or somebody has them
	forgotten         // the broker knows an id no longer; nothing was committed
	abandoned         // the dispatcher stopped without an answer
)

// result is the answer to one settlement. kv is the answer to its kv
// operation; nil where the commit is known but its answer is not.
type result struct {
	verdict verdict
	arrived bool // refused when it was sent again: most likely it had been committed
	kv      *queen.KVResult
}

// settlement is what one partition settles in one go.
type settlement struct {
	r       *route
	lease   *lease
	entries []entry
	kv      *queen.KVOp
	// whole says that it acks all that is leased of the partition: the lease
	// ends with it, and Queen refuses a repeat.
	whole  bool
	bytes  int  // of riders
	unsure bool // an earlier send of its acks got no answer
	done   func(result)
	told   bool
}

// entry is one message of a settlement: its ack and its riders, if any.
type entry struct {
	ack       queen.Ack
	messageID string
	timer     *queen.Timer // of the retry
	push      *queen.Item  // the dead letter, or the delivery begun anew
	reply     *queen.Item
	claim     *queen.Item // the payload, stored before the settle
	// was is the delivery that the riders continue or end; nil without one. d
	// is what became of it: set with timer or push.
	was, d    *bridge.Delivery
	blamed    bool // the rider is the dead letter of what Queen refused
	filtered  bool // acked because the route's filter does not want it
	delivered bool // the function took it
}

func (e *entry) size() (n int) {
	if e.timer != nil {
		n += len(e.timer.Payload)
	}
	if e.push != nil {
		n += len(e.push.Payload)
	}
	if e.reply != nil {
		n += len(e.reply.Payload)
	}
	return n
}

// delay is when what an entry put into the retry queue comes.
func (e *entry) delay() time.Duration {
	if e.timer == nil {
		return 0
	}
	return e.timer.Delay
}

func (e *entry) rides() bool { return e.timer != nil || e.push != nil || e.reply != nil }

// riders says that more than acks is to be done.
func (s *settlement) riders() bool {
	if s.kv != nil {
		return true
	}
	for i := range s.entries {
		if s.entries[i].rides() {
			return true
		}
	}
	return false
}

func (s *settlement) timers() (n int) {
	for i := range s.entries {
		if s.entries[i].timer != nil {
			n++
		}
	}
	return n
}

// partitionID is "" for a settlement that acks nothing.
func (s *settlement) partitionID() string {
	if len(s.entries) == 0 {
		return ""
	}
	return s.entries[0].ack.PartitionID
}

// settle plans the settle of a part and sends it on its way.
func (p *part) settle(now time.Time) {
	for _, it := range p.items {
		if it.state == decided && p.r.pausesAt(it.out) {
			p.r.pauseAt(it, it.out)
		}
	}
	s := p.plan(now, rand.Text())
	s.done = p.close
	p.r.d.submit(s)
}

// repeats says that an id stands twice in the batch (dedup off, or its window
// over): a transaction would ack only the first, a plain ack of the whole
// batch acks both (measured 1.3.0).
func (s *settlement) repeats() bool {
	if len(s.entries) < 2 {
		return false
	}
	seen := make(map[string]bool, len(s.entries))
	for i := range s.entries {
		id := s.entries[i].ack.TransactionID
		if seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

// plan is the settle of a part: every message acked in order, a timer for each
// retry, a push for each dead letter. It is pure. The nonce makes the ids of
// this settle its own: `duplicate` proves that it committed.
func (p *part) plan(now time.Time, nonce string) *settlement {
	s := &settlement{r: p.r, lease: p.lease, whole: true, entries: make([]entry, len(p.items))}
	for i, it := range p.items {
		e := &s.entries[i]
		e.ack, e.messageID, e.filtered, e.delivered = completed(it.msg, p.lease), it.msg.ID, it.filtered, it.delivered()
		p.r.addRider(e, it, now, nonce)
		s.bytes += e.size()
	}
	s.fit()
	return s
}

func completed(m *queen.Message, l *lease) queen.Ack {
	return queen.Ack{TransactionID: m.TransactionID, PartitionID: m.PartitionID, Lease: l.Lease, Status: queen.AckCompleted}
}

// addRider adds what continues an item's delivery.
func (r *route) addRider(e *entry, it *item, now time.Time, nonce string) {
	switch it.state {
	case ackOnly:
		return
	case unstarted:
		r.addTimer(e, it.d, r.unstartedDelay(it, now), nonce)
		return
	case detached:
		r.addTimer(e, failedOnce(it.d, now, detachFailure), it.out.Delay, nonce)
		return
	}
	delay := max(0, it.out.Delay-now.Sub(it.since))
	if it.reply != nil {
		e.carryReply(it)
	}
	switch it.out.Kind {
	case bridge.Retry:
		r.addTimer(e, failedOnce(it.d, now, it.out.Failure), delay, nonce)
	case bridge.Hold:
		r.addTimer(e, held(it.d, now, it.out.Failure), delay, nonce)
	case bridge.Dead:
		if r.pausesAt(it.out) {
			r.addAgain(e, it.ended(now), nonce)
			return
		}
		r.addDead(e, it.ended(now), it.out, nonce)
	}
}

// carryReply adds the reply to what is settled with its event.
func (e *entry) carryReply(it *item) {
	was := it.d
	was.Attempt++
	e.was, e.reply = &was, it.reply
}

// ended is a delivery that comes to its end now.
func (it *item) ended(now time.Time) bridge.Delivery {
	switch {
	case it.called:
		return failedOnce(it.d, now, it.out.Failure)
	case it.d.FirstFailed.IsZero():
		return held(it.d, now, it.out.Failure)
	}
	d := it.d
	if d.LastFailed.IsZero() { // a count has no more than the first
		d.LastFailed = d.FirstFailed
	}
	return d
}

// unstartedDelay: an event nobody called waits as long as its target is held,
// else it comes again at once.
func (r *route) unstartedDelay(it *item, now time.Time) time.Duration {
	if errors.Is(it.reason, errCrowded) {
		return jitter(2 * time.Second)
	}
	if !errors.Is(it.reason, errHeld) {
		return 0
	}
	return r.d.limiter.held(r.target.share, now, time.Minute)
}

// failedOnce counts a call of a delivery.
func failedOnce(d bridge.Delivery, now time.Time, f bridge.Failure) bridge.Delivery {
	d = held(d, now, f)
	d.Attempt++
	return d
}

// held notes a failure that was not the event's: no call is counted.
func held(d bridge.Delivery, now time.Time, f bridge.Failure) bridge.Delivery {
	if d.FirstFailed.IsZero() {
		d.FirstFailed = now
	}
	d.LastFailed, d.Last = now, f
	return d
}

// addTimer lets a delivery come again after delay. A claim stands for a payload
// too large for a timer.
func (r *route) addTimer(e *entry, d bridge.Delivery, delay time.Duration, nonce string) {
	next := d
	next.Hop++
	e.was, e.d = &d, &next
	var payload []byte
	if len(d.Payload) <= r.d.room.inline || d.Claim != nil {
		payload = next.AppendEnvelope(nil)
	}
	if payload == nil || len(payload) > maxTimerBytes {
		if !e.addClaim(&next, r.d.room) {
			r.leaveBehind(e, d, "it is too large to be kept for a retry", nonce)
			return
		}
		payload = next.AppendEnvelope(nil)
	}
	e.timer = &queen.Timer{
		Queue: r.retryQueue, Key: bridge.TimerKey(d.Lineage, next.Hop), Partition: bridge.RetryLane(d.Lineage),
		Delay: delay, TransactionID: bridge.SettleTxn(d.Lineage, next.Hop, nonce), Payload: payload,
	}
}

// tooLarge is the outcome of what Queen cannot take.
func tooLarge(d bridge.Delivery, why string) bridge.Outcome {
	if d.Last.Error != "" {
		why += "; last failure: " + d.Last.Error
	}
	return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{
		Class: bridge.FailureTooLarge, Status: d.Last.Status, Error: why,
	}}
}

// addDead ends a delivery: its envelope, with the reason, goes to the route's
// dead queue.
func (r *route) addDead(e *entry, d bridge.Delivery, out bridge.Outcome, nonce string) {
	was := d
	d.Hop++
	d.Dead = &bridge.DeadReason{
		Route: r.cfg.Name, Class: out.Failure.Class, Attempts: d.Attempt,
		First: d.FirstFailed, Last: d.LastFailed,
		Status: out.Failure.Status, Error: out.Failure.Error, Response: out.Response,
	}
	e.was, e.d, e.timer = &was, &d, nil
	payload, ok := e.travel(&d, r.d.room)
	if !ok {
		r.leaveBehind(e, was, "it is too large for a dead letter", nonce)
		return
	}
	e.push = &queen.Item{
		Queue: bridge.DeadQueue(r.cfg.Name), Partition: bridge.DeadLane(d.Lineage),
		TransactionID: bridge.SettleTxn(d.Lineage, d.Hop, nonce), Payload: payload,
	}
}

// travel is the envelope of a delivery that is pushed: whole, unless that is
// more than a settle takes. False: it cannot be stored again at all.
func (e *entry) travel(d *bridge.Delivery, of room) ([]byte, bool) {
	*d = whole(*d)
	payload := d.AppendEnvelope(nil)
	if len(payload) <= of.riders {
		return payload, true
	}
	if !e.addClaim(d, of) {
		return nil, false
	}
	return d.AppendEnvelope(nil), true
}

// end counts what was done and tells what became of the settlement.
func (s *settlement) end(res result) {
	if res.verdict == committed && !s.told {
		s.count()
	}
	s.tell(res)
}

// tell tells what became of the settlement, once: also after a panic somebody
// waits for it.
func (s *settlement) tell(res result) {
	if s.told {
		return
	}
	s.told = true
	if res.verdict == refused && !res.arrived || res.verdict == abandoned {
		s.r.repeats(s.delivered())
	}
	s.done(res)
}

// delivered is how many of its events the function took.
func (s *settlement) delivered() (n int) {
	for i := range s.entries {
		if s.entries[i].delivered {
			n++
		}
	}
	return n
}

// delivered says that the function took an item.
func (it *item) delivered() bool {
	return it.called && it.state != ackOnly && it.out.Kind == bridge.Delivered
}

// repeats counts events that were delivered and come again, as far as is known.
func (r *route) repeats(n int) {
	if n > 0 {
		r.m.repeated.WithLabelValues(r.cfg.Name).Add(float64(n))
	}
}

// count counts what a committed settlement did.
func (s *settlement) count() {
	for i := range s.entries {
		s.r.memo.forget(s.entries[i].messageID)
		s.tally(&s.entries[i])
	}
}

func (s *settlement) tally(e *entry) {
	if e.reply != nil {
		s.r.m.replies.WithLabelValues(s.r.cfg.Name).Inc()
	}
	switch {
	case e.filtered:
		s.r.m.filtered.Inc()
	case e.timer != nil, e.push != nil && e.d.Dead == nil:
		s.r.retries.seldom.expect(time.Now().Add(e.delay()))
		s.r.m.retries.WithLabelValues(s.r.cfg.Name).Inc()
	case e.push != nil:
		s.r.dead.seldom.expect(time.Now())
		s.r.buried(e.d)
	}
}

// buried records a committed dead letter.
func (r *route) buried(d *bridge.Delivery) {
	r.m.dead.WithLabelValues(r.cfg.Name, string(d.Dead.Class)).Inc()
	r.rememberDead(d)
	r.traceDead(d)
	r.log.Error(msgDead,
		slog.String(keyDelivery, bridge.DeliveryID(r.cfg.Name, d.Origin)),
		slog.String(keyEvent, d.Origin.TransactionID),
		slog.Int(keyAttempt, d.Attempt),
		slog.String(keyClass, string(d.Dead.Class)),
		slog.Int(keyStatus, d.Dead.Status),
		slog.String(keyError, d.Dead.Error))
}
