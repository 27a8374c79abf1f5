package bridge

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Response headers by which a function steers its delivery; they beat the
// status and Retry-After (config.md, end).
const (
	HeaderOutcome    = "Queen-Outcome"     // success, retry or dead
	HeaderRetryAfter = "Queen-Retry-After" // seconds
)

// throttledDelay is the least delay after a 429 that names none (dispatch.md
// §5, Backoff).
const throttledDelay = 30 * time.Second

// Facts are what Decide knows of the delivery besides the answer.
type Facts struct {
	// Attempt is the number of this call; 1 for the first.
	Attempt int
	// FirstFailed is when the delivery failed first; zero: never before.
	FirstFailed time.Time
	// NeedsBody says that a success is none without its whole body: a reply is
	// made of it, or a report of failed items is read in it.
	NeedsBody bool
}

// Decide says what becomes of a delivery after one attempt. It is pure; random
// yields numbers in [0, 1) for the jitter. The rules are those of dispatch.md
// §5, the first that fits deciding:
//
//   - the response header Queen-Outcome: success, retry or dead;
//   - the route's outcome lists;
//   - the Sender's own judgement (Response.Judged);
//   - 2xx is delivered. 408, 409, 423, 425 and 5xx count the attempt and are
//     retried, and so are a timeout and a lost connection once the request may
//     have been sent. What is the target's fault (429, 503 with Retry-After,
//     401, 403, 404, 405, 407, 3xx, and everything before a request is sent) is
//     held: tried again, the attempt not counted. 501, 505 and the other 4xx
//     are dead; 410 disables the target too;
//   - a success whose body is needed and was cut off has an unknown outcome: the
//     attempt counts and is retried. One with a larger body than can be taken
//     is dead with class too_large: the function did its work, and would answer
//     as much again.
//
// A counted failure of the last attempt is dead with class exhausted, and any
// failure at max_age since the first one with class expired; both keep the
// status and the error text. With Retry-After a delay is the longer of it and the
// backoff, and at most an hour; no delay is past max_age.
func Decide(resp Response, f Facts, p Policy, now time.Time, random func() float64) Outcome {
	v := judge(resp, p, now)
	if f.NeedsBody {
		v.wantBody(resp)
	}
	if v.kind == Delivered {
		return Outcome{Kind: Delivered}
	}
	out := Outcome{Kind: v.kind, Failure: v.failure, DisableTarget: v.disable}
	if v.kind != Dead {
		out.PauseTarget = v.after
		out.limit(f, p, now)
	}
	if out.Kind == Dead {
		out.Response = responseHead(resp.Body)
		return out
	}
	out.Delay = v.delay(f, p, now, random)
	return out
}

// limit turns a failure that may not be tried again into a dead letter.
func (o *Outcome) limit(f Facts, p Policy, now time.Time) {
	switch {
	case o.Kind == Retry && f.Attempt >= p.maxAttempts:
		o.Kind, o.Failure.Class = Dead, FailureExhausted
	case timeLeft(f, p, now) <= 0:
		o.Kind, o.Failure.Class = Dead, FailureExpired
	}
}

// timeLeft is the time until max_age; the first failure may be this one.
func timeLeft(f Facts, p Policy, now time.Time) time.Duration {
	if f.FirstFailed.IsZero() {
		return p.maxAge
	}
	// A clock of another machine may be ahead: no failure is in the future.
	return p.maxAge - max(now.Sub(f.FirstFailed), 0)
}

// verdict is what an answer says, before attempts and age are looked at.
type verdict struct {
	kind    OutcomeKind
	failure Failure
	disable bool
	// after is Retry-After; 0 where it is absent or names the past.
	after time.Duration
	// least is the least delay.
	least time.Duration
}

func (v verdict) delay(f Facts, p Policy, now time.Time, random func() float64) time.Duration {
	d := max(p.delay(f.Attempt, random), v.least)
	if v.after > 0 {
		d = min(max(d, v.after), maxRetryAfter)
	}
	return min(d, timeLeft(f, p, now))
}

// judge reads an answer by the header, the route's lists and the table.
func judge(resp Response, p Policy, now time.Time) verdict {
	if resp.Err != nil {
		return judgeError(resp)
	}
	after, present := retryAfter(resp.Header, now)
	v := judgeStatus(resp.Status, present)
	v.after = after
	v.judged(resp.Judged)
	if kind, ok := askedOutcome(resp.Header); ok {
		v.override(kind, asked(kind, resp.Status, v.failure.Class))
	} else if listed, ok := p.listed[resp.Status]; ok && !failedAs2xx(resp) {
		v.override(listed.kind, v.failure)
	}
	return v
}

