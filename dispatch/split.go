package dispatch

import (
	"context"
	"crypto/rand"
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

// blame makes the riders of one message a dead letter of class too_large; of a
// dead letter that carries a reply only the reply goes. False where there is
// none, or it is one already.
func (r *route) blame(e *entry, cause error) bool {
	switch {
	case e.was == nil || e.blamed:
		return false
	case e.reply != nil && e.push != nil:
		r.log.Error("reply of a dead letter refused for good, it is left out", slog.Any(keyError, cause))
		e.reply = nil
		return true
	}
	d := *e.was
	d.Dead = nil
	why := "Queen refuses its settle: "
	if e.reply != nil {
		why = "the function did its work, but Queen refuses its reply: "
	}
	r.addDead(e, d, tooLarge(d, why+cause.Error()), e.nonce())
	e.reply, e.blamed = nil, true
	return true
}

// nonce is the nonce of an entry's rider: the end of its transaction id. A
// reply has none.
func (e *entry) nonce() string {
	var txn string
	switch {
	case e.timer != nil:
		txn = e.timer.TransactionID
	case e.push != nil:
		txn = e.push.TransactionID
	default:
		return rand.Text()
	}
	return txn[strings.LastIndexByte(txn, '/')+1:]
}

// malformed is a transaction that is not even sent.
func malformed(err error) error {
	return &queen.RollbackError{Reason: queen.RollbackBadRequest, Raw: "bad_request", Text: err.Error(), FailedIndex: -1}
}
