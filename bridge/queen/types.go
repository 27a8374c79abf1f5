package queen

import (
	"encoding/json"
	"time"
)

// Item is one message to push. Payload is raw JSON and is stored byte for
// byte by a plain push (a transaction push re-encodes it: measured 1.3.0).
type Item struct {
	Queue         string
	Partition     string // never ""
	TransactionID string
	Payload       json.RawMessage
}

// PushStatus is Queen's verdict on one pushed item.
type PushStatus string

// The verdicts (queen-contract.md §3). Anything else is treated as PushError.
const (
	PushQueued    PushStatus = "queued"
	PushDuplicate PushStatus = "duplicate"
	PushBuffered  PushStatus = "buffered" // not durable: may still be lost
	PushFailed    PushStatus = "failed"
	PushError     PushStatus = "error"
)

// PushVerdict is the answer for one item, in request order.
type PushVerdict struct {
	Status    PushStatus
	MessageID string
	Error     string
}

// PopRequest asks for messages. Queue alone is a queue-scoped pop, Queue and
// Partition a pinned one, Namespace and Task (without Queue) discovery.
type PopRequest struct {
	Queue     string
	Partition string
	Namespace string
	Task      string
	Group     string // required
	// Batch bounds the messages of all partitions together; at least 1.
	Batch int
	// Partitions bounds the partitions claimed; at least 1. Ignored by Queen
	// on a pinned pop.
	Partitions int
	// Wait is how long to wait for a message. 0: do not.
	Wait time.Duration
	// Lease is the lease asked for, in whole seconds; at least 1s.
	Lease time.Duration
	// SubscriptionMode is all or new; required. SubscriptionFrom is an
	// RFC 3339 time that beats it, or "".
	SubscriptionMode string
	SubscriptionFrom string
	// Tolerant reads an answer whose payload is not JSON (a foreign timer's,
	// spliced in raw). Only with Partition and Batch 1.
	Tolerant bool
}

// Message is one popped message.
type Message struct {
	ID            string
	TransactionID string
	Partition     string
	PartitionID   string // opaque
	Data          json.RawMessage
	CreatedAt     time.Time
	// DeliveryAttempt is 0 where the broker does not tell (1.3.0).
	DeliveryAttempt int
	// BadData marks a payload that is not JSON (Tolerant pops only).
	BadData bool
}

// Lease is the right to settle what one pop returned. One lease id may cover
// several partitions; each is held and lost on its own.
type Lease struct {
	ID    string
	Group string
	// Node is the Queen node that granted it; renewals and acks go there.
	Node string
}

// Popped is what a pop returned. No Messages: nothing to do (which may also
// mean that the broker's database is away: ask Health).
type Popped struct {
	Lease    Lease
	Messages []Message
	// Asked is the time before the pop was sent: the lease counts from it.
	Asked time.Time
}

// AckStatus is the word an ack carries. Only these four are sent: Queen takes
// any other for failed (1.x) or completed (2.x).
type AckStatus string

// The ack words.
const (
	AckCompleted AckStatus = "completed"
	AckFailed    AckStatus = "failed"
	AckRetry     AckStatus = "retry"
	AckDLQ       AckStatus = "dlq"
)

// Ack settles one message. LeaseID, PartitionID and the group are always sent.
type Ack struct {
	TransactionID string
	PartitionID   string
	Lease         Lease
	Status        AckStatus
	// Error is stored when the ack dead-letters.
	Error string
}

// AckVerdict is the answer for one ack. Success false is authoritative though
// HTTP was 200; leaseReleased and dlq prove nothing (measured 1.3.0) and are
// not kept.
type AckVerdict struct {
	Success bool
	Noop    bool
	Error   string
}

// Timer schedules a message. Payload must be JSON: what is not poisons its
// partition.
type Timer struct {
	Queue         string
	Key           string
	Partition     string // never ""
	Delay         time.Duration
	TransactionID string
	Payload       json.RawMessage
}

// TimerStatus is Queen's verdict on one timer.
type TimerStatus string

// The timer verdicts. TooLate means that a copy is just firing; it is no error.
const (
	TimerScheduled   TimerStatus = "scheduled"
	TimerRescheduled TimerStatus = "rescheduled"
	TimerCancelled   TimerStatus = "cancelled"
	TimerAbsent      TimerStatus = "absent"
	TimerTooLate     TimerStatus = "too_late"
)

