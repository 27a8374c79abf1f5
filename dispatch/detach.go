package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// detachTimeout bounds the cancel of a timer: where it gets no answer, the
// timer fires and the event is called once more.
const detachTimeout = 5 * time.Second

// detachFailure is what the retry of a detached call says of it.
var detachFailure = bridge.Failure{
	Class: bridge.FailureTimeout,
	Error: "no answer within detach_after, outcome unknown to this retry",
}

var errDetached = errors.New(detachFailure.Error)

// detach lets a slow call hold its partition no longer: its retry is settled
// now, due at the call's own deadline and the backoff. mu is held.
func (p *part) detach(it *item) {
	it.state = detached
	it.key = bridge.TimerKey(it.d.Lineage, it.d.Hop+1)
	now := time.Now()
	it.out = bridge.Outcome{Kind: bridge.Retry, Failure: detachFailure,
		Delay: max(0, it.deadline.Sub(now)) + p.r.backoff(it.d.Attempt+1, now)}
	if p.answered == nil {
		p.answered = make(chan struct{})
	}
}

// backoff is the delay after the attempt-th failure, also where that was the
// last one allowed: the retry of a detached call ends it when popped.
func (r *route) backoff(attempt int, now time.Time) time.Duration {
	slow := bridge.Response{Err: errDetached, Class: bridge.FailureTimeout, Sent: true}
	facts := bridge.Facts{Attempt: min(attempt, r.policy.MaxAttempts()-1)}
	return bridge.Decide(slow, facts, r.policy, now, rand.Float64).Delay
}

// detachEnded is the end of a detached call. Only success acts: once the settle
// was answered it pushes the reply, then it cancels the timer. On every other end the timer is the
// retry; it may be another holder's by now, and is let be.
func (p *part) detachEnded(it *item, out bridge.Outcome) {
	if out.Kind != bridge.Delivered {
		return
	}
	select {
	case <-p.answered:
	case <-p.r.d.settling.Done():
		return
	}
	ctx, cancel := context.WithTimeout(p.r.d.settling, detachTimeout)
	defer cancel()
	if it.reply != nil {
		if err := p.r.d.store(ctx, []queen.Item{*it.reply}, func() {}); err != nil {
			p.r.repeats(1)
			p.r.log.LogAttrs(ctx, slog.LevelWarn, "reply of a detached call not pushed, the event is called again",
				slog.String(keyEvent, it.d.Origin.TransactionID), slog.Any(keyError, err))
			return
		}
		p.r.m.replies.WithLabelValues(p.r.cfg.Name).Inc()
	}
	status, err := p.r.d.queen.CancelTimer(ctx, p.r.retryQueue, it.key)
	if status != queen.TimerCancelled {
		p.r.repeats(1)
	}
	if err != nil {
		p.r.log.LogAttrs(ctx, slog.LevelWarn, "retry of a delivered event not cancelled, it may be delivered again",
			slog.String(keyEvent, it.d.Origin.TransactionID), slog.Any(keyError, err))
		return
	}
	p.r.log.LogAttrs(ctx, slog.LevelDebug, "retry of a detached call cancelled",
		slog.String(keyEvent, it.d.Origin.TransactionID), slog.String(keyStatus, string(status)))
}
