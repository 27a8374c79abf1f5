package devbroker

import (
	"net/http"
	"strconv"
)

// This file holds conflation (all of it measured on 1.3.0): a group that
// conflates is given the newest message of a partition alone, under a lease on
// all that is before it, and an ack of it completes the lot. The group's
// subscription to a queue says whether it does; whoever pops it otherwise is
// told.

const (
	needsGroup = "conflation requires consumerGroup: queue mode is a shared cursor with no group identity to hang a delivery policy on"
	noAutoAck  = "conflation cannot be combined with autoAck: auto-ack commits at delivery with no lease, so a failed handler loses the tail " +
		"and the at-least-once guarantee conflation exists to provide degrades to at-most-once"
)

// maxConflated bounds the partitions of a conflating pop, each of which gives
// one message.
const maxConflated = 64

// conflation is what a pop asks for.
type conflation struct{ asked, wanted bool }

// refusal is why a pop may not conflate; "" when it may.
func (r *popRequest) refusal(named bool) string {
	switch {
	case !r.conflation.wanted:
	case !named:
		return needsGroup
	case r.autoAck:
		return noAutoAck
	}
	return ""
}

// refusePop answers a pop that asks for what there cannot be.
func refusePop(w http.ResponseWriter, why string) {
	answer(w, http.StatusBadRequest, new(jsonObject).flag("success", false).str("error", why).raw("messages", "[]").bytes())
}

// conflates says whether a pop of a group gets the newest messages only: what
// its subscription says, or else what the pop says.
func (r *popRequest) conflates(g *group) bool {
	switch {
	case r.scope.group == queueMode:
		return false
	case g != nil && g.subscribed():
		return g.conflates
	}
	return r.conflation.wanted
}

// registers says whether a pinned pop subscribes its group to the whole queue:
// the first one that conflates does, for the policy must stand somewhere.
func (r *popRequest) registers(g *group) bool {
	p := g.queue.parts[r.partition]
	return r.conflation.wanted && r.scope.group != queueMode && p != nil && !p.cursor(g).there()
}

// width is how many partitions a pop may claim.
func (r *popRequest) width(conflates bool) int {
	switch {
	case !conflates:
		return r.partitions
	case r.anyWidth:
		return int(min(r.batch, maxConflated))
	case r.partitions == everyPartition:
		return 1
	}
	return min(r.partitions, maxConflated)
}

// policy is what an answer says about conflation.
type policy struct{ on, conflict bool }

// policyOf is what the answer to a pop says: of a discovery, that it conflates
// only where all of its queues do, and nothing unless the pop asked.
func (b *Broker) policyOf(req *popRequest) policy {
	if !req.discovery {
		var g *group
		if q := b.st.queues[req.queue]; q != nil {
			g = q.group(req.scope.group)
		}
		on := req.conflates(g)
		return policy{on, req.scope.group != queueMode && req.conflation.asked && req.conflation.wanted != on}
	}
	p := policy{on: req.conflation.wanted && req.scope.group != queueMode}
	if !req.conflation.asked || req.scope.group == queueMode {
		return p
	}
	for _, q := range b.queuesOf(req) {
		if on := req.conflates(q.group(req.scope.group)); on != req.conflation.wanted {
			p = policy{false, true}
		}
	}
	return p
}

// told says whether an empty answer has something to say.
func (p policy) told() bool { return p.on || p.conflict }

// append writes the policy's members.
func (p policy) append(dst []byte) []byte {
	if p.on {
		dst = append(dst, `,"conflation":true`...)
	}
	if p.conflict {
		dst = append(dst, `,"conflationConflict":true`...)
	}
	return dst
}

// answerNothing answers a pop that found nothing: with a body where that has
// something to say about conflation.
func (b *Broker) answerNothing(w http.ResponseWriter, req *popRequest, d *delivery) {
	if !d.policy.told() {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	mint := newMinter(b.now())
	claimed := "0"
	if req.pinned {
		claimed = "1"
	}
	var o jsonObject
	o.flag("success", true).str("queue", req.queue).str("partition", req.partition).str("partitionId", d.pinnedID)
	o.str("leaseId", mint.id().String()).str("consumerGroup", req.scope.group).raw("messages", "[]").raw("partitionsClaimed", claimed)
	answer(w, http.StatusOK, append(d.policy.append(o.buf), '}'))
}

// passedOver is what an ack says of a lease that conflated: the number of
// messages that it completed without their having been delivered.
type passedOver struct {
	known bool
	n     int64
}

func (p passedOver) write(o *jsonObject) {
	if p.known {
		o.raw("conflated", strconv.FormatInt(p.n, 10))
	}
}

// passedOver is known when an ack completes a lease that conflated.
func (c *cursor) passedOver(completes bool) passedOver {
	if !completes || !c.conflated || c.lease == "" {
		return passedOver{}
	}
	return passedOver{true, max(count(c.leaseEnd-c.next)-1, 0)}
}
