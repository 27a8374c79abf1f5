package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// This file is batch.size above 1 with ordering partition: a call has a prefix
// of what is leased of one partition. What was delivered before the first
// failure is committed, the partition waits there, and what the function
// handled behind it comes again: order is kept at the price of a repetition,
// as with ordered streams elsewhere (Kinesis).

// callPrefix calls the message in hand and those behind it, and acts on it.
func (o *ordered) callPrefix(head *item, event *bridge.Event) bool {
	if o.forms == nil {
		o.forms = make([]*format.Item, len(o.items))
	}
	o.forms[o.at] = &format.Item{Event: event, Delivery: &head.d}
	items, forms, end := o.prefix(head)
	var by asked
	resp, err := o.attempt(items, func() (req *bridge.Request) {
		req, by = o.r.requestOf(forms)
		return req
	})
	if err != nil {
		return o.notCalled(err)
	}
	a := o.r.judgeAnswer(items, &resp, by)
	if err := o.kept(); err != nil {
		for i, it := range items {
			it.out = a.outs[i]
			if i > 0 && it.delivered() { // the first one is in hand
				o.r.repeats(1)
			}
		}
		return o.notCalled(err)
	}
	if a.whole {
		o.narrow(&a, head, end)
		return true
	}
	return o.actOn(&a, items, end)
}

// prefix is what is called with the message in hand, and where it ends: items
// behind end are not of it, those before are or need no call.
func (o *ordered) prefix(head *item) (items []*item, forms []format.Item, end int) {
	most := o.r.together(head.d.Attempt)
	if o.at < o.suspect {
		most = min(most, max(1, (o.suspect-o.at)/2))
	}
	items, forms, end = []*item{head}, []format.Item{*o.forms[o.at]}, o.at+1
	size := o.r.encoder.Size(o.forms[o.at])
	for end < len(o.items) && len(items) < most {
		it := o.items[end]
		fits, called := o.joins(it, end, &size)
		if !fits {
			break
		}
		if called {
			items, forms = append(items, it), append(forms, *o.forms[end])
		}
		end++
	}
	return items, forms, end
}

// joins says that an item may stand in the same prefix as those before it,
// and that it is to be called. What ends as a dead letter is met as the head.
func (o *ordered) joins(it *item, at int, size *int) (fits, called bool) {
	if o.r.memo.has(it.msg.ID) {
		it.state = ackOnly
	}
	if slices.ContainsFunc(o.items[o.done:at], func(x *item) bool { return x.msg.TransactionID == it.msg.TransactionID }) {
		return false, false
	}
	if it.state == ackOnly {
		return true, false
	}
	if o.forms[at] == nil && !o.form(it, at) {
		return it.state == ackOnly, false
	}
	if *size += o.r.encoder.Size(o.forms[at]); *size > o.r.encoder.Limit() {
		return false, false
	}
	return true, true
}

// form reads an item and asks the filter; false: it is not called.
func (o *ordered) form(it *item, at int) bool {
	d, _, unreadable := o.r.read(it.msg, o.r.cfg.Queue)
	event, err := d.Event()
	if unreadable.Kind != "" || err != nil {
		return false
	}
	it.d, it.retried = d, false
	switch wanted, err := o.r.wanted(it, &event); {
	case err != nil:
		return false
	case !wanted:
		it.state = ackOnly
		return false
	}
	sent, err := o.r.transformed(o.r.d.settling, &event)
	if err != nil {
		return false
	}
	o.forms[at] = &format.Item{Event: sent, Delivery: &it.d}
	return true
}

// narrow looks for the culprit of a batch that failed as a whole: it counts
// the call for the message in hand, and lets the next one have half as many.
func (o *ordered) narrow(a *answer, head *item, end int) {
	now := time.Now()
	head.d = failedOnce(head.d, now, a.outs[0].Failure)
	head.repeats++
	o.suspect, o.uncounted = end, true
	o.tally.count = count{MessageID: head.msg.ID, N: head.d.Attempt, FirstFailed: head.d.FirstFailed.UTC()}
	o.r.log.LogAttrs(context.Background(), slog.LevelWarn, "batch failed, calling half of it",
		slog.Int(keyCount, len(a.outs)), slog.Int(keyStatus, a.resp.Status), slog.String(keyError, a.outs[0].Failure.Error))
}

// actOn carries out the outcomes up to the first failure.
func (o *ordered) actOn(a *answer, items []*item, end int) bool {
	now := time.Now()
	for i, it := range items {
		out := a.outs[i]
		it.out, it.since = out, now
		o.r.record(attempted{it: it, resp: &a.resp, out: out, batch: len(items)})
		if out.Kind != bridge.Delivered {
			o.at = slices.Index(o.items, it)
			return o.act(it, out)
		}
	}
	o.at = end - 1
	return o.next(o.items[o.at])
}
