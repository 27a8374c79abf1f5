package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// deadMargin is how long before its ack horizon a dead envelope is moved on:
// once Queen forgot its id a `dlq` is refused, and spoils the plain ack too.
const deadMargin = time.Hour

// dlqTries is how often a `dlq` that Queen's database refuses is tried.
const dlqTries = 3

// deadFeed pops the route's dead queue, one message at a time: a `dlq` ack
// ends the leased batch, so whatever followed it would come again (measured
// 1.3.0).
func (r *route) deadFeed() *feed {
	f := &feed{r: r, queue: bridge.DeadQueue(r.cfg.Name), take: r.bury, seldom: newSeldom()}
	f.plan = func(context.Context, bool) (planned, error) { return planned{batch: 1, partitions: 1}, nil }
	f.base = queen.PopRequest{Queue: f.queue, Group: r.cfg.Name, Lease: leaseNone, SubscriptionMode: "all"}
	return f
}

// bury files one dead envelope in Queen's DLQ, with its reason.
func (r *route) bury(_ context.Context, p queen.Popped) {
	ctx := r.d.settling
	for i := range p.Messages { // one, as asked
		m := &p.Messages[i]
		ack := queen.Ack{TransactionID: m.TransactionID, PartitionID: m.PartitionID, Lease: p.Lease}
		switch {
		case r.memo.has(m.ID):
			r.ackCopied(ctx, m, ack)
		case m.BadData, time.Since(m.CreatedAt) > bridge.DeadAckHorizon-deadMargin:
			r.moveOn(ctx, m, ack)
		default:
			r.fileDLQ(ctx, m, ack)
		}
	}
}

// fileDLQ acks with `dlq`. What Queen refuses for good is moved on: it would
// block its lane.
func (r *route) fileDLQ(ctx context.Context, m *queen.Message, ack queen.Ack) {
	ack.Status, ack.Error = queen.AckDLQ, r.deadReason(m)
	refusedFor := 0
	for pause := (backoff{}); ; {
		v, err := r.d.queen.Ack(ctx, ack)
		switch readDLQ(v, err) {
		case dlqFiled, dlqLeaseLost:
			return
		case dlqForgotten:
			r.moveOn(ctx, m, ack)
			return
		case dlqRefused:
			if refusedFor++; refusedFor >= dlqTries {
				r.moveOn(ctx, m, ack)
				return
			}
		}
		r.log.LogAttrs(ctx, pause.level(), "dead letter not filed, trying again", slog.String(keyError, v.Error), slog.Any("cause", err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return
		}
	}
}

type dlqAnswer int8

const (
	dlqFiled     dlqAnswer = iota
	dlqAgain               // no definite answer; a repeat of a filed one is refused
	dlqLeaseLost           // or filed before
	dlqForgotten
	dlqRefused
)

func readDLQ(v queen.AckVerdict, err error) dlqAnswer {
	switch {
	case err != nil, v.Temporary():
		return dlqAgain
	case v.Success:
		return dlqFiled
	case strings.HasPrefix(v.Error, "unresolvable"):
		return dlqForgotten
	case strings.Contains(v.Error, "lease"), strings.Contains(v.Error, "consumer not found"), strings.Contains(v.Error, "already committed"):
		return dlqLeaseLost
	}
	return dlqRefused
}

// deadReason is the text of the DLQ row.
func (r *route) deadReason(m *queen.Message) string {
	d, ours, err := bridge.DecodeDelivery(m.Data)
	switch {
	case err != nil:
		return r.foreignReason(m, err.Error()).Compact()
	case !ours || d.Dead == nil:
		return r.foreignReason(m, "no dead letter of this bridge").Compact()
	}
	return d.Dead.Compact()
}

func (r *route) foreignReason(m *queen.Message, text string) *bridge.DeadReason {
	return &bridge.DeadReason{
		Route: r.cfg.Name, Class: bridge.FailureUndecodable, Error: text, First: m.CreatedAt, Last: m.CreatedAt,
	}
}

// moveOn pushes a dead envelope again, written anew so that it holds nothing a
// database refuses, and acks the old one plain. The id of the copy is fixed: a
// repeat is a duplicate.
func (r *route) moveOn(ctx context.Context, m *queen.Message, ack queen.Ack) {
	item := queen.Item{
		Queue: bridge.DeadQueue(r.cfg.Name), Partition: m.Partition,
		TransactionID: m.TransactionID + "'", Payload: r.sanitised(m),
	}
	for pause := (backoff{}); ; {
		verdicts, err := r.d.queen.Push(ctx, []queen.Item{item})
		if err == nil && len(verdicts) == 1 &&
			(verdicts[0].Status == queen.PushQueued || verdicts[0].Status == queen.PushDuplicate) {
			break
		}
		if err == nil {
			err = fmt.Errorf("the push was answered %v", verdicts)
		}
		r.log.LogAttrs(ctx, pause.level(), "dead letter not moved on, trying again", slog.Any(keyError, err))
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return
		}
	}
	r.memo.add([]entry{{messageID: m.ID}})
	r.ackCopied(ctx, m, ack)
}

// ackCopied acks an envelope whose copy is stored.
func (r *route) ackCopied(ctx context.Context, m *queen.Message, ack queen.Ack) {
	ack.Status, ack.Error = queen.AckCompleted, ""
	for pause := (backoff{}); ; {
		verdicts, err := r.d.queen.AckBatch(ctx, []queen.Ack{ack})
		switch {
		case err == nil && len(verdicts) == 1 && verdicts[0].Success:
			r.memo.forget(m.ID)
			return
		case err == nil && len(verdicts) == 1 && !verdicts[0].Temporary():
			r.log.LogAttrs(ctx, slog.LevelWarn, "old dead letter not acked, it comes again", slog.String(keyError, verdicts[0].Error))
			return
		}
		if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
			return
		}
	}
}

// sanitised is the envelope of a message written anew; raw bytes that are none
// become the payload of one.
func (r *route) sanitised(m *queen.Message) []byte {
	if d, ours, err := bridge.DecodeDelivery(m.Data); err == nil && ours {
		if d.Dead == nil {
			d.Dead = r.foreignReason(m, "no dead letter of this bridge")
		}
		return d.AppendEnvelope(nil)
	}
	d := bridge.NewDelivery(r.cfg.Name, bridge.Origin{
		Queue: bridge.DeadQueue(r.cfg.Name), Partition: m.Partition, PartitionID: m.PartitionID,
		TransactionID: m.TransactionID, MessageID: m.ID, CreatedAt: m.CreatedAt,
	}, m.Data)
	d.Dead = r.foreignReason(m, "not JSON an envelope may be")
	return d.AppendEnvelope(nil)
}
