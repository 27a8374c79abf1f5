package bridge

import (
	"net/http"
	"time"
)

// Request is one call to a function, as the dispatcher asks a Sender for it.
type Request struct {
	// DeliveryID is stable over all attempts: webhook-id.
	DeliveryID string
	// Attempt is 1 for the first call.
	Attempt     int
	Queue       string
	Partition   string
	Headers     []Header // of the event; the sender adds its own
	ContentType string
	Body        []byte
	// Traceparent is that of the attempt's span; without tracing, that of the
	// event, "" for several. W3C Trace Context.
	Traceparent string
	// Capture is how many bytes of the answer's body are needed: by a reply,
	// or by a report of failed items. 0: none, a head of it will do for dead
	// letters and logs.
	Capture int64
}

// Response is what a function answered, or how the call failed. Exactly one
// of Status and Err is set.
type Response struct {
	Status int
	Header http.Header
	// Body holds at most Request.Capture bytes, or without it the sender's
	// limit; Truncated says that there was more.
	Body      []byte
	Truncated bool
	// Cut says that the body ended too soon: the connection was lost, or time
	// was up. The status stands; what needed the body has an unknown outcome.
	Cut bool
	// Judged is what the Sender knows of the answer beyond its status, or of
	// Err; there only its Scope is read. Nil: status and Class say it all.
	Judged *Judgement
	// Err is set when there is no complete answer.
	Err error
	// Class of Err: timeout, connect, tls, … Empty when Err is nil.
	Class FailureClass
	// Sent says that the request may have reached the function: the attempt
	// counts.
	Sent    bool
	Elapsed time.Duration
}

// Judgement is a Sender's word on an answer whose status says too little. AWS
// Lambda answers 200 for a function that failed and 502 for a key that is
// disabled. Each field that is not empty takes the place of the outcome
// table's; a route's outcome lists still beat Kind, but never make a failure
// of a 2xx answer a success.
type Judgement struct {
	Kind  OutcomeKind
	Class FailureClass
	// Error is one line: it ends up in logs and dead letters.
	Error string
	// Scope says whose failure it is, where the outcome does not.
	Scope FailureScope
}

// FailureScope says whose failure a failed call is.
type FailureScope string

// The scopes (dispatch.md §2.3).
const (
	// ScopeOutcome leaves it to the outcome: hold is the target's failure.
	ScopeOutcome FailureScope = ""
	// ScopeTarget is a failure of the target, although the attempt counts: its
	// breaker counts it, and no event of a batch is to blame.
	ScopeTarget FailureScope = "target"
	// ScopeBroken is a target that no call gets through to until somebody acts:
	// its breaker opens at once.
	ScopeBroken FailureScope = "broken"
)

// Scope is whose failure an answer is.
func (r *Response) Scope() FailureScope {
	if r.Judged == nil {
		return ScopeOutcome
	}
	return r.Judged.Scope
}

// OutcomeKind is what becomes of a delivery after an attempt.
type OutcomeKind string

// The outcomes.
const (
	Delivered OutcomeKind = "delivered"
	Retry     OutcomeKind = "retry" // the attempt counted; again after Delay
	Dead      OutcomeKind = "dead"
	Hold      OutcomeKind = "hold" // the target's fault: again after Delay, attempt not counted
)

// Outcome is the decision about one attempt. See Decide.
type Outcome struct {
	Kind  OutcomeKind
	Delay time.Duration
	// Failure is set unless Kind is Delivered.
	Failure Failure
	// PauseTarget holds the whole target this long (Retry-After). 0: not.
	PauseTarget time.Duration
	// DisableTarget asks to pause the target (410).
	DisableTarget bool
	// Response is the head of the answer, for the dead letter: at most 1 KiB.
	Response string
}
