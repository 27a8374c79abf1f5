package dispatch

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// maxReplyBody is how much of an answer a reply may be made of: in base64 it
// fits the riders of one settle.
const maxReplyBody = maxRiderBytes * 3 / 4

// replies says that the route's answers are pushed as events.
func (r *route) replies() bool { return r.cfg.Reply.Queue != "" }

// needsBody says that an answer with this status is a success only with its
// whole body.
func (r *route) needsBody(status int) bool {
	return r.replies() && status != http.StatusAccepted && status != http.StatusNoContent
}

// addReply makes the answer of a call the item's reply: a success's, and with
// reply.on_failure the one that ended the delivery as a dead letter, unless
// only its head is known. A reply that no settle could carry ends the delivery
// as too_large: it is never cut.
func (r *route) addReply(it *item, event *bridge.Event, resp *bridge.Response, out bridge.Outcome) bridge.Outcome {
	failed := out.Kind == bridge.Dead && r.cfg.Reply.OnFailure && !resp.Truncated && !resp.Cut && !r.pausesAt(out)
	if !r.replies() || !resp.HasReply() || out.Kind != bridge.Delivered && !failed {
		return out
	}
	payload := bridge.ReplyEvent(&it.d, event, resp, failed, time.Now()).AppendPayload(nil)
	switch {
	case len(payload) <= r.d.room.riders:
		it.reply = &queen.Item{
			Queue: r.cfg.Reply.Queue, Partition: r.cfg.Reply.ReplyPartition(&it.d, resp),
			TransactionID: bridge.ReplyTxn(it.d.Lineage, it.d.Hop), Payload: payload,
		}
	case !failed:
		return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{
			Class: bridge.FailureTooLarge, Status: resp.Status, Error: "the answer is larger than a reply may be (32 MiB)"}}
	}
	return out
}

// repliesAlone pushes the replies of settlements by themselves and takes them
// out of what is left to settle: their ids are fixed, so what Queen had before
// is `duplicate`, which in a transaction refuses all the rest (design.md,
// "Refusals"). A reply Queen refuses for good makes its event a dead letter.
// False: ctx ended.
func (b *bundler) repliesAlone(ctx context.Context, unit []*settlement, stuck func()) bool {
	var items []queen.Item
	for e := range replied(unit) {
		items = append(items, *e.reply)
	}
	if len(items) == 0 {
		return true
	}
	together := b.d.store(ctx, items, stuck)
	for e, s := range replied(unit) {
		err := together
		if err != nil && len(items) > 1 {
			err = b.d.store(ctx, []queen.Item{*e.reply}, stuck)
		}
		switch {
		case err == nil:
			s.r.m.replies.WithLabelValues(s.r.cfg.Name).Inc()
			s.bytes -= len(e.reply.Payload)
			e.reply = nil
		case ctx.Err() != nil:
			return false
		default:
			s.r.blame(e, err)
			s.bytes = sizeOf(s.entries)
		}
	}
	return true
}

// replied yields the entries that carry a reply, with their settlements.
func replied(unit []*settlement) iter.Seq2[*entry, *settlement] {
	return func(yield func(*entry, *settlement) bool) {
		for _, s := range unit {
			for i := range s.entries {
				if s.entries[i].reply != nil && !yield(&s.entries[i], s) {
					return
				}
			}
		}
	}
}

// store pushes items until Queen has them, or had them before. An error is the
// end of ctx, or Queen's refusal for good. `buffered` is not stored: that spool
// may be lost.
func (d *Dispatcher) store(ctx context.Context, items []queen.Item, stuck func()) error {
	for pause := (backoff{}); ; {
		verdicts, err := d.queen.Push(ctx, items)
		if err == nil {
			if err = notStored(verdicts); err == nil {
				return nil
			}
		} else if finalRefusal(err) {
			return err
		}
		pause.tell(stuck)
		d.m.resends.Inc()
		d.log.LogAttrs(ctx, pause.level(), "push not answered for good, sent again", slog.Int(keyCount, len(items)), slog.Any(keyError, err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return err
		}
	}
}

// notStored is an error where a verdict says that an item is not in Queen for
// good.
func notStored(verdicts []queen.PushVerdict) error {
	for _, v := range verdicts {
		if v.Status != queen.PushQueued && v.Status != queen.PushDuplicate {
			return fmt.Errorf("the push was answered %s: %s", v.Status, v.Error)
		}
	}
	return nil
}
