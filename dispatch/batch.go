package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// itemState is where one message of a part stands.
type itemState int8

const (
	waiting   itemState = iota // for a slot, or to be read
	running                    // its call is under way
	decided                    // out says what becomes of it
	unstarted                  // not called, and not to be: out says when again
	detached                   // its call is still under way, its retry is in the settle
	ackOnly                    // nothing is left but its ack
)

// item is one popped message.
type item struct {
	msg      *queen.Message
	d        bridge.Delivery
	state    itemState
	called   bool
	retried  bool // it moved before: a retry, a redrive
	filtered bool // the route's filter does not want it
	arriving bool // popped, and to be made ready for its call
	out      bridge.Outcome
	since    time.Time // when the call began, then when out was decided
	deadline time.Time // of the call
	key      string    // of the retry timer in the settle, of a detached item
	reply    *queen.Item
	reason   error // of unstarted
	repeats  int   // calls that only looked for the culprit of a batch
}

// part is what one pop leased of one partition. With ordering none its items
// are called in parallel and settled together: a settle that ends the leased
// batch releases the lease, so Queen refuses its repeat.
type part struct {
	r     *route
	lease *lease
	queue string // popped from
	items []*item

	mu       sync.Mutex
	claimed  int64 // bytes its payloads take once they are read back
	waiting  int
	running  int
	begun    time.Time // the first call
	settling bool      // no more steps: the settle decides
	closed   bool
	timer    *time.Timer   // looks for slow calls
	answered chan struct{} // closed when the settle is; nil without detached items
}

// group splits a pop's messages by partition, in order. Queen fills a pop
// partition by partition; one that came back to a partition would be copied.
func group(messages []queen.Message) [][]queen.Message {
	parts := make([][]queen.Message, 0, 4)
	at := make(map[string]int, 4)
	for begin := 0; begin < len(messages); {
		id, end := messages[begin].PartitionID, begin+1
		for end < len(messages) && messages[end].PartitionID == id {
			end++
		}
		run := messages[begin:end:end]
		if n, again := at[id]; again {
			parts[n] = append(parts[n], run...)
		} else {
			at[id], parts = len(parts), append(parts, run)
		}
		begin = end
	}
	return parts
}

// take begins on a pop of a queue: ordering none. What is not called when ctx
// ends is given back.
func (r *route) take(ctx context.Context, p queen.Popped, queue string) {
	groups := group(p.Messages)
	l := r.newLease(ctx, p.Lease, leaseNone, queue == r.cfg.Queue)
	parts := make([]*part, len(groups))
	for i, messages := range groups {
		parts[i] = r.newPart(messages, queue, l)
	}
	l.start(p.Asked, len(parts))
	r.popped(len(p.Messages))
	if r.batched() {
		r.spawn(func() { r.gather(l, parts) })
		return
	}
	for _, p := range parts {
		p.start()
	}
	l.whenEnded(func() { r.calls.drop(l) })
}

// newPart reads the messages of one partition and decides what needs no call.
func (r *route) newPart(messages []queen.Message, queue string, l *lease) *part {
	p := &part{r: r, lease: l, queue: queue, items: make([]*item, len(messages))}
	items, now := make([]item, len(messages)), time.Now()
	var seen map[string]bool // lineage/hop of the retries of this part
	for i := range messages {
		it := &items[i]
		it.msg, it.since = &messages[i], now
		p.items[i] = it
		it.d, it.retried, it.out = r.read(it.msg, queue)
		switch {
		case r.memo.has(it.msg.ID):
			it.state = ackOnly
		case it.out.Kind != "":
			it.state = decided
		case r.d.loops(it.msg):
			it.state, it.out = decided, crashLoop(it.msg)
		case it.retried:
			key := bridge.TimerKey(it.d.Lineage, it.d.Hop)
			if seen[key] {
				it.state = ackOnly // a second copy shares the first one's outcome
			}
			if seen == nil {
				seen = make(map[string]bool)
			}
			seen[key] = true
			if it.state == waiting && it.d.Claim == nil && r.policy.UsedUp(it.d) {
				it.state, it.out = decided, exhausted(it.d)
			}
		}
		if it.state == waiting && !p.admit(it) {
			it.state, it.reason = unstarted, errCrowded
		}
		if it.state == waiting {
			p.waiting++
			it.arriving = true
		}
	}
	return p
}