// judged takes the Sender's word.
func (v *verdict) judged(j *Judgement) {
	if j == nil {
		return
	}
	if j.Kind != "" {
		v.kind, v.disable = j.Kind, false
	}
	if j.Class != "" {
		v.failure.Class = j.Class
	}
	if j.Error != "" {
		v.failure.Error = lineOf(j.Error)
	}
}

// failedAs2xx says that the Sender knows of a failure behind a status that is
// listed as success.
func failedAs2xx(resp Response) bool {
	return resp.Judged != nil && resp.Judged.Kind != "" && resp.Status >= 200 && resp.Status <= 299
}

// override replaces the table's word.
func (v *verdict) override(kind OutcomeKind, f Failure) {
	v.kind, v.failure, v.disable = kind, f, false
}

// wantBody takes back a success whose body is needed and not there.
func (v *verdict) wantBody(resp Response) {
	switch {
	case v.kind != Delivered:
	case resp.Truncated && !resp.Cut:
		v.override(Dead, Failure{Class: FailureTooLarge, Status: resp.Status,
			Error: fmt.Sprintf("answered %d with more than can be taken", resp.Status)})
	case resp.Cut:
		v.override(Retry, Failure{Class: FailureConnect, Status: resp.Status,
			Error: fmt.Sprintf("answered %d, but its body ended too soon: the outcome is unknown", resp.Status)})
	}
}

// askedOutcome reads Queen-Outcome; an unknown word asks for nothing.
func askedOutcome(h http.Header) (OutcomeKind, bool) {
	switch strings.ToLower(strings.TrimSpace(h.Get(HeaderOutcome))) {
	case "success":
		return Delivered, true
	case "retry":
		return Retry, true
	case "dead":
		return Dead, true
	}
	return "", false
}

// asked is the failure of a function that named its outcome itself.
func asked(kind OutcomeKind, status int, class FailureClass) Failure {
	if kind == Dead {
		class = FailureDroppedByReply
	}
	return Failure{Class: class, Status: status, Error: fmt.Sprintf("answered %d and asked for %s", status, kind)}
}

// judgeStatus is the outcome table of dispatch.md §5.
func judgeStatus(status int, hasRetryAfter bool) verdict {
	failed := func(kind OutcomeKind, class FailureClass) verdict {
		return verdict{kind: kind, failure: Failure{Class: class, Status: status, Error: fmt.Sprintf("answered %d", status)}}
	}
	switch {
	case status >= 200 && status <= 299:
		// The failure counts where a list or the function says it is one.
		return failed(Delivered, FailureFunctionError)
	case status >= 300 && status <= 399:
		return failed(Hold, FailureRedirect)
	case status >= 400 && status <= 499:
		return judge4xx(status, hasRetryAfter, failed)
	case status == 501 || status == 505:
		return failed(Dead, FailureHTTP5xx)
	case status == 503 && hasRetryAfter:
		return failed(Hold, FailureThrottled)
	}
	// What is no status of HTTP is treated as 5xx (RFC 9110 §15).
	return failed(Retry, FailureHTTP5xx)
}

func judge4xx(status int, hasRetryAfter bool, failed func(OutcomeKind, FailureClass) verdict) verdict {
	switch status {
	case 408, 409, 423, 425:
		return failed(Retry, FailureHTTP4xx)
	case 401, 403, 404, 405, 407:
		return failed(Hold, FailureHTTP4xx)
	case 429:
		v := failed(Hold, FailureThrottled)
		if !hasRetryAfter {
			v.least = throttledDelay
		}
		return v
	case 410:
		v := failed(Dead, FailureHTTP4xx)
		v.disable = true
		return v
	}
	return failed(Dead, FailureHTTP4xx)
}

// judgeError reads a call without an answer. What cannot have reached the
// function is the target's fault and does not count.
func judgeError(resp Response) verdict {
	class := resp.Class
	if class == "" {
		class = FailureConnect
	}
	v := verdict{kind: Retry, failure: Failure{Class: class, Error: errorText(resp.Err)}}
	switch class {
	case FailureTooLarge, FailureFilter, FailureTransform, FailureCrashLoop, FailureUndecodable, FailureExpired, FailureExhausted, FailureDroppedByReply:
		v.kind = Dead
	case FailureThrottled, FailureRedirect:
		v.kind = Hold
	default:
		if !resp.Sent {
			v.kind = Hold
		}
	}
	return v
}
