package devbroker

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
)

// transaction is one bundle (queen-contract.md §8): all of it or nothing.
type transaction struct {
	ops    []txnOp // flattened: each pushed item counts one
	acks   []ackItem
	pushes []pushItem
	leases []string // requiredLeases: a hint, no guard (measured 1.3.0)
	kv     []kvOp
	timers []timerOp
	given  bool // operations, kv or timers came with it
}

// txnOp is one place in the results: an ack or a pushed item, by its index.
type txnOp struct {
	push  bool
	index int
}

// rollback is why a bundle was refused as a whole.
type rollback struct {
	status       int
	reason, text string
	lost         *kvLost // of kv_precondition
	lostIndex    int
}

func (e *rollback) Error() string { return e.text }

func refused(reason, format string, args ...any) *rollback {
	return &rollback{status: http.StatusOK, reason: reason, text: fmt.Sprintf(format, args...)}
}

// noUnicodeNUL is PostgreSQL's word on a NUL in text.
const noUnicodeNUL = "unsupported Unicode escape sequence"

// tokens counts what a bundle costs: one for each kind of rider, whatever the
// number of operations (measured 1.3.0).
func (t *transaction) tokens() (writes, reads int) {
	writes, reads = kvCosts(t.kv)
	if schedules(t.timers) {
		writes++
	}
	return writes, reads
}

// txnPlan is a bundle that was found good, ready to be carried out.
type txnPlan struct {
	*transaction
	push       *pushPlan
	acks       []*ackPlan
	ackOf      []*ackPlan // by index of the ack
	kvResults  []kvResult
	kvWork     *kvWork
	timerFacts []timerResult
}

// planTransaction tests every guard in the order of 1.x, KV, timers, pushes,
// acks, and changes nothing.
func (b *Broker) planTransaction(p *txnPlan) *rollback {
	if b.raft() {
		return b.planRaft(p)
	}
	if err := b.planRiders(p); err != nil {
		return err
	}
	if err := b.planPushes(p.push); err != nil {
		return err
	}
	return b.planAcks(p)
}

func (b *Broker) planRiders(p *txnPlan) *rollback {
	var lost *kvLost
	if p.kvResults, p.kvWork, lost = b.planKV(p.kv); lost != nil {
		return &rollback{
			status: http.StatusOK, reason: "kv_precondition", text: "kv_precondition_failed",
			lost: lost, lostIndex: len(p.ops) + lost.index,
		}
	}
	if err := timersFlaw(p.timers); err != nil {
		return err.rollback()
	}
	return nil
}

// planPushes gives every pushed item its verdict. An id that its partition
// knows refuses the bundle; one repeated within it is only marked.
func (b *Broker) planPushes(p *pushPlan) *rollback {
	for i := range p.groups {
		g := &p.groups[i]
		switch {
		case len(g.queue) == 0 && b.raft():
			return badRequest("queue is required")
		case len(g.queue) == 0:
			return refused("ack_rejected", "QTXN resolved %d of %d pushes (empty or unknown queue/partition)",
				len(p.items)-len(g.items), len(p.items))
		case g.lost:
			return refused("payload_too_large", "value too long for type character varying(%d)", maxQueueName)
		case bytes.IndexByte(g.queue, 0) >= 0 || bytes.IndexByte(g.partition, 0) >= 0:
			return refused("db_error", "%s", noUnicodeNUL)
		}
		q := b.st.queues[string(g.queue)]
		if q == nil {
			continue
		}
		part := q.parts[string(g.partition)]
		if part == nil {
			continue
		}
		for _, i := range g.items {
			if _, dup := b.duplicateOf(part, p.items[i].txn, p.hashes[i]); dup {
				return refused("duplicate", "QDUP duplicate messages in queue %s partition %s; transaction rolled back",
					quoted(g.queue), quoted(g.partition))
			}
		}
	}
	return nil
}

func quoted[T string | []byte](name T) string { return string(appendString(nil, name)) }

// planAcks decides the acks, cursor by cursor.
func (b *Broker) planAcks(p *txnPlan) *rollback {
	p.ackOf = make([]*ackPlan, len(p.transaction.acks))
	sets := groupAcks(p.transaction.acks, func(a, b *ackItem) bool { return a.part == b.part && a.group == b.group })
	for _, set := range sets {
		plan, err := b.planTxnAcks(p.transaction, set)
		if err != nil {
			return err
		}
		p.acks = append(p.acks, plan)
		for _, i := range set.items {
			p.ackOf[i] = plan
		}
	}
	return nil
}

