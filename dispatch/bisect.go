package dispatch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// called is what a call of several events came to. outs has the outcome of
// each; until they are carried out, events of a batch that failed as a whole
// may be called again.
type called struct {
	members []member
	answer
}

// callMembers makes one call of events whose call has begun.
func (r *route) callMembers(p *permit, members []member) called {
	defer p.release()
	if len(members) == 0 {
		return called{}
	}
	items, forms := make([]*item, len(members)), make([]format.Item, len(members))
	for i, m := range members {
		items[i], forms[i] = m.it, *m.form
	}
	req, by := r.requestOf(forms)
	resp := r.attempt(r.d.calling, p, req, items[0].deadline)
	return called{members, r.judgeAnswer(items, &resp, by)}
}

// resolve carries out the outcomes of a call, after finding the culprit of a
// batch that failed as a whole.
func (r *route) resolve(c called) {
	if c.whole {
		r.bisect(c)
		return
	}
	r.finish(c)
}

// bisect calls the halves of a failed batch at once. A function that fails
// both without saying that it is the event's fault is taken to be in trouble
// itself: more calls would not help it, the events come again by their timers,
// in smaller batches.
func (r *route) bisect(c called) {
	r.log.LogAttrs(context.Background(), slog.LevelWarn, "batch failed, calling its halves",
		slog.Int(keyCount, len(c.members)), slog.Int(keyStatus, c.resp.Status), slog.String(keyError, c.outs[0].Failure.Error))
	front, back := c.halves()
	f, b := r.again(front), r.again(back)
	if f.kind == bridge.Retry && b.kind == bridge.Retry {
		r.finish(f)
		r.finish(b)
		return
	}
	r.resolve(f)
	r.resolve(b)
}

func (c called) halves() (front, back called) {
	n := (len(c.members) + 1) / 2
	front, back = c, c
	front.members, front.outs = c.members[:n], c.outs[:n]
	back.members, back.outs = c.members[n:], c.outs[n:]
	return front, back
}

// again calls events of a failed batch again. What cannot be called now has
// the outcome of the call before, and what has one attempt left is called
// alone.
func (r *route) again(c called) called {
	if len(c.members) == 0 {
		return called{}
	}
	if together, alone := r.partLast(c); len(alone) > 0 && len(c.members) > 1 {
		for _, one := range alone {
			r.finish(r.again(one))
		}
		return r.again(together)
	}
	permit, err := r.d.limiter.acquire(r.life, r.claim, 0)
	if err != nil {
		r.finish(c)
		return called{}
	}
	now := time.Now()
	members := make([]member, 0, len(c.members))
	for i, m := range c.members {
		switch begun, wasDetached := m.p.beginAgain(m.it, c.outs[i], now); {
		case begun:
			members = append(members, m)
		default:
			r.record(attempted{m.it, &c.resp, c.outs[i], wasDetached, len(c.members)})
		}
	}
	return r.callMembers(&permit, members)
}

// partLast takes apart what has only one attempt left.
func (r *route) partLast(c called) (together called, alone []called) {
	together = called{answer: c.answer}
	together.outs = nil
	for i, m := range c.members {
		if m.it.d.Attempt+1 >= r.policy.MaxAttempts()-1 {
			one := called{members: c.members[i : i+1], answer: c.answer}
			one.outs = c.outs[i : i+1]
			alone = append(alone, one)
			continue
		}
		together.members, together.outs = append(together.members, m), append(together.outs, c.outs[i])
	}
	return together, alone
}

// beginAgain counts the call that failed and begins another one; not where the
// item's part has been settled, with a retry for it, or its lease may have run
// out.
func (p *part) beginAgain(it *item, failed bridge.Outcome, now time.Time) (begun, wasDetached bool) {
	if p.lease.left() <= 0 {
		return false, p.ended(it, failed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if it.state != running {
		return false, true
	}
	it.d = failedOnce(it.d, now, failed.Failure)
	it.repeats++
	it.since, it.deadline = now, now.Add(p.r.target.timeout())
	return true, false
}

// finish carries out the outcomes of a call.
func (r *route) finish(c called) {
	for i, m := range c.members {
		out := c.outs[i]
		wasDetached := m.p.ended(m.it, out)
		r.record(attempted{m.it, &c.resp, out, wasDetached, len(c.members)})
		if wasDetached && out.Kind == bridge.Delivered {
			r.spawn(func() { m.p.detachEnded(m.it, out) })
		}
	}
}

// answer is what became of the events of one call.
type answer struct {
	resp bridge.Response
	outs []bridge.Outcome
	// kind is what the answer says of the call as a whole.
	kind bridge.OutcomeKind
	// whole says that a call of several events failed and nobody knows which
	// of them is the culprit.
	whole bool
}

// judgeAnswer reads the answer to a call of items. The target feels it once.
func (r *route) judgeAnswer(items []*item, resp *bridge.Response, by asked) (a answer) {
	defer func() {
		r.m.attempted(resp, a.worst())
		by.span.end(resp, a.worst())
	}()
	a = answer{resp: *resp, outs: make([]bridge.Outcome, len(items))}
	first := r.decide(items[0], resp)
	a.kind, _ = r.policy.Judge(*resp, time.Now())
	if a.kind == bridge.Delivered && r.cfg.ReportItemFailures {
		r.report(&a, items, by.ids)
		return a
	}
	for i, it := range items {
		a.outs[i] = first
		if i > 0 && a.kind != bridge.Delivered {
			a.outs[i] = r.outcome(it, resp)
		}
		r.spare(&a, i, it)
	}
	a.whole = len(items) > 1 && (a.kind == bridge.Retry || a.kind == bridge.Dead) && !first.DisableTarget && resp.Scope() == bridge.ScopeOutcome
	return a
}

// worst is the outcome of the first item that was not delivered, or of all.
func (a *answer) worst() *bridge.Outcome {
	return &a.outs[max(0, slices.IndexFunc(a.outs, func(o bridge.Outcome) bool { return o.Kind != bridge.Delivered }))]
}

// outcome is what an answer means for one of several items.
func (r *route) outcome(it *item, resp *bridge.Response) bridge.Outcome {
	now := time.Now()
	out := bridge.Decide(*resp, bridge.Facts{Attempt: it.d.Attempt + 1, FirstFailed: it.d.FirstFailed}, r.policy, now, rand.Float64)
	if out.Kind == bridge.Hold {
		r.holdLonger(&out, it, now)
	}
	return out
}

// spare keeps the i-th item from ending for the fault of another: what was not
// called alone is tried again. Calls that looked for a culprit lengthen no
// backoff.
func (r *route) spare(a *answer, i int, it *item) {
	out := &a.outs[i]
	if len(a.outs) > 1 && out.Kind == bridge.Dead && out.Failure.Class != bridge.FailureExpired {
		*out = bridge.Outcome{Kind: bridge.Retry, Failure: out.Failure, Delay: r.backoff(it.d.Attempt+1, time.Now())}
	}
	if out.Kind == bridge.Retry && out.PauseTarget == 0 && it.repeats > 0 {
		out.Delay = min(out.Delay, r.backoff(it.d.Attempt+1-it.repeats, time.Now()))
	}
}
