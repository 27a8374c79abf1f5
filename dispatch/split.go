package dispatch

import (
	"context"
	"log/slog"
	"strings"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// split finds what is at fault in a refused unit: by partition, then by
// halves, front half first, down to one message, which becomes a dead letter.
func (b *bundler) split(ctx context.Context, unit []*settlement, cause error, stuck func()) {
	if len(unit) > 1 {
		b.oneByOne(ctx, unit, stuck)
		return
	}
	s := unit[0]
	b.d.log.LogAttrs(ctx, slog.LevelWarn, "settle refused as too large or malformed, looking for the message at fault",
		slog.String(keyRoute, s.r.cfg.Name), slog.Int(keyCount, len(s.entries)), slog.Any(keyError, cause))
	if len(s.entries) > 1 {
		b.halves(ctx, s, stuck)
		return
	}
	if len(s.entries) == 0 || !s.r.blame(&s.entries[0], cause) {
		b.d.log.LogAttrs(ctx, slog.LevelError, "settle of one message refused for good, the message comes again",
			slog.String(keyRoute, s.r.cfg.Name), slog.Any(keyError, cause))
		s.end(result{verdict: refused})
		return
	}
	b.settle(ctx, unit, stuck)
}

// halves settles the front half, then the back half: an ack is a prefix
// commit. The front half leaves the lease as it is, so its repeat is not
// refused: a lost answer here may send a retry twice.
func (b *bundler) halves(ctx context.Context, s *settlement, stuck func()) {
	n := len(s.entries) / 2
	front := &settlement{r: s.r, lease: s.lease, entries: s.entries[:n], bytes: sizeOf(s.entries[:n])}
	back := &settlement{bytes: sizeOf(s.entries[n:]), r: s.r, lease: s.lease, entries: s.entries[n:], kv: s.kv, done: s.tell}
	front.done = func(res result) {
		if res.verdict != committed {
			s.tell(res)
			return
		}
		b.settle(ctx, []*settlement{back}, stuck)
	}
	b.settle(ctx, []*settlement{front}, stuck)
}

// blame makes the rider of one message a dead letter of class too_large; false
// where there is none, or it is one already.
func (r *route) blame(e *entry, cause error) bool {
	if e.d == nil || e.blamed {
		return false
	}
	d := *e.d
	d.Hop-- // the hop it did not make
	d.Dead = nil
	r.addDead(e, d, tooLarge(d, "Queen refuses its settle: "+cause.Error()), e.nonce())
	e.blamed = true
	return true
}

// nonce is the nonce of an entry's rider: the end of its transaction id.
func (e *entry) nonce() string {
	txn := ""
	if e.timer != nil {
		txn = e.timer.TransactionID
	} else if e.push != nil {
		txn = e.push.TransactionID
	}
	return txn[strings.LastIndexByte(txn, '/')+1:]
}

// malformed is a transaction that is not even sent.
func malformed(err error) error {
	return &queen.RollbackError{Reason: queen.RollbackBadRequest, Raw: "bad_request", Text: err.Error(), FailedIndex: -1}
}
