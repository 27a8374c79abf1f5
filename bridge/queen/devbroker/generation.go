package devbroker

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// This file holds what Config.Generation 2 changes. All of it is from the
// documentation (queen-contract.md, the sections named) and none of it was
// measured; what is not here is as in 1.3.0.

// What a broker of generation 2 says it is (§1.1).
const (
	raftEngine  = "raft"
	raftVersion = "2.0.4"
)

func checkGeneration(n int) error {
	if n < 0 || n > 2 {
		return fmt.Errorf("generation %d: must be 1 or 2", n)
	}
	return nil
}

// raft says whether the broker answers like Queen 2.x.
func (b *Broker) raft() bool { return b.cfg.Generation == 2 }

// engine is what health and status say.
func (b *Broker) engine() (name, version string) {
	if b.raft() {
		return raftEngine, raftVersion
	}
	return Engine, Version
}

// raftHealth are the members of 2.x's health in place of the database.
func raftHealth() string {
	var o jsonObject
	o.str("role", "leader").flag("leader", true).num("term", 1).num("lag", 0)
	return string(o.flag("storageReady", true).num("clusterVersion", 3).bytes())
}

// partitionID makes the id of a new partition: decimal digits on 2.x (§0).
func (b *Broker) partitionID(num int64) string {
	if b.raft() {
		return strconv.FormatInt(num, 10)
	}
	return randomID()
}

// isPartitionID says whether a text may be the id of a partition.
func (b *Broker) isPartitionID(text string) bool {
	if b.raft() {
		_, err := strconv.ParseUint(text, 10, 64)
		return err == nil
	}
	_, ok := parseID(text)
	return ok
}

// raftStatus reads the word of an ack as 2.x does: whatever is no nack
// completes (§5.1).
func raftStatus(word string) ackStatus {
	switch strings.ToLower(word) {
	case "retry":
		return ackRetry
	case "dlq":
		return ackDead
	case "failed":
		return ackFailed
	}
	return ackCompleted
}

// readStatuses reads the words of acks.
func (b *Broker) readStatuses(items []ackItem) {
	for i := range items {
		if a := &items[i]; b.raft() {
			a.status = raftStatus(a.word)
		} else {
			a.status = parseStatus(a.word, a.given)
		}
	}
}

// The reasons of refused acks on 2.x (§5, §5.2).
const (
	raftStale  = "transaction is unresolvable, already committed, or acknowledgment is stale"
	raftBadID  = "partitionId is not a partition id"
	raftReason = "rejected_ack"
)

// ackText words why an ack is refused.
func (b *Broker) ackText(why string) string {
	switch {
	case !b.raft() || why == "" || why == badLease:
		return why
	case why == dbError:
		return raftBadID
	}
	return raftStale
}

// rollbackWord names why a transaction is refused (§8.3).
func (b *Broker) rollbackWord(reason string) string {
	if b.raft() {
		switch reason {
		case "ack_rejected":
			return raftReason
		case "payload_too_large":
			return "too_large"
		}
	}
	return reason
}

// planRaft tests the guards of a transaction in the order of 2.x: acks and
// pushes before riders (§8.3).
func (b *Broker) planRaft(p *txnPlan) *rollback {
	if err := b.planAcks(p); err != nil {
		return err
	}
	if err := b.planPushes(p.push); err != nil {
		return err
	}
	return b.planRiders(p)
}

// raftFence is the lease that fences an ack of a transaction on 2.x: its own,
// or the only one the bundle names, or none (§8.1).
func raftFence(t *transaction, a *ackItem) string {
	if a.lease != "" {
		return a.lease
	}
	var only string
	named := append([]string(nil), t.leases...)
	for i := range t.acks {
		named = append(named, t.acks[i].lease)
	}
	for _, lease := range named {
		switch {
		case lease == "" || lease == only:
		case only != "":
			return ""
		default:
			only = lease
		}
	}
	return only
}

// alreadyFired says whether a timer that is due completes without a message: on 2.x
// its id goes through deduplication (§9.1).
func (b *Broker) alreadyFired(t *timer) bool {
	q := b.st.queues[t.queue]
	if !b.raft() || q == nil || q.parts[t.partition] == nil {
		return false
	}
	txn := []byte(t.txn)
	_, known := b.duplicateOf(q.parts[t.partition], txn, b.key.hash(txn))
	return known
}

// raftPop bounds a pop as 2.x does: at most 64 partitions, at most a minute,
// and no long poll of a discovery (§4).
func raftPop(r *popRequest) {
	const partitions, timeout, lease = 64, time.Minute, 60
	if r.partitions == everyPartition {
		r.partitions = 1
	}
	r.partitions = min(r.partitions, partitions)
	r.timeout = min(r.timeout, timeout)
	if r.discovery {
		r.wait = false
		if r.lease == 0 {
			r.lease = lease
		}
	}
}

// raftItems reads pushed items as 2.x does: "" is the default partition (§3).
func raftItems(items []pushItem) {
	for i := range items {
		if len(items[i].partition) == 0 {
			items[i].partition = defaultPartitionName
		}
	}
}

// raftAck remembers the acks that released a lease: the same ones sent again
// are answered with success once more (§5.2).
type raftAck struct {
	lease string
	acks  uint64
}

func (b *Broker) hashAcks(set ackSet, items []ackItem) uint64 {
	var text []byte
	for _, i := range set.items {
		text = append(append(text, byte(items[i].status)), items[i].txn...)
	}
	return b.key.hash(text)
}

// settleAbove goes on above a dead letter, as long as the call names what comes
// next: what is completed stays so, other dead letters are filed (§5.2).
func settleAbove(p position, acks []resolved, next uint64) (end uint64, dead []uint64) {
	for ; ; next++ {
		status, named := ackCompleted, false
		for _, a := range acks {
			if a.where == inWindow && a.offset == next {
				status, named = max(status, a.status), true
			}
		}
		exhausted := status == ackFailed && p.limit <= 0 // the budget starts anew above a dead letter
		switch {
		case !named || status == ackRetry || status == ackFailed && !exhausted:
			return next, dead
		case status == ackDead || exhausted && p.keepDead:
			dead = append(dead, next)
		}
	}
}

// lostWord is the verdict on an item whose queue cannot be named (§3).
func (b *Broker) lostWord() string {
	if b.raft() {
		return "error"
	}
	return "buffered"
}
