package bridge

import "time"

// Origin is where a delivery's event was stored first. It never changes over
// retries, holds, dead letters and redrives.
type Origin struct {
	Queue         string    `json:"queue"`
	Partition     string    `json:"partition"`
	PartitionID   string    `json:"partitionId"`
	TransactionID string    `json:"transactionId"`
	MessageID     string    `json:"messageId"`
	CreatedAt     time.Time `json:"createdAt"`
}

// Failure is the last failure of a delivery.
type Failure struct {
	Class  FailureClass `json:"class"`
	Status int          `json:"status,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// Delivery is one event on one route, with what its earlier attempts left.
// In the source queue Hop and Attempt are 0.
type Delivery struct {
	Route   string
	Origin  Origin
	Lineage string // see Lineage
	// Hop counts every move (retry, hold, dead letter, redrive); it never
	// goes back.
	Hop int
	// Attempt counts the calls made so far.
	Attempt     int
	FirstFailed time.Time // zero: never failed
	LastFailed  time.Time
	Last        Failure
	// Payload is the payload as it was pushed to the source queue. Nil where
	// only its Claim is at hand.
	Payload []byte
	// Claim stands in the envelope instead of Payload where it is set.
	Claim *Claim
	// Dead is set in dead envelopes.
	Dead *DeadReason
}

// FailureClass is the reason of a failure or dead letter, as in config.md.
type FailureClass string

// The failure classes (config.md). Throttled, Connect, TLS and Redirect are
// the target's; the rest are the message's.
const (
	FailureHTTP4xx        FailureClass = "http_4xx"
	FailureHTTP5xx        FailureClass = "http_5xx"
	FailureTimeout        FailureClass = "timeout"
	FailureConnect        FailureClass = "connect"
	FailureTLS            FailureClass = "tls"
	FailureRedirect       FailureClass = "redirect"
	FailureFunctionError  FailureClass = "function_error"
	FailureThrottled      FailureClass = "throttled"
	FailureTooLarge       FailureClass = "too_large"
	FailureFilter         FailureClass = "filter_error"
	FailureTransform      FailureClass = "transform_error"
	FailureCrashLoop      FailureClass = "crash_loop"
	FailureExpired        FailureClass = "expired"
	FailureExhausted      FailureClass = "exhausted"
	FailureUndecodable    FailureClass = "undecodable"
	FailureDroppedByReply FailureClass = "dropped_by_function"
)

// FailureClasses are all classes, in the order of config.md.
func FailureClasses() []FailureClass {
	return []FailureClass{FailureHTTP4xx, FailureHTTP5xx, FailureTimeout, FailureConnect, FailureTLS, FailureRedirect, FailureFunctionError,
		FailureThrottled, FailureTooLarge, FailureFilter, FailureTransform, FailureCrashLoop, FailureExpired, FailureExhausted,
		FailureUndecodable, FailureDroppedByReply}
}

// DeadReason is the structured reason of a dead letter: Queen's DLQ row
// carries it as compact JSON (config.md).
type DeadReason struct {
	Route    string       `json:"route"`
	Class    FailureClass `json:"class"`
	Attempts int          `json:"attempts"`
	First    time.Time    `json:"first"`
	Last     time.Time    `json:"last"`
	Status   int          `json:"status"`
	Error    string       `json:"error"`
	Response string       `json:"response"` // at most 1 KiB
}
