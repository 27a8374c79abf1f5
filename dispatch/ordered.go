package dispatch

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

const (
	// carefulFor is how long a route pops single messages after Queen did not
	// know the id of one: a plain ack of a whole leased batch is what 1.x takes
	// even then ("Old events").
	carefulFor = 10 * time.Minute
	// commitEvery bounds what a death makes the function see again.
	commitEvery = time.Second
)

// ordered is the leased batch of one partition whose messages are called one
// after the other (ordering partition).
type ordered struct {
	r     *route
	lease *lease
	items []*item
	done  int // acked: items before it
	at    int // the message in hand
	// arriving is 1 until it waits for its first slot.
	arriving int
	tally    tally
	key      string // of the tally
	last     time.Time

	// With batch.size above 1: the items as they are sent, where they were read
	// already. The culprit of a batch that failed as a whole is one of the items
	// before suspect; uncounted says that the tally counts calls that Queen's
	// does not.
	forms     []*format.Item
	suspect   int
	uncounted bool
}

// planOrdered asks for one partition.
func (r *route) planOrdered(ctx context.Context, reserve bool) (planned, error) {
	n, reserved, err := r.d.limiter.awaitRoom(ctx, r.claim, ask{most: 1, reserve: reserve, probes: probeBatch})
	p := planned{batch: max(orderedBatch, r.cfg.Batch.Size), partitions: 1}
	if reserved {
		p.slots = n
	}
	if time.Now().UnixNano() < r.careful.Load() {
		p.batch = 1
	}
	return p, err
}

// takeOrdered begins on a pop of the source queue: ordering partition.
func (r *route) takeOrdered(ctx context.Context, p queen.Popped) {
	groups := group(p.Messages)
	l := r.newLease(ctx, p.Lease, leasePartition, true)
	l.start(p.Asked, len(groups))
	r.popped(len(groups))
	r.d.limiter.expect(r.claim, len(groups))
	for _, messages := range groups {
		o := &ordered{r: r, lease: l, items: make([]*item, len(messages)), arriving: 1, last: time.Now()}
		o.key = bridge.AttemptKey(r.cfg.Name, messages[0].PartitionID)
		for i := range messages {
			o.items[i] = &item{msg: &messages[i], since: time.Now()}
		}
		r.spawn(o.run)
	}
}

// run works through the batch, and ends early where the lease is lost, the
// dispatcher stops, or the delay of a failed event is served by the lease.
func (o *ordered) run() {
	defer func() {
		if p := recover(); p != nil {
			o.r.log.Error("panic while attempting in order", slog.Any(keyError, p), stack())
		}
		o.lease.done()
		o.r.d.limiter.expect(o.r.claim, -o.arriving)
		o.r.popped(-1)
	}()
	if !o.load() {
		return
	}
	for o.at < len(o.items) {
		if !o.step(o.items[o.at]) {
			return
		}
	}
	o.commit(nil, nil)
}

// load reads the count of the head.
func (o *ordered) load() bool {
	for pause := (backoff{}); ; {
		t, err := o.r.d.counts.read(o.lease.ctx, o.key)
		if err == nil {
			o.r.status.unblock()
			o.tally, o.uncounted = t, false
			return true
		}
		if errors.Is(err, errStopping) {
			o.giveBack()
			return false
		}
		if o.lease.ctx.Err() != nil {
			return false
		}
		if queen.Denied(err) {
			o.r.status.block(err)
		}
		o.r.log.LogAttrs(o.lease.ctx, pause.level(), "attempt count not read, trying again", slog.Any(keyError, err))
		if sleep(o.lease.ctx, pause.next(queen.RetryAfter(err))) != nil {
			return false
		}
	}
}

// step brings the message in hand one attempt further; false ends the batch.
func (o *ordered) step(it *item) bool {
	if o.r.memo.has(it.msg.ID) {
		it.state = ackOnly
		return o.next(it)
	}
	if o.repeats(it) && !o.commit(nil, nil) {
		return false // Queen resolves a repeated id to its first message: it must be behind the cursor
	}
	var unreadable bridge.Outcome
	it.d, _, unreadable = o.r.read(it.msg, o.r.cfg.Queue)
	if o.tally.MessageID == it.msg.ID {
		it.d.Attempt, it.d.FirstFailed, it.retried = o.tally.N, o.tally.FirstFailed, true
	}
	event, err := it.d.Event()
	switch {
	case unreadable.Kind != "":
		return o.bury(it, unreadable)
	case err != nil:
		return o.bury(it, undecodable(err))
	case !it.retried && o.r.d.loops(it.msg): // one that failed has been settled: not it
		return o.bury(it, crashLoop(it.msg))
	case o.r.policy.UsedUp(it.d):
		return o.bury(it, exhausted(it.d))
	case o.r.overdue(it.d):
		return o.expire(it)
	}
	switch wanted, err := o.r.wanted(it, &event); {
	case err != nil:
		return o.bury(it, unfilterable(err))
	case !wanted:
		it.state = ackOnly
		return o.next(it)
	}
	sent, err := o.r.transformed(o.r.d.settling, &event)
	if err != nil {
		return o.bury(it, untransformable(err))
	}
	if o.r.batched() {
		return o.callPrefix(it, sent)
	}
	out, err := o.call(it, sent)
	if err != nil {
		return o.notCalled(err)
	}
	return o.act(it, out)
}

// repeats says that an uncommitted message before it has the same id.
func (o *ordered) repeats(it *item) bool {
	for _, earlier := range o.items[o.done:o.at] {
		if earlier.msg.TransactionID == it.msg.TransactionID {
			return true
		}
	}
	return false
}

