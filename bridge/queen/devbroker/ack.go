package devbroker

import (
	"net/http"
	"strings"
)

// ackItem is one acknowledgment (queen-contract.md §5).
type ackItem struct {
	txn, part, lease, group string
	word                    string // of the status
	given                   bool   // as a string, be it empty
	status                  ackStatus
	text                    string // stored when the ack dead-letters
}

type ackStatus int

const (
	ackCompleted ackStatus = iota
	ackRetry
	ackFailed
	ackDead
)

// parseStatus reads the word of an ack as 1.x does: what it does not know
// counts as failed (queen-contract.md §5.1).
func parseStatus(word string, given bool) ackStatus {
	switch word {
	case "completed", "success", "acked", "ok":
		return ackCompleted
	case "retry":
		return ackRetry
	case "dlq":
		return ackDead
	case "":
		if !given {
			return ackCompleted
		}
	}
	return ackFailed
}

func (a *ackItem) field(s *scanner, key []byte, text func(*scanner) (string, error)) (err error) {
	switch string(key) {
	case "transactionId":
		a.txn, err = text(s)
	case "partitionId":
		a.part, err = text(s)
	case "leaseId":
		a.lease, err = text(s)
	case "consumerGroup":
		a.group, err = text(s)
	case "error":
		a.text, err = text(s)
	case "status":
		a.given = s.peek() == '"'
		a.word, err = text(s)
	default:
		_, err = s.raw()
	}
	return err
}

// parseAck reads one ack; text reads a string, strictly on the ack routes and
// loosely in a transaction.
func parseAck(s *scanner, text func(*scanner) (string, error)) (a ackItem, err error) {
	err = s.object(func(key []byte) error { return a.field(s, key, text) })
	return a, err
}

func parseOneAck(body []byte) (group string, items []ackItem, err error) {
	s, err := scan(body)
	if err != nil {
		return "", nil, err
	}
	a, err := parseAck(s, (*scanner).optional)
	if err == nil {
		err = s.end()
	}
	return a.group, []ackItem{a}, err
}

func parseAckBatch(body []byte) (group string, items []ackItem, err error) {
	s, err := scan(body)
	if err != nil {
		return "", nil, err
	}
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "consumerGroup":
			group, err = s.optional()
		case "acknowledgments":
			err = s.array(func() error {
				a, err := parseAck(s, (*scanner).optional)
				items = append(items, a)
				return err
			})
		default:
			_, err = s.raw()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	return group, items, err
}

func (b *Broker) handleAck(w http.ResponseWriter, r *http.Request, _ params) {
	b.handleAcks(w, r, parseOneAck)
}

func (b *Broker) handleAckBatch(w http.ResponseWriter, r *http.Request, _ params) {
	b.handleAcks(w, r, parseAckBatch)
}

func (b *Broker) handleAcks(w http.ResponseWriter, r *http.Request, parse func([]byte) (string, []ackItem, error)) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	group, items, err := parse(body.bytes)
	body.free()
	if err != nil {
		badBody(w, err)
		return
	}
	b.readStatuses(items)
	if group == "" {
		group = queueMode
	}
	var verdicts []ackVerdict
	if err := b.update(func() { verdicts = b.ack(group, items) }); err != nil {
		unavailable(w, err)
		return
	}
	for i := range verdicts {
		verdicts[i].text = b.ackText(verdicts[i].text)
	}
	answer(w, http.StatusOK, ackJSON(items, verdicts))
}

// ackVerdict is the answer for one ack. The zero value is a refusal without a
// reason.
type ackVerdict struct {
	ok, released, dead, noop bool
	text                     string
	passedOver               passedOver
}

// The reasons of refused acks (queen-contract.md §5.2, 1.x).
const (
	badLease     = "invalid or expired lease"
	noConsumer   = "consumer not found"
	dbError      = "db error"
	pastCursor   = "already committed: the cursor moved past this message before this ack"
	unresolvable = "unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the message redelivers"
)

func ackJSON(items []ackItem, verdicts []ackVerdict) []byte {
	out := append(make([]byte, 0, 160*len(items)+2), '[')
	for i, v := range verdicts {
		if i > 0 {
			out = append(out, ',')
		}
		o := jsonObject{}
		o.num("index", int64(i)).str("transactionId", items[i].txn).flag("success", v.ok)
		o.strOrNull("error", v.text)
		o.flag("leaseReleased", v.released).flag("dlq", v.dead).flag("noop", v.noop)
		v.passedOver.write(&o)
		out = append(out, o.bytes()...)
	}
	return append(out, ']')
}

