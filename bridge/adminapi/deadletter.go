package adminapi

import (
	"encoding/json"
	"time"
)

// Event is an event without its body and headers.
type Event struct {
	ID          string    `json:"id"` // the transaction id
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Received    time.Time `json:"received,omitzero"`
	ContentType string    `json:"content_type"`
	// Bytes is the size of the body; -1 where it is not at hand.
	Bytes int `json:"bytes"`
}

// Origin is where a delivery's event was first.
type Origin struct {
	Queue         string    `json:"queue"`
	Partition     string    `json:"partition"`
	TransactionID string    `json:"transaction_id"`
	MessageID     string    `json:"message_id"`
	Created       time.Time `json:"created,omitzero"`
}

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	ID     string    `json:"id"`
	Route  string    `json:"route"`
	Failed time.Time `json:"failed"`
	// Delivery is the webhook-id that the function saw.
	Delivery string `json:"delivery"`
	Event    Event  `json:"event"`
	Origin   Origin `json:"origin"`
	Reason   Reason `json:"reason"`
	// Redrivable is false for what somebody else put into the dead queue.
	Redrivable bool `json:"redrivable"`
	// Payload is what was pushed to the source queue; only where it was asked
	// for by an operator. PayloadError says why it is not there.
	Payload      string `json:"payload,omitempty"`
	PayloadError string `json:"payload_error,omitempty"`
}

// Reason says why a delivery is dead (config.md).
type Reason struct {
	Class    string    `json:"class"`
	Attempts int       `json:"attempts"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Status   int       `json:"status"`
	Error    string    `json:"error"`
	// Response is the head of what the function answered, at most 1 KiB. A
	// viewer does not see it.
	Response string `json:"response,omitempty"`
}

// DeadLetterPage is one page of dead letters, newest first. Rows come and go
// between two pages: one may be seen twice.
type DeadLetterPage struct {
	Items         []DeadLetter `json:"items"`
	NextPageToken string       `json:"next_page_token"`
}

// Selection says which dead letters of a route are meant: all that fit what is
// set.
type Selection struct {
	IDs     []string `json:"ids,omitempty"`
	Classes []string `json:"classes,omitempty"`
	// Event is the transaction id of the event.
	Event string `json:"event,omitempty"`
	// Since and Until bound the time of failure: from Since, up to but not
	// including Until. Zero: no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Order is the body of a redrive or deletion of many.
type Order struct {
	Selection
	// Limit bounds how many are touched by one request. 0 means 1000, which is
	// the most.
	Limit int `json:"limit,omitempty"`
	// PerSecond spreads them. 0 means as fast as Queen answers.
	PerSecond float64 `json:"per_second,omitempty"`
	// DryRun changes nothing: Done says how many it would be.
	DryRun bool `json:"dry_run,omitempty"`
}

// OrderResult is what an Order came to.
type OrderResult struct {
	// Done were redriven or deleted.
	Done int `json:"done"`
	// Skipped cannot be redriven: somebody else put them there.
	Skipped int `json:"skipped"`
	// Failed are still there; Problems name some of them, with their reasons.
	Failed   int      `json:"failed"`
	Problems []string `json:"problems"`
}

// Retry is a delivery that waits for its next attempt.
type Retry struct {
	// Key names it until it is due.
	Key string    `json:"key"`
	Due time.Time `json:"due"`
	Hop int       `json:"hop"`
	// The rest is there only with details, unless the retry just became due.
	Delivery    string    `json:"delivery,omitempty"`
	Event       *Event    `json:"event,omitempty"`
	Origin      *Origin   `json:"origin,omitempty"`
	Attempt     int       `json:"attempt,omitempty"`
	FirstFailed time.Time `json:"first_failed,omitzero"`
	Last        *Failure  `json:"last,omitempty"`
}

// Failure is the last failure of a delivery.
type Failure struct {
	Class  string `json:"class"`
	Status int    `json:"status"`
	Error  string `json:"error"`
}

// RetryPage is one page of retries, in the order of their keys.
type RetryPage struct {
	Items         []Retry `json:"items"`
	NextPageToken string  `json:"next_page_token"`
}

// TestEvent is the body of a test-fire: an event as a source would make it.
type TestEvent struct {
	Type    string            `json:"type,omitempty"`
	Source  string            `json:"source,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// ContentType defaults to application/json.
	ContentType string `json:"content_type,omitempty"`
	// Body is JSON; a JSON string stands for its text. Left out: {}.
	Body json.RawMessage `json:"body,omitempty"`
}

// TestResult is what a test-fire came to.
type TestResult struct {
	// Filtered: the route does not want the event; nothing was called.
	Filtered bool `json:"filtered"`
	// Outcome of a first delivery: delivered, retry, hold or dead.
	Outcome string `json:"outcome"`
	// Delay is when it would be tried again, such as 5s; "" where it would not.
	Delay   string `json:"delay"`
	Status  int    `json:"status"`
	Elapsed string `json:"elapsed"`
	Class   string `json:"class"`
	Error   string `json:"error"`
	// Body is the head of the answer; Truncated says that there was more.
	Body      string `json:"body"`
	Truncated bool   `json:"truncated"`
}
