package dispatch

import (
	"context"
	"errors"
	"log/slog"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// forgotten settles messages whose ids the broker knows no longer (1.x forgets
// them max(dedup window, completed retention, 900 s) after the push, pending or
// not), one partition at a time: the refusal names none.
func (b *bundler) forgotten(ctx context.Context, unit []*settlement, stuck func()) {
	if len(unit) > 1 {
		b.oneByOne(ctx, unit, stuck)
		return
	}
	b.twoSteps(ctx, unit[0], stuck)
}

// submitTwoSteps settles a batch that holds one id twice.
func (b *bundler) submitTwoSteps(s *settlement) {
	b.d.spawn(func() {
		defer dropOnPanic(b.d.log, []*settlement{s})
		b.twoSteps(b.d.settling, s, func() {})
	})
}

// twoSteps settles without the fence of a transaction: first the riders alone,
// then a plain ack of the whole leased batch, which 1.x does by position.
// Between the two a fault adds one copy of what was failing; the ack last
// means that nothing is lost.
func (b *bundler) twoSteps(ctx context.Context, s *settlement, stuck func()) {
	if !b.repliesAlone(ctx, []*settlement{s}, stuck) {
		s.end(result{verdict: abandoned})
		return
	}
	if !s.whole {
		s.end(result{verdict: forgotten})
		return
	}
	s.r.log.LogAttrs(ctx, slog.LevelDebug, "settling in two steps: the broker does not know an id, or one stands twice in the batch",
		slog.Int(keyCount, len(s.entries)))
	if err := b.ridersAlone(ctx, s, s.entries, stuck); err != nil {
		s.end(result{verdict: outOf(ctx, err)})
		return
	}
	s.r.memo.add(s.entries)
	for i := range s.entries { // what is out is counted, and not sent again
		s.tally(&s.entries[i])
		s.entries[i].timer, s.entries[i].push = nil, nil
	}
	s.kv = nil
	b.d.acker.submit(s)
}

func outOf(ctx context.Context, err error) verdict {
	if ctx.Err() != nil && !errors.Is(err, errLeaseLost) {
		return abandoned
	}
	return refused
}

// ridersAlone commits the riders of entries without their acks, in as many
// transactions as their size takes. What Queen refuses is looked for by halves
// and becomes a dead letter.
func (b *bundler) ridersAlone(ctx context.Context, s *settlement, entries []entry, stuck func()) error {
	piece := &settlement{r: s.r, lease: s.lease, entries: entries}
	var tx queen.Transaction
	assemble([]*settlement{piece}, &tx)
	if tx.Acks = nil; len(tx.Timers)+len(tx.Pushes) == 0 {
		return nil
	}
	err := errOversized
	if n := sizeOf(entries); n <= b.d.room.riders || len(entries) == 1 {
		err = b.unfenced(ctx, s.lease, tx, stuck)
	}
	if !errors.Is(err, errOversized) && classify(err) != atFault {
		return err
	}
	if n := len(entries) / 2; n > 0 {
		if err := b.ridersAlone(ctx, s, entries[:n], stuck); err != nil {
			return err
		}
		return b.ridersAlone(ctx, s, entries[n:], stuck)
	}
	if !s.r.blame(&entries[0], err) {
		b.d.log.Error("rider of an old event refused for good, the event comes again",
			slog.String(keyRoute, s.r.cfg.Name), slog.Any(keyError, err))
		return err
	}
	if !b.d.storeClaims(ctx, piece) {
		return context.Cause(ctx)
	}
	return b.ridersAlone(ctx, s, entries, stuck)
}

// errOversized stands for the refusal that too many riders would
// get.
var errOversized = errors.New("the riders are too large for one transaction")

func sizeOf(entries []entry) (n int) {
	for i := range entries {
		n += entries[i].size()
	}
	return n
}

// unfenced commits timers and pushes. Nothing fences them: the lease is
// renewed before each send.
func (b *bundler) unfenced(ctx context.Context, l *lease, tx queen.Transaction, stuck func()) error {
	prepared, err := tx.Prepare()
	if err != nil {
		return malformed(err)
	}
	for pause := (backoff{}); ; {
		err := l.renew(ctx)
		if errors.Is(err, errLeaseLost) {
			return err
		}
		if err == nil {
			_, err = b.d.queen.Commit(ctx, prepared)
			switch classify(err) {
			case accepted, duplicate:
				return nil
			case timersGone:
				b.repair(ctx, tx.Timers, err)
				return nil
			case indefinite, operators:
			default:
				return err
			}
		}
		pause.tell(stuck)
		b.d.m.resends.Inc()
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return err
		}
	}
}