// read makes a message a delivery: a retry envelope continues one, anything
// else begins one. out is set where it cannot be read.
func (r *route) read(m *queen.Message, queue string) (d bridge.Delivery, envelope bool, out bridge.Outcome) {
	origin := bridge.Origin{
		Queue: queue, Partition: m.Partition, PartitionID: m.PartitionID,
		TransactionID: m.TransactionID, MessageID: m.ID, CreatedAt: m.CreatedAt,
	}
	fresh := bridge.NewDelivery(r.cfg.Name, origin, m.Data)
	if m.BadData {
		return fresh, false, undecodable(errors.New("the payload is not JSON"))
	}
	if queue != r.retryQueue {
		return fresh, false, bridge.Outcome{}
	}
	d, ours, err := bridge.DecodeDelivery(m.Data)
	switch {
	case err != nil:
		return fresh, false, undecodable(err)
	case !ours: // pushed here by somebody: an event like any other
		return fresh, false, bridge.Outcome{}
	}
	d.Dead = nil
	return d, true, bridge.Outcome{}
}

// step settles the part once every item is decided or slow.
func (p *part) step() {
	p.mu.Lock()
	now := time.Now()
	if p.settling || !p.ready(now) {
		p.mu.Unlock()
		return
	}
	p.settling = true
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, it := range p.items {
		if it.state == running {
			p.detach(it)
		}
	}
	p.mu.Unlock()
	p.finish(now)
}

// ready says that nothing is left to wait for; mu is held.
func (p *part) ready(now time.Time) bool {
	if p.waiting > 0 {
		return false
	}
	if p.running == 0 {
		return true
	}
	after := p.r.cfg.DetachAfter
	if after <= 0 || p.timer != nil && now.Sub(p.begun) < after {
		return false
	}
	last := p.lastBegun()
	if slow := last.Add(after); now.Before(slow) {
		p.look(slow.Sub(now))
		return false
	}
	return true
}

// lastBegun is when the youngest running call began.
func (p *part) lastBegun() (last time.Time) {
	for _, it := range p.items {
		if it.state == running && it.since.After(last) {
			last = it.since
		}
	}
	return last
}

// look steps again after d; mu is held.
func (p *part) look(d time.Duration) {
	if p.timer == nil {
		p.timer = time.AfterFunc(d, func() { p.r.spawn(p.step) })
		return
	}
	p.timer.Reset(d)
}

// finish ends a part whose items are all decided: it drops it, gives it back,
// or settles it.
func (p *part) finish(now time.Time) {
	defer func() {
		if v := recover(); v != nil {
			p.r.log.Error("panic while settling", slog.Any(keyError, v), stack())
			p.close(result{verdict: refused})
		}
	}()
	switch {
	case p.lease.isLost():
		p.r.m.lost.WithLabelValues(p.r.cfg.Name).Inc()
		p.r.log.Warn("lease lost, outcomes dropped", slog.String(keyQueue, p.queue),
			slog.String(keyPartition, p.items[0].msg.Partition), slog.Int(keyCount, len(p.items)))
		for _, it := range p.items {
			if it.state == decided && it.delivered() {
				p.r.repeats(1)
			}
		}
		p.close(result{})
	case p.untouched():
		p.r.spawn(func() { p.giveBack() })
	default:
		p.settle(now)
	}
}

// untouched says that nothing of the part was started or decided.
func (p *part) untouched() bool {
	for _, it := range p.items {
		if it.state != unstarted || errors.Is(it.reason, errCrowded) {
			return false
		}
	}
	return true
}

// close ends the part's hold on lease and room, once.
func (p *part) close(result) {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return
	}
	for _, it := range p.items {
		// A detached call may run on for long; the messages of a pop share
		// their memory.
		it.msg.Data, it.d.Payload = nil, nil
	}
	if p.answered != nil {
		close(p.answered)
	}
	p.r.d.claimed.Add(-p.claimed)
	p.lease.done()
	p.r.popped(-len(p.items))
}
