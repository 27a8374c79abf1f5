package bridge

import "time"

// Ordering says what a failing event may delay.
type Ordering string

// The orderings of a route.
const (
	// OrderingNone delays nothing: a failing event comes back by a timer.
	OrderingNone Ordering = "none"
	// OrderingPartition delays the event's partition, and only that.
	OrderingPartition Ordering = "partition"
)

// Route sends the events of one queue to one target.
type Route struct {
	// Name is required: ^[a-z0-9][a-z0-9_-]{0,62}$.
	Name string `json:"name"`
	// Queue is required.
	Queue string `json:"queue"`
	// Target is required.
	Target string `json:"target"`
	// Group is the consumer group. Defaults to the name.
	Group string `json:"group"`
	// Subscribe is all (the default), new, or an RFC 3339 time.
	Subscribe string `json:"subscribe"`
	// Filter is a CEL expression; events it refuses are acked and counted.
	// Exclusive with Pattern.
	Filter string `json:"filter"`
	// Pattern is an EventBridge event pattern.
	Pattern any `json:"pattern"`
	// Ordering defaults to none.
	Ordering Ordering `json:"ordering"`
	// DetachAfter is when a slower attempt stops holding its partition
	// (ordering none only). Defaults to 2 seconds; 0 means never.
	DetachAfter time.Duration `json:"detach_after"`
	Batch       RouteBatch    `json:"batch"`
	// ReportItemFailures honours {"batchItemFailures":[…]}.
	ReportItemFailures bool `json:"report_item_failures"`
	// Format is passthrough (the default), ndjson, cloudevents-binary,
	// cloudevents-structured, cloudevents-batch or sqs.
	Format    string      `json:"format"`
	Transform Transform   `json:"transform"`
	Retry     RetryPolicy `json:"retry"`
	Outcomes  Outcomes    `json:"outcomes"`
	// OnExhausted is dead_letter (the default) or pause.
	OnExhausted string `json:"on_exhausted"`
	Reply       Reply  `json:"reply"`
	// Concurrency bounds this route's calls at once. 0, the default, means
	// the target's.
	Concurrency int `json:"concurrency"`
	// Paused pops nothing. Defaults to false.
	Paused bool `json:"paused"`
}

// RouteBatch groups events into one call.
type RouteBatch struct {
	// Size defaults to 1.
	Size int `json:"size"`
	// Window waits this long to fill a batch. Defaults to 0.
	Window time.Duration `json:"window"`
}

// Transform replaces body and headers by CEL expressions.
type Transform struct {
	// Body makes the body. Empty means the event's.
	Body string `json:"body"`
	// Headers make headers of the call, by their names.
	Headers map[string]string `json:"headers"`
}

// RetryPolicy says how often and when a failed delivery is tried again.
type RetryPolicy struct {
	// MaxAttempts bounds the calls. Defaults to 12; 100 with ordering
	// partition.
	MaxAttempts int `json:"max_attempts"`
	// MaxAge bounds the time since the first failure. Defaults to 24h; 1h
	// with ordering partition.
	MaxAge time.Duration `json:"max_age"`
	// Backoff is the delay after the 1st, 2nd, … failure; the last repeats.
	Backoff []time.Duration `json:"backoff"`
	// Jitter is equal (50–100 % of the delay, the default), full (0–100 %)
	// or none.
	Jitter string `json:"jitter"`
}

// Outcomes are status codes ("404"), ranges ("500-599") and classes ("5xx")
// that beat the built-in table.
type Outcomes struct {
	// Success means delivered.
	Success []string `json:"success"`
	// Retry means tried again, as the retry policy says.
	Retry []string `json:"retry"`
	// Dead means a dead letter at once.
	Dead []string `json:"dead"`
}

// Reply pushes the function's answer as an event.
type Reply struct {
	// Queue takes the replies. Empty, the default, means none.
	Queue string `json:"queue"`
	// Partition is body:<path> or header:<name> of the answer, or
	// literal:<text>. Empty, or where the value is absent: the event's.
	Partition string `json:"partition"`
	// OnFailure also pushes the answer that ended a delivery as a dead letter.
	// Defaults to false.
	OnFailure bool `json:"on_failure"`
}
