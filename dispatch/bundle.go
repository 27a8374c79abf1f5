package dispatch

import (
	"context"
	"errors"
	"log/slog"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// bundler commits settlements that carry riders: group commit, because Queen
// allows 100 such transactions a second whatever they hold (measured 1.3.0).
type bundler struct {
	d     *Dispatcher
	lanes *lanes
}

func newBundler(d *Dispatcher) *bundler {
	b := &bundler{d: d}
	b.lanes = newLanes(d, pack, func(unit []*settlement, landed func()) { b.settle(d.settling, unit, landed) })
	return b
}

// submit hands over a settlement; its end is told through done.
func (b *bundler) submit(s *settlement) { b.lanes.submit(laneKey{node: s.lease.Node}, s) }

// pack is how many of the waiting settlements fit one transaction. full says
// that more waits than fits. One that fits none is taken alone: a refusal
// then splits it. Two of one partition never share a transaction: the second
// waits for a lease the first still has.
func pack(waiting []*settlement) (n int, full bool) {
	var timers, kv, bytes, acks int
	partitions := make(map[string]bool, len(waiting))
	for _, s := range waiting {
		timers += s.timers()
		bytes += s.bytes
		acks += len(s.entries)
		if s.kv != nil {
			kv++
		}
		id := s.lease.Group + "\x00" + s.partitionID()
		if n > 0 && (timers > maxTimers || kv > maxKV || bytes > maxRiderBytes || acks > maxAcks || partitions[id]) {
			return n, true
		}
		partitions[id] = len(s.entries) > 0
		n++
	}
	return n, timers == maxTimers || kv == maxKV
}

// settle commits a unit and tells each settlement its end. stuck is called
// when no answer has been definite for a while: others need not wait for this
// unit.
func (b *bundler) settle(ctx context.Context, unit []*settlement, stuck func()) {
	if len(unit) == 0 {
		return
	}
	if len(unit) == 1 && unit[0].bytes > b.d.room.riders && len(unit[0].entries) > 1 {
		b.halves(ctx, unit[0], stuck) // Queen would refuse it (64 MiB, in base64)
		return
	}
	if !b.storeClaims(ctx, unit) {
		endAll(unit, result{verdict: abandoned})
		return
	}
	var tx queen.Transaction
	owners := assemble(unit, &tx)
	commit, err := b.commit(ctx, tx, unit, stuck)
	switch classify(err) {
	case indefinite, operators: // only the end of ctx
		endAll(unit, result{verdict: abandoned})
	case accepted:
		b.accept(unit, owners, commit)
	case timersGone:
		b.repair(ctx, tx.Timers, err)
		endAll(unit, result{})
	case duplicate:
		b.duplicate(ctx, unit, stuck)
	case leaseLost:
		b.without(ctx, unit, culprit(refusalText(err), unit), result{verdict: refused}, stuck)
	case precondition:
		b.precondition(ctx, unit, err, stuck)
	case idForgotten:
		b.forgotten(ctx, unit, stuck)
	case atFault:
		b.split(ctx, unit, err, stuck)
	}
}

// assemble makes the transaction of a unit; owners tells whose each KV
// operation is.
func assemble(unit []*settlement, tx *queen.Transaction) (owners []int) {
	for i, s := range unit {
		for j := range s.entries {
			e := &s.entries[j]
			tx.Acks = append(tx.Acks, e.ack)
			if e.timer != nil {
				tx.Timers = append(tx.Timers, *e.timer)
			}
			if e.push != nil {
				tx.Pushes = append(tx.Pushes, *e.push)
			}
			if e.reply != nil {
				tx.Pushes = append(tx.Pushes, *e.reply)
			}
		}
		if s.kv != nil {
			tx.KV, owners = append(tx.KV, *s.kv), append(owners, i)
		}
	}
	return owners
}

// commit sends the identical body until a definite answer, or until ctx ends.
func (b *bundler) commit(ctx context.Context, tx queen.Transaction, unit []*settlement, stuck func()) (queen.Commit, error) {
	prepared, err := tx.Prepare()
	if err != nil {
		return queen.Commit{}, malformed(err)
	}
	b.d.m.settles.WithLabelValues("transaction").Observe(float64(len(tx.Acks)))
	defer func() { unblock(unit) }()
	for pause := (backoff{}); ; {
		commit, err := b.d.queen.Commit(ctx, prepared)
		kind := classify(err)
		if kind != indefinite && kind != operators {
			return commit, err
		}
		pause.tell(stuck)
		b.d.m.resends.Inc()
		if kind == operators {
			block(unit, err)
		}
		b.d.log.LogAttrs(ctx, pause.level(), "settle not answered for good, sent again", slog.Int(keyCount, len(tx.Acks)), slog.Any(keyError, err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return queen.Commit{}, err
		}
	}
}

func block(unit []*settlement, err error) {
	for _, s := range unit {
		s.r.status.block(err)
	}
}

func unblock(unit []*settlement) {
	for _, s := range unit {
		s.r.status.unblock()
	}
}

// accept tells each settlement its answer, and checks the timers' verdicts.
func (b *bundler) accept(unit []*settlement, owners []int, commit queen.Commit) {
	for _, status := range commit.Timers {
		switch status {
		case queen.TimerScheduled, queen.TimerRescheduled:
		case queen.TimerTooLate: // a copy of that delivery is just firing
		default:
			b.d.log.Error("timer of a committed settle has an unknown verdict", slog.String(keyStatus, string(status)))
		}
	}
	answers := make([]*queen.KVResult, len(unit))
	for k, i := range owners {
		if k < len(commit.KV) {
			answers[i] = &commit.KV[k]
		}
	}
	for i, s := range unit {
		s.end(result{kv: answers[i]})
	}
}

// repair schedules timers that a broker too old for them dropped in silence:
// their acks are committed.
func (b *bundler) repair(ctx context.Context, timers []queen.Timer, cause error) {
	b.d.log.Error("the broker dropped the timers of a settle, scheduling them again", slog.Any(keyError, cause))
	for pause := (backoff{}); ; {
		_, err := b.d.queen.Schedule(ctx, timers)
		if err == nil {
			return
		}
		b.d.log.Error("retry timers are lost unless this call succeeds", slog.Int(keyCount, len(timers)), slog.Any(keyError, err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return
		}
	}
}

func endAll(unit []*settlement, res result) {
	for _, s := range unit {
		s.end(res)
	}
}

func refusalText(err error) string {
	var rollback *queen.RollbackError
	if errors.As(err, &rollback) {
		return rollback.Text
	}
	return ""
}

// without ends the settlement at fault and sends the others again; where none
// is named, each on its own.
func (b *bundler) without(ctx context.Context, unit []*settlement, at int, res result, stuck func()) {
	if len(unit) == 1 {
		at = 0
	}
	if at < 0 {
		b.oneByOne(ctx, unit, stuck)
		return
	}
	s := unit[at]
	s.r.m.lost.WithLabelValues(s.r.cfg.Name).Inc()
	s.r.log.LogAttrs(ctx, slog.LevelWarn, "settle refused: its lease is lost, or it had committed", slog.Int(keyCount, len(s.entries)))
	s.end(res)
	rest := append(append([]*settlement(nil), unit[:at]...), unit[at+1:]...)
	b.settle(ctx, rest, stuck)
}

func (b *bundler) oneByOne(ctx context.Context, unit []*settlement, stuck func()) {
	for i := range unit {
		b.settle(ctx, unit[i:i+1], stuck)
	}
}

// duplicate: the ids of dead letters are this settle's own, so it had
// committed. The id of a reply is fixed: an earlier holder may have pushed it,
// and Queen 1.x looks at pushes before it looks at leases.
func (b *bundler) duplicate(ctx context.Context, unit []*settlement, stuck func()) {
	for range replied(unit) {
		if !b.repliesAlone(ctx, unit, stuck) {
			endAll(unit, result{verdict: abandoned})
			return
		}
		b.settle(ctx, unit, stuck)
		return
	}
	endAll(unit, result{})
}

// precondition: a value of our own proves that this body had committed, any
// other that somebody else counted, so the lease is lost.
func (b *bundler) precondition(ctx context.Context, unit []*settlement, err error, stuck func()) {
	var rollback *queen.RollbackError
	_ = errors.As(err, &rollback)
	if ours(rollback.Value, unit) >= 0 {
		endAll(unit, result{})
		return
	}
	b.without(ctx, unit, kvCulprit(rollback.FailedIndex, unit), result{verdict: refused}, stuck)
}
