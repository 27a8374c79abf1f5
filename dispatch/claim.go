package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// room is how large what is settled may be, in bytes (design.md, "The event in
// the queue").
type room struct {
	inline int // a payload that travels in a retry
	riders int // those of one settle together
	stored int // a payload kept for a claim, as it is stored
}

// standardRoom: Queen answers with a stored payload twice, and the client reads
// 80 MiB.
var standardRoom = room{inline: 512 << 10, riders: maxRiderBytes, stored: 38 << 20}

// maxClaimed bounds the payloads read back at a time, all routes together.
const maxClaimed = 128 << 20

// errClaimGone says that the payload of a claim is not stored any more.
var errClaimGone = errors.New("the payload kept for this delivery is gone")

// errCrowded says that too many large payloads are at work already.
var errCrowded = errors.New("too many large payloads at a time")

// addClaim lets a claim stand for the payload of a delivery: it is stored
// before the settle. One that was read back is stored already. False: it is
// too large even for that.
func (e *entry) addClaim(d *bridge.Delivery, of room) bool {
	if d.Claim != nil {
		return true
	}
	stored := bridge.AppendLarge(nil, d.Payload)
	if len(stored) > of.stored {
		return false
	}
	d.Claim = bridge.NewClaim(d.Payload)
	e.claim = &queen.Item{
		Queue: bridge.LargeQueue(d.Route), Partition: bridge.LargeLane(d.Lineage), TransactionID: d.Lineage, Payload: stored,
	}
	return true
}

// whole lets a delivery travel with its payload where that is at hand: the
// retry and dead queue have no retention by age, the large queue has.
func whole(d bridge.Delivery) bridge.Delivery {
	if d.Payload != nil {
		d.Claim = nil
	}
	return d
}

