package queen

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Config makes a Client.
type Config struct {
	// URLs are the Queen nodes, at least one.
	URLs []string
	// Token is the bearer token. Empty: none.
	Token string
	// Transport carries the requests. Nil: one keep-alive transport of the
	// client's own, tuned for long polls. The embedded broker in the same
	// process is reached through an in-process one.
	Transport http.RoundTripper
	// Logger defaults to discarding.
	Logger *slog.Logger
}

// Client speaks Queen's HTTP API. Safe for concurrent use.
type Client struct{}

var errStub = errors.New("not implemented yet")

func New(Config) (*Client, error)                                       { return &Client{}, nil }
func (c *Client) Close()                                                {}
func (c *Client) Push(context.Context, []Item) ([]PushVerdict, error)   { return nil, errStub }
func (c *Client) Pop(context.Context, PopRequest) (Popped, error)       { return Popped{}, errStub }
func (c *Client) AckBatch(context.Context, []Ack) ([]AckVerdict, error) { return nil, errStub }
func (c *Client) Ack(context.Context, Ack) (AckVerdict, error)          { return AckVerdict{}, errStub }

// Extend lengthens a lease to at least d from now; never shortens it.
// renewed counts the partitions still held under it: 0 means lost.
func (c *Client) Extend(ctx context.Context, l Lease, d time.Duration) (renewed int, err error) {
	return 0, errStub
}

// Prepared is an encoded transaction: its bytes stay the same over resends.
type Prepared struct{}

func (t Transaction) Prepare() (Prepared, error) { return Prepared{}, errStub }

// Len is the size of the encoded body in bytes.
func (p Prepared) Len() int { return 0 }

// Commit sends a prepared transaction once. A *RollbackError means that
// nothing was committed; any other error that it may have been: send the same
// Prepared again (see Uncertain).
func (c *Client) Commit(ctx context.Context, p Prepared) (Commit, error) { return Commit{}, errStub }

func (c *Client) KV(context.Context, []KVOp) ([]KVResult, error)           { return nil, errStub }
func (c *Client) Schedule(context.Context, []Timer) ([]TimerStatus, error) { return nil, errStub }
func (c *Client) CancelTimer(ctx context.Context, queue, key string) (TimerStatus, error) {
	return "", errStub
}

// CountTimers counts pending timers of a queue, up to limit.
func (c *Client) CountTimers(ctx context.Context, queue string, limit int) (int, error) {
	return 0, errStub
}
func (c *Client) DeadLetters(context.Context, DeadLetterQuery) ([]DeadLetter, error) {
	return nil, errStub
}
func (c *Client) DeleteDeadLetter(ctx context.Context, partitionID, txn string) error { return errStub }
func (c *Client) Configure(context.Context, QueueOptions) error                       { return errStub }

// Depth is the number of messages of queue that group has not consumed.
func (c *Client) Depth(ctx context.Context, queue, group string) (int, error) { return 0, errStub }
func (c *Client) Health(context.Context) (Health, error)                      { return Health{}, errStub }

// Probe asks what the broker can do and refuses one without timers and KV
// with a *UnsupportedError that names the version it saw.
func (c *Client) Probe(context.Context) (Health, error) { return Health{}, errStub }

// Uncertain says that a call may have taken effect although it failed: no
// answer, 5xx, a cut answer. Repeat only what is safe to repeat.
func Uncertain(err error) bool { return errors.Is(err, errStub) }

func containsFold(s, sub string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(sub))
}
func (e *RollbackError) Error() string { return "transaction refused: " + e.Raw + ": " + e.Text }
func (e *StatusError) Error() string   { return e.Method + " " + e.Path + ": " + e.Text }