// wait waits locally; false where the batch is to be left instead.
func (o *ordered) wait(d time.Duration) bool {
	if sleep(o.lease.ctx, d) == nil {
		return true
	}
	o.leave()
	return false
}

// leave acks what was delivered; the rest comes again when the lease runs out.
func (o *ordered) leave() {
	if !o.lease.isLost() {
		o.commit(nil, nil)
		return
	}
	for _, it := range o.items[o.done:min(o.at+1, len(o.items))] {
		if it.delivered() {
			o.r.repeats(1)
		}
	}
}

// act carries out an outcome.
func (o *ordered) act(it *item, out bridge.Outcome) bool {
	switch out.Kind {
	case bridge.Delivered:
		return o.next(it)
	case bridge.Dead:
		return o.bury(it, out)
	}
	return o.failed(it, out)
}

// next goes on to the message behind it.
func (o *ordered) next(it *item) bool {
	it.out.Kind = bridge.Delivered
	o.at++
	if time.Since(o.last) < commitEvery || o.at == len(o.items) {
		return true
	}
	return o.commit(nil, nil)
}

// bury ends a message as a dead letter and goes on.
func (o *ordered) bury(it *item, out bridge.Outcome) bool {
	if o.r.pausesAt(out) {
		return o.standStill(it, out)
	}
	it.out, it.state = out, decided
	o.at++
	return o.commit(it, nil)
}

// expire ends a delivery that its target could not take until max_age.
func (o *ordered) expire(it *item) bool {
	it.called = false // by the call that is not made now
	return o.bury(it, expired(it.d))
}

// failed counts the failure in Queen, with what was done before it, and then
// lets the partition wait.
func (o *ordered) failed(it *item, out bridge.Outcome) bool {
	now := time.Now()
	d := held(it.d, now, out.Failure)
	if out.Kind == bridge.Retry {
		d.Attempt++
	}
	c := count{MessageID: it.msg.ID, N: d.Attempt, FirstFailed: d.FirstFailed.UTC(), By: rand.Text()}
	if o.uncounted || c.N != o.tally.N || c.MessageID != o.tally.MessageID || !c.FirstFailed.Equal(o.tally.FirstFailed) {
		if !o.commit(nil, &c) {
			return false
		}
	} else if !o.commit(nil, nil) {
		return false
	}
	return o.pause(max(0, out.Delay-time.Since(now)))
}

// pause lets the partition wait: on the local clock while the lease covers the
// delay, else by a lease that lasts as long, which any process may take over.
func (o *ordered) pause(d time.Duration) bool {
	if d <= o.lease.left() {
		return o.wait(d)
	}
	if !o.commit(nil, nil) {
		return false
	}
	for pause := (backoff{}); o.lease.left() > 0; {
		asked := time.Now()
		err := o.lease.lengthen(o.r.d.settling, d)
		if err == nil || errors.Is(err, errLeaseLost) {
			return false
		}
		if sleep(o.lease.ctx, pause.next(queen.RetryAfter(err))) != nil {
			return false
		}
		d = max(time.Second, d-time.Since(asked))
	}
	return false
}

// commit settles what is done and not acked: the prefix, with a dead letter or
// a count. Both are harmless when repeated: the dead letter's id and the
// count's version refuse it.
func (o *ordered) commit(dead *item, c *count) bool {
	if o.done == o.at && c == nil {
		return true
	}
	s := o.plan(dead, c, time.Now())
	answer := make(chan result, 1)
	s.done = func(res result) { answer <- res }
	o.r.d.submit(s)
	res := <-answer
	o.last = time.Now()
	switch res.verdict {
	case committed:
		o.done = o.at
		return c == nil || o.counted(*c, res.kv)
	case forgotten:
		o.r.careful.Store(time.Now().Add(carefulFor).UnixNano())
		o.remember(dead)
	}
	return false
}

// plan is the settlement of what is done and not acked.
func (o *ordered) plan(dead *item, c *count, now time.Time) *settlement {
	s := &settlement{r: o.r, lease: o.lease, whole: o.done == 0 && o.at == len(o.items)}
	s.entries = make([]entry, o.at-o.done)
	for i, it := range o.items[o.done:o.at] {
		e := &s.entries[i]
		e.ack, e.messageID, e.filtered, e.delivered = completed(it.msg, o.lease), it.msg.ID, it.filtered, it.delivered()
		if it.reply != nil {
			e.carryReply(it)
		}
		if it == dead {
			o.r.addDead(e, it.ended(now), it.out, rand.Text())
		}
		s.bytes += e.size()
	}
	if c != nil {
		s.kv = o.tally.put(o.key, *c, countTTL(o.r.policy))
	}
	return s
}

// counted takes over the version of a written count.
func (o *ordered) counted(c count, kv *queen.KVResult) bool {
	if kv == nil { // known to be committed, but not its version
		return o.load()
	}
	o.tally, o.uncounted = tally{count: c, version: kv.Version}, false
	return true
}

// remember keeps this process from calling again what it delivered while
// Queen does not know its id.
func (o *ordered) remember(dead *item) {
	var delivered []entry
	for _, it := range o.items[o.done:o.at] {
		if it != dead {
			delivered = append(delivered, entry{messageID: it.msg.ID})
		}
	}
	o.r.memo.add(delivered)
}

// giveBack settles what is done, replies included, and returns the rest at once.
func (o *ordered) giveBack() {
	if !o.commit(nil, nil) {
		return
	}
	ack := completed(o.items[o.at].msg, o.lease)
	ack.Status = queen.AckRetry
	o.r.returnBatch(ack)
}
