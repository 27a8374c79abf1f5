package dispatch

import (
	"log/slog"
	"strings"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// acker sends plain acks, grouped across the partitions of a consumer group.
// Plain acks are not rate limited, and each partition is answered on its own.
type acker struct {
	d     *Dispatcher
	lanes *lanes
}

// fullAcks is how many acks make a full call.
const fullAcks = 256

func newAcker(d *Dispatcher) *acker {
	a := &acker{d: d}
	a.lanes = newLanes(d, packAcks, a.send)
	return a
}

// submit hands over a settlement without riders; its end is told through done.
func (a *acker) submit(s *settlement) {
	a.lanes.submit(laneKey{node: s.lease.Node, group: s.lease.Group}, s)
}

func packAcks(waiting []*settlement) (n int, full bool) {
	acks := 0
	for n < len(waiting) && acks < fullAcks {
		acks += len(waiting[n].entries)
		n++
	}
	return n, acks >= fullAcks
}

// send acks until every settlement is answered for good.
func (a *acker) send(unit []*settlement, landed func()) {
	ctx := a.d.settling
	for pause := (backoff{}); len(unit) > 0; {
		acks := acksOf(unit)
		a.d.m.settles.WithLabelValues("ack").Observe(float64(len(acks)))
		verdicts, err := a.d.queen.AckBatch(ctx, acks)
		if finalRefusal(err) {
			a.refusedCall(unit, err, landed)
			return
		}
		unit = a.read(unit, verdicts, err)
		if len(unit) == 0 {
			return
		}
		pause.tell(landed) // others need not wait for these
		a.d.m.resends.Inc()
		a.d.log.LogAttrs(ctx, pause.level(), "acks not answered for good, sent again", slog.Int(keyCount, len(acks)), slog.Any(keyError, err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			endAll(unit, result{verdict: abandoned})
			return
		}
	}
}

func acksOf(unit []*settlement) []queen.Ack {
	n := 0
	for _, s := range unit {
		n += len(s.entries)
	}
	acks := make([]queen.Ack, 0, n)
	for _, s := range unit {
		for i := range s.entries {
			acks = append(acks, s.entries[i].ack)
		}
	}
	return acks
}

// refusedCall: the call itself was refused for good, because of one of its
// acks: each settlement on its own.
func (a *acker) refusedCall(unit []*settlement, err error, landed func()) {
	if len(unit) > 1 {
		for i := range unit {
			a.send(unit[i:i+1], landed)
		}
		return
	}
	a.d.log.Error("ack refused for good, the messages come again", slog.String(keyRoute, unit[0].r.cfg.Name),
		slog.String(keyEvent, unit[0].entries[0].ack.TransactionID), slog.Any(keyError, err))
	unit[0].end(result{verdict: refused})
}

// read ends the settlements that were answered for good and returns the
// others. A whole batch acked again is refused, so a repeat is safe.
func (a *acker) read(unit []*settlement, verdicts []queen.AckVerdict, err error) (again []*settlement) {
	denied := classify(err) == operators
	at := 0
	for _, s := range unit {
		n := len(s.entries)
		if len(verdicts) < at+n || err != nil && !answered(verdicts[at:at+n]) {
			if denied {
				s.r.status.block(err)
			}
			s.unsure = s.unsure || !denied
			again = append(again, s)
			at += n
			continue
		}
		s.r.status.unblock()
		switch v := verdictOf(verdicts[at : at+n]); v.answer {
		case ackAgain:
			again = append(again, s)
		case ackForgotten:
			// Delivered, or its riders are out: never called again by this process.
			s.r.memo.add(s.entries)
			a.refusedAck(s, v.text, forgotten)
		case ackRefused:
			a.refusedAgain(s, v.text)
		default:
			s.end(result{})
		}
		at += n
	}
	return again
}

// refusedAgain reads the refusal of an ack: where an earlier one got no answer
// it most likely arrived, for its repeat is refused like this.
func (a *acker) refusedAgain(s *settlement, text string) {
	if !s.unsure {
		a.refusedAck(s, text, refused)
		return
	}
	s.r.log.LogAttrs(a.d.settling, slog.LevelDebug, "ack refused when sent again: the unanswered one had arrived, or the lease was lost",
		slog.Int(keyCount, len(s.entries)), slog.String(keyError, text))
	s.count()
	s.end(result{verdict: refused, arrived: true})
}

func (a *acker) refusedAck(s *settlement, text string, v verdict) {
	s.r.m.lost.WithLabelValues(s.r.cfg.Name).Inc()
	s.r.log.Warn("ack refused, the messages come again unless they were acked before",
		slog.Int(keyCount, len(s.entries)), slog.String(keyError, text))
	s.end(result{verdict: v})
}

// answered says that a call of the group was answered: the client tells the
// missing ones apart.
func answered(verdicts []queen.AckVerdict) bool {
	for _, v := range verdicts {
		if !v.Success && v.Error == "not answered" {
			return false
		}
	}
	return true
}

type ackAnswer int8

const (
	ackDone ackAnswer = iota
	ackAgain
	ackRefused
	ackForgotten
)

type ackRead struct {
	answer ackAnswer
	text   string
}

// verdictOf reads the verdicts of one settlement's acks. Only success counts;
// texts merely tell whether asking again may help (queen-contract.md §5.2: they
// differ between the generations).
func verdictOf(verdicts []queen.AckVerdict) ackRead {
	for _, v := range verdicts {
		switch {
		case v.Success:
		case v.Temporary():
			return ackRead{ackAgain, v.Error}
		case strings.HasPrefix(v.Error, "unresolvable"): // 1.x; 2.x says it of lost leases too
			return ackRead{ackForgotten, v.Error}
		default:
			return ackRead{ackRefused, v.Error}
		}
	}
	return ackRead{}
}

// giveBack returns a part of which nothing was started.
func (p *part) giveBack() {
	ack := completed(p.items[0].msg, p.lease)
	ack.Status = queen.AckRetry
	p.r.returnBatch(ack)
	p.close(result{verdict: refused})
}

// returnBatch acks with `retry`, which releases the lease and charges nothing.
// If it is refused the lease runs out instead.
func (r *route) returnBatch(ack queen.Ack) {
	ctx := r.d.settling
	for pause, tries := (backoff{}), 0; tries < 3; tries++ {
		v, err := r.d.queen.Ack(ctx, ack)
		if err == nil && !v.Temporary() || sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return
		}
	}
}