// fit makes the riders of a settlement small enough for one transaction: the
// largest payloads are replaced by claims, those of retries first.
func (s *settlement) fit() {
	of := s.r.d.room
	if s.bytes <= of.riders {
		return
	}
	order := make([]*entry, 0, len(s.entries))
	for i := range s.entries {
		if e := &s.entries[i]; e.d != nil && e.d.Claim == nil {
			order = append(order, e)
		}
	}
	slices.SortStableFunc(order, func(a, b *entry) int {
		if dead := (a.timer == nil) != (b.timer == nil); dead {
			return cmp.Compare(btoi(a.timer == nil), btoi(b.timer == nil))
		}
		return cmp.Compare(len(b.d.Payload), len(a.d.Payload))
	})
	for _, e := range order {
		if s.bytes <= of.riders {
			return
		}
		before := e.size()
		if e.addClaim(e.d, of) {
			e.rewrite()
		}
		s.bytes += e.size() - before
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rewrite makes the rider of an entry anew from its delivery.
func (e *entry) rewrite() {
	payload := e.d.AppendEnvelope(nil)
	if e.timer != nil {
		e.timer.Payload = payload
	}
	if e.push != nil {
		e.push.Payload = payload
	}
}

// submit hands a settlement to whoever settles it, once the payloads it claims
// are stored.
func (d *Dispatcher) submit(s *settlement) {
	if !s.claims() {
		d.hand(s)
		return
	}
	d.spawn(func() {
		defer dropOnPanic(d.log, []*settlement{s})
		if !d.storeClaims(d.settling, s) {
			s.end(result{verdict: abandoned})
			return
		}
		d.hand(s)
	})
}

func (d *Dispatcher) hand(s *settlement) {
	switch {
	case !s.riders():
		d.acker.submit(s)
	case s.whole && s.repeats():
		d.bundler.submitTwoSteps(s)
	default:
		d.bundler.submit(s)
	}
}

func (s *settlement) claims() bool {
	for i := range s.entries {
		if s.entries[i].claim != nil {
			return true
		}
	}
	return false
}

// storeClaims stores the payloads that a settlement claims, before anything
// refers to them. Their ids are fixed: a repeat is a duplicate. What Queen
// refuses for good ends its delivery as too_large. False: ctx ended.
func (d *Dispatcher) storeClaims(ctx context.Context, s *settlement) bool {
	for i := range s.entries {
		e := &s.entries[i]
		if e.claim == nil {
			continue
		}
		err := d.store(ctx, []queen.Item{*e.claim}, func() {})
		switch {
		case err == nil:
			s.r.m.claims.WithLabelValues(s.r.cfg.Name).Inc()
		case ctx.Err() != nil:
			return false
		default:
			s.r.log.LogAttrs(ctx, slog.LevelError, "a large payload is refused for good", slog.Any(keyError, err))
			s.r.leaveBehind(e, *e.was, "Queen refuses its payload: "+err.Error(), e.nonce())
			s.bytes = sizeOf(s.entries)
		}
		e.claim = nil
	}
	return true
}

// storeClaims stores what a refused settle has come to claim.
func (b *bundler) storeClaims(ctx context.Context, unit []*settlement) bool {
	for _, s := range unit {
		if s.claims() && !b.d.storeClaims(ctx, s) {
			return false
		}
	}
	return true
}

// leaveBehind ends a delivery whose payload is too large to be stored a second
// time: the dead letter says where it is, as long as it is kept there.
func (r *route) leaveBehind(e *entry, d bridge.Delivery, why, nonce string) {
	o := d.Origin
	d.Payload, d.Claim, d.Dead = nil, bridge.NewClaim(d.Payload), nil
	out := tooLarge(d, fmt.Sprintf("%s; it stays in queue %s, partition id %s, transaction id %s, as long as that queue keeps it",
		why, o.Queue, o.PartitionID, o.TransactionID))
	r.addDead(e, d, out, nonce)
	e.claim, e.blamed = nil, true
}

// claimed is how much memory the payload of a delivery takes once it is read
// back.
func claimed(d *bridge.Delivery) int64 {
	if d.Claim == nil || d.Payload != nil {
		return 0
	}
	return int64(min(max(d.Claim.Size, 1), standardRoom.stored)) // written by whoever pushed it
}

// admit counts a payload that will be read back. False: others must go first.
// A single one is always let in, however large.
func (d *Dispatcher) admit(size int64) bool {
	if now := d.claimed.Add(size); size > 0 && now > maxClaimed && now > size {
		d.claimed.Add(-size)
		return false
	}
	return true
}

// readBack reads the payload of a delivery that has only a claim. An error is
// the end of ctx, or says that it is gone for good (a dead letter of class
// undecodable).
func (r *route) readBack(ctx context.Context, d *bridge.Delivery) error {
	for pause := (backoff{}); ; {
		payload, err := r.large.read(ctx, d)
		if err == nil {
			d.Payload = payload
			return nil
		}
		if errors.Is(err, errClaimGone) || errors.Is(err, bridge.ErrOtherPayload) || ctx.Err() != nil {
			return err
		}
		r.log.LogAttrs(ctx, pause.level(), "large payload not read back, trying again", slog.Any(keyError, err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return context.Cause(ctx)
		}
	}
}

// admit lets an item be read back, unless too much is at work already: then it
// comes again soon.
func (p *part) admit(it *item) bool {
	size := claimed(&it.d)
	if !p.r.d.admit(size) {
		return false
	}
	p.claimed += size
	return true
}

// readBack reads the payload of an item that has only a claim. False: the item
// is not to be called, and what becomes of it is known.
func (p *part) readBack(it *item) bool {
	if claimed(&it.d) == 0 {
		return true
	}
	switch err := p.r.readBack(p.lease.ctx, &it.d); {
	case errors.Is(err, errClaimGone), errors.Is(err, bridge.ErrOtherPayload):
		p.ended(it, undecodable(err))
	case err != nil:
		p.giveUp(it, err)
	case p.r.policy.UsedUp(it.d): // only now: its dead letter holds the payload
		p.ended(it, exhausted(it.d))
	default:
		return true
	}
	return false
}

// reader is what reading claims needs of Queen.
type reader interface {
	Message(ctx context.Context, partitionID, txn string) (queen.StoredMessage, error)
	Partitions(ctx context.Context, queue string) (map[string]string, error)
}

// large reads the payloads kept for claims. Safe for concurrent use.
type large struct {
	queen reader

	mu  sync.Mutex
	ids map[string]map[string]string // queue → partition → id
}

// read reads a payload once. errClaimGone: it is not there.
func (l *large) read(ctx context.Context, d *bridge.Delivery) ([]byte, error) {
	queue, lane := bridge.LargeQueue(d.Route), bridge.LargeLane(d.Lineage)
	id, known := l.known(queue, lane)
	for {
		if id == "" {
			var err error
			if id, err = l.ask(ctx, queue, lane); err != nil {
				return nil, err
			}
		}
		m, err := l.queen.Message(ctx, id, d.Lineage)
		switch {
		case err == nil:
			return d.Claim.Open(m.Data)
		case !errors.Is(err, queen.ErrNotFound):
			return nil, err
		case !known:
			return nil, fmt.Errorf("%w: queue %s, partition %s, transaction id %s", errClaimGone, queue, lane, d.Lineage)
		}
		id, known = "", false // retention may have emptied the partition: it has another id then
	}
}

func (l *large) known(queue, lane string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok := l.ids[queue][lane]
	return id, ok
}

// ask asks for the ids of a queue's partitions.
func (l *large) ask(ctx context.Context, queue, lane string) (string, error) {
	ids, err := l.queen.Partitions(ctx, queue)
	if err != nil && !errors.Is(err, queen.ErrNotFound) {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = make(map[string]map[string]string)
	}
	l.ids[queue] = ids
	if ids[lane] == "" {
		return "", fmt.Errorf("%w: queue %s has no partition %s", errClaimGone, queue, lane)
	}
	return ids[lane], nil
}