func (b *Broker) planTxnAcks(t *transaction, set ackSet) (*ackPlan, *rollback) {
	group := t.acks[set.items[0]].group
	if group == "" {
		group = queueMode
	}
	switch {
	case b.isPartitionID(set.part):
	case b.raft():
		return nil, refused("ack_rejected", raftBadID)
	default:
		return nil, refused("db_error", "invalid input syntax for type uuid: %s", quoted(set.part))
	}
	if b.st.parts[strings.ToLower(set.part)] == nil {
		return nil, refused("ack_rejected", "QTXN ack references partition %s not owned by this tenant", set.part)
	}
	reject := func(why string) *rollback {
		return refused("ack_rejected", "QTXN ack failed for partition %s group %s: %s; transaction rolled back",
			set.part, quoted(group), why)
	}
	c := b.cursorOf(set.part, group)
	if c == nil {
		return nil, reject(noConsumer)
	}
	now := b.now()
	for _, lease := range b.fences(t, set, c) {
		if lease != "" && (c.lease != lease || !c.leased(now)) {
			return nil, reject(badLease)
		}
	}
	plan := b.planAck(c, set.items, t.acks, now)
	for _, a := range plan.acks {
		if a.where == unknownID {
			return nil, refused("ack_rejected", "QTXN ack references unknown transactionId; transaction rolled back")
		}
	}
	return plan, nil
}

// fences are the leases that must be held for the acks of one cursor.
func (b *Broker) fences(t *transaction, set ackSet, c *cursor) []string {
	if !b.raft() {
		return []string{fencing(t, set, c)}
	}
	leases := make([]string, len(set.items))
	for n, i := range set.items {
		leases[n] = raftFence(t, &t.acks[i])
	}
	return leases
}

// fencing is the lease that fences the acks of one cursor on 1.x: the first
// op's own, else the present holder's, else the one required lease
// (queen-contract.md §8.1).
func fencing(t *transaction, set ackSet, c *cursor) string {
	switch own := t.acks[set.items[0]].lease; {
	case own != "":
		return own
	case c.lease != "":
		return "" // whoever holds it now
	case len(t.leases) == 1:
		return t.leases[0]
	}
	return ""
}

// commit carries out a plan. Only dead letters can fail now, and they do so in
// silence, after the rest, as on 1.3.0 (measured): the lease stays and the
// message comes again.
func (b *Broker) commit(p *txnPlan) {
	mint := newMinter(b.now())
	mint.seq = 1 // the call id has 0
	p.kvWork.commit()
	p.timerFacts = b.applyTimers(p.timers, &mint)
	b.push(p.push)
	for _, plan := range p.acks {
		if err := b.carryOut(plan); err != nil {
			b.keepHead(plan)
			b.log.Warn("dead-lettering after a transaction failed", "queue", plan.cursor.part.queue.name, "err", err)
		}
	}
}

// keepHead carries out what is left of a plan whose dead letter failed: the
// completed prefix.
func (b *Broker) keepHead(plan *ackPlan) {
	c := plan.cursor
	for _, a := range plan.acks {
		if a.where == inWindow && a.status == ackCompleted && a.offset < plan.decision.head {
			c.next = max(c.next, a.offset+1)
		}
	}
	b.noteCursor(c)
}

// results writes the result rows of a committed bundle.
func (p *txnPlan) results() [][]byte {
	out := make([][]byte, 0, len(p.ops)+len(p.kv)+len(p.timers))
	for index, op := range p.ops {
		if op.push {
			out = append(out, p.pushResult(index, op.index))
		} else {
			out = append(out, p.ackResult(index, op.index))
		}
	}
	for i := range p.kvResults {
		out = append(out, p.kvResults[i].json(len(out), i))
	}
	for i := range p.timerFacts {
		out = append(out, p.timerFacts[i].json(len(out), i))
	}
	return out
}

func (p *txnPlan) ackResult(index, i int) []byte {
	var o jsonObject
	o.flag("dlq", p.ackOf[i].decision.dead).raw("error", "null").num("index", int64(index)).flag("success", true)
	return o.str("transactionId", p.transaction.acks[i].txn).str("type", "ack").bytes()
}

func (p *txnPlan) pushResult(index, i int) []byte {
	var o jsonObject
	v := p.push.verdicts[i]
	if v.status == "duplicate" {
		o.flag("duplicate", true)
	}
	o.num("index", int64(index)).str("messageId", v.id.String()).str("queueName", string(p.pushes[i].queue))
	return o.flag("success", true).str("transactionId", string(p.push.items[i].txn)).str("type", "push").bytes()
}