// ackSet is the acks of one call that are decided together: those of one
// partition under one lease (queen-contract.md §5.2).
type ackSet struct {
	part, lease string
	items       []int
}

func groupAcks(items []ackItem, same func(a, b *ackItem) bool) []ackSet {
	var sets []ackSet
next:
	for i := range items {
		a := &items[i]
		for j := range sets {
			if same(&items[sets[j].items[0]], a) {
				sets[j].items = append(sets[j].items, i)
				continue next
			}
		}
		sets = append(sets, ackSet{part: a.part, lease: a.lease, items: []int{i}})
	}
	return sets
}

// ack carries out the acks of one call, under the lock. Each set stands alone:
// one that is refused does not touch the others.
func (b *Broker) ack(group string, items []ackItem) []ackVerdict {
	verdicts := make([]ackVerdict, len(items))
	sets := groupAcks(items, func(a, b *ackItem) bool { return a.part == b.part && a.lease == b.lease })
	for _, set := range sets {
		b.ackSet(group, set, items, verdicts)
	}
	return verdicts
}

func (b *Broker) ackSet(group string, set ackSet, items []ackItem, verdicts []ackVerdict) {
	all := func(v ackVerdict) {
		for _, i := range set.items {
			verdicts[i] = v
		}
	}
	if !b.isPartitionID(set.part) {
		all(ackVerdict{text: dbError})
		return
	}
	now := b.now()
	c := b.cursorOf(set.part, group)
	switch {
	case c == nil:
		all(ackVerdict{text: noConsumer})
		return
	case set.lease != "" && (c.lease != set.lease || !c.leased(now)):
		if b.raft() && c.acked == (raftAck{set.lease, b.hashAcks(set, items)}) {
			all(ackVerdict{ok: true, released: true})
			return
		}
		all(ackVerdict{text: badLease})
		return
	}
	passed := c.passedOver(true)
	if set.lease != "" && !b.raft() && b.ackWhole(c, set, items) {
		all(ackVerdict{ok: true, released: true})
		verdicts[set.items[0]].passedOver = passed
		return
	}
	plan := b.planAck(c, set.items, items, now)
	passed = c.passedOver(plan.decision.passes)
	if err := b.carryOut(plan); err != nil {
		all(ackVerdict{text: dbError})
		return
	}
	if b.raft() && c.lease == "" && set.lease != "" {
		c.acked = raftAck{set.lease, b.hashAcks(set, items)}
	}
	for n, i := range set.items {
		verdicts[i] = plan.verdict(n, items[i].status)
		if plan.acks[n].where == unknownID && items[i].status != ackCompleted {
			c.blurred = true // measured: a refused retry or dlq spoils the ack by position
		}
	}
	verdicts[set.items[0]].passedOver = passed
}

// cursorOf finds the cursor an ack is about; nil where 1.3.0 has none.
func (b *Broker) cursorOf(part, group string) *cursor {
	p := b.st.parts[strings.ToLower(part)]
	if p == nil {
		return nil
	}
	g := p.queue.group(group)
	if g == nil {
		return nil
	}
	if c := p.cursor(g); c.known {
		return c
	}
	return nil
}

// ackWhole completes a leased batch by position when one call names every id
// in it as completed: this works for ids that the broker has forgotten, or that
// stand in the batch twice, and leaves the retry counter (measured 1.3.0).
func (b *Broker) ackWhole(c *cursor, set ackSet, items []ackItem) bool {
	if uint64(len(set.items)) > c.leaseEnd-c.leaseStart || c.next != c.leaseStart || c.blurred {
		return false
	}
	from := c.leaseStart
	if c.conflated {
		from = c.leaseEnd - 1
	}
	known, err := b.hashes(c.part, from, c.leaseEnd)
	if err != nil {
		return false
	}
	given := make([]uint64, len(set.items))
	for n, i := range set.items {
		if items[i].status != ackCompleted {
			return false
		}
		given[n] = b.key.hash([]byte(items[i].txn))
	}
	if !sameHashes(known, given) {
		return false
	}
	b.counts.acked += c.leaseEnd - c.leaseStart
	b.finish(c, c.leaseEnd)
	return true
}
