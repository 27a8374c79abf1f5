package adminapi

import (
	"encoding/json"
	"time"
)

// Event is an event without its body and headers.
type Event struct {
	// ID is the transaction id.
	ID string `json:"id"`
	// Source is the source's name, Type the event's type; empty for what another
	// client pushed.
	Source string `json:"source"`
	Type   string `json:"type"`
	// Received is when it came in.
	Received time.Time `json:"received,omitzero"`
	// ContentType is that of the body.
	ContentType string `json:"content_type"`
	// Bytes is the size of the body; -1 where it is not at hand.
	Bytes int `json:"bytes"`
}

// Origin is where a delivery's event was first.
type Origin struct {
	// Queue and Partition are where it was pushed.
	Queue     string `json:"queue"`
	Partition string `json:"partition"`
	// TransactionID and MessageID are Queen's ids of the message.
	TransactionID string `json:"transaction_id"`
	MessageID     string `json:"message_id"`
	// Created is when Queen took it.
	Created time.Time `json:"created,omitzero"`
}

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	// ID names it among those of its route.
	ID string `json:"id"`
	// Route is the route's name.
	Route string `json:"route"`
	// Failed is when it was given up.
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
	// Class is such as http_4xx, timeout, exhausted or expired.
	Class string `json:"class"`
	// Attempts is how many calls there were.
	Attempts int `json:"attempts"`
	// First and Last are when it failed first and last.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Status of the last answer; 0: there was none.
	Status int `json:"status"`
	// Error says what was wrong, without secrets.
	Error string `json:"error"`
	// Response is the head of what the function answered, at most 1 KiB. A
	// viewer does not see it.
	Response string `json:"response,omitempty"`
}

// DeadLetterPage is one page of dead letters, newest first. Rows come and go
// between two pages: one may be seen twice.
type DeadLetterPage struct {
	Items []DeadLetter `json:"items"`
	// NextPageToken is page_token of the next page; empty on the last one.
	NextPageToken string `json:"next_page_token"`
}

// Selection says which dead letters of a route are meant: all that fit what is
// set.
type Selection struct {
	// IDs are those of dead letters.
	IDs []string `json:"ids,omitempty"`
	// Classes are those of their reasons, such as http_4xx.
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
	Key string `json:"key"`
	// Due is when it is tried again.
	Due time.Time `json:"due"`
	// Hop counts every move of the delivery.
	Hop int `json:"hop"`
	// Delivery is the webhook-id that the function saw. It and what follows are
	// there only with details, unless the retry just became due.
	Delivery string  `json:"delivery,omitempty"`
	Event    *Event  `json:"event,omitempty"`
	Origin   *Origin `json:"origin,omitempty"`
	// Attempt is how many calls there were.
	Attempt int `json:"attempt,omitempty"`
	// FirstFailed is when it failed first.
	FirstFailed time.Time `json:"first_failed,omitzero"`
	Last        *Failure  `json:"last,omitempty"`
}

// Failure is the last failure of a delivery.
type Failure struct {
	// Class is such as http_5xx or timeout.
	Class string `json:"class"`
	// Status of the answer; 0: there was none.
	Status int `json:"status"`
	// Error says what was wrong, without secrets.
	Error string `json:"error"`
}

// RetryPage is one page of retries, in the order of their keys.
type RetryPage struct {
	Items []Retry `json:"items"`
	// NextPageToken is page_token of the next page; empty on the last one.
	NextPageToken string `json:"next_page_token"`
}

// TestEvent is the body of a test-fire: an event as a source would make it.
type TestEvent struct {
	// Type is the event's type, Source the name of the source it came from.
	Type   string `json:"type,omitempty"`
	Source string `json:"source,omitempty"`
	// Headers are those of the webhook.
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
	Delay string `json:"delay"`
	// Status of the answer; 0: there was none.
	Status int `json:"status"`
	// Elapsed is how long the call took, such as 12ms.
	Elapsed string `json:"elapsed"`
	// Class and Error say why it was not delivered; "" where it was.
	Class string `json:"class"`
	Error string `json:"error"`
	// Body is the head of the answer; Truncated says that there was more.
	Body      string `json:"body"`
	Truncated bool   `json:"truncated"`
}