// KVOp is one KV operation. Op is get, getMany, getPrefix, put, putIfAbsent,
// delete or incr.
type KVOp struct {
	Op        string
	Namespace string
	Key       string
	Keys      []string
	Prefix    string
	After     string
	Limit     int
	// KeysOnly leaves the values out of a getPrefix.
	KeysOnly bool
	Value    json.RawMessage
	// TTL is the time to live in whole seconds; 0 with a write means forever.
	TTL time.Duration
	// Expect is the version the row must be at: nil none, 0 must not exist.
	Expect   *int64
	Required bool
	Delta    int64
	Min, Max *int64
}

// KVResult is the answer to one KV operation. Version is opaque: compare for
// equality only.
type KVResult struct {
	Applied   bool
	Found     bool
	Key       string
	Value     json.RawMessage
	Version   int64
	Reason    string // exists, absent, version, limit, type
	Rows      []KVRow
	Missing   []string
	Truncated bool
	NextAfter string
}

// KVRow is one row of a getMany or getPrefix.
type KVRow struct {
	Key     string
	Value   json.RawMessage
	Version int64
}

// Transaction is one atomic bundle: acks, pushes, KV and timers.
type Transaction struct {
	Acks   []Ack
	Pushes []Item
	KV     []KVOp
	Timers []Timer
}

// Commit is the answer to a committed transaction.
type Commit struct {
	// Timers holds one verdict per timer sent, in order.
	Timers []TimerStatus
	KV     []KVResult
}

// RollbackReason is why a transaction was refused as a whole. The spellings of
// 1.x and 2.x are mapped to one.
type RollbackReason string

// The rollback reasons (queen-contract.md §8.3).
const (
	RollbackAckRejected     RollbackReason = "ack_rejected"
	RollbackDuplicate       RollbackReason = "duplicate"
	RollbackKVPrecondition  RollbackReason = "kv_precondition"
	RollbackBadRequest      RollbackReason = "bad_request"
	RollbackPayloadTooLarge RollbackReason = "payload_too_large"
	RollbackTimerHorizon    RollbackReason = "timer_horizon_exceeded"
	RollbackRateLimited     RollbackReason = "rate_limited"
	RollbackTransient       RollbackReason = "transient" // db_error, misaligned, reserved, unavailable
	RollbackDisabled        RollbackReason = "disabled"  // kv_disabled, timers_disabled
	RollbackOther           RollbackReason = "other"
)

// RollbackError is a refused transaction: nothing of it was committed.
type RollbackError struct {
	Status      int // HTTP status; 200 for most
	Reason      RollbackReason
	Raw         string // Queen's own word
	Text        string
	FailedIndex int // of kv_precondition, -1 otherwise
	KVReason    string
	Value       json.RawMessage
	RetryAfter  time.Duration
}

// UnknownTransactionID says that the broker has forgotten an id (1.x: "Old
// events" of design.md).
func (e *RollbackError) UnknownTransactionID() bool {
	return e.Reason == RollbackAckRejected && containsFold(e.Text, "unknown transactionid")
}

// StatusError is an HTTP answer that is no success.
type StatusError struct {
	Method, Path string
	Status       int
	// Code is Queen's code where the body has one ("code", or "error" on the
	// KV and timer surfaces).
	Code       string
	Text       string
	RetryAfter time.Duration
}

// QueueOptions is the full set of options of one queue; configure replaces
// them all (1.x before 1.6).
type QueueOptions struct {
	Queue              string
	Namespace          string
	Task               string
	Lease              time.Duration
	RetryLimit         int
	DedupWindow        time.Duration
	Retention          time.Duration // 0: none
	CompletedRetention time.Duration // 0: none
}

// Health is the broker's own word on itself.
type Health struct {
	Healthy bool
	Engine  string
	Version string
	// Detail says what is wrong when not Healthy.
	Detail string
}

// DeadLetter is one row of Queen's DLQ.
type DeadLetter struct {
	ID            string
	TransactionID string
	PartitionID   string
	Queue         string
	Partition     string
	Group         string
	Error         string
	RetryCount    int
	Data          json.RawMessage
	FailedAt      time.Time
}

// DeadLetterQuery selects DLQ rows, newest first.
type DeadLetterQuery struct {
	Queue  string
	Group  string
	Limit  int // 0: 100
	Offset int
}
