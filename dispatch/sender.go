package dispatch

import (
	"context"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Sender calls one function. Package dispatch/sendertest holds what any Sender
// must do, as tests. A Sender that has a method Close() is closed once, when
// Run ended or Update replaced it and its last call has ended.
type Sender interface {
	// Send makes one call and returns the answer, whatever its status, or how
	// the call failed: exactly one of Response.Status and Response.Err is set,
	// and with Err its Class.
	//
	// Send must return soon after ctx ends; ctx carries the attempt's
	// deadline, which covers connection setup and the whole answer. It must
	// not repeat a call that may have reached the function: Response.Sent is
	// false only where it certainly did not. It must not change the Request,
	// nor keep it or its Body after it returned. It is called from many
	// goroutines at once.
	Send(ctx context.Context, r *bridge.Request) bridge.Response
}

// Default timeouts of one attempt (config.md).
const (
	defaultHTTPTimeout   = 30 * time.Second
	defaultLambdaTimeout = 60 * time.Second
)

// attemptTimeout bounds one attempt at a target.
func attemptTimeout(t bridge.Target) time.Duration {
	switch {
	case t.HTTP != nil && t.HTTP.Timeout > 0:
		return t.HTTP.Timeout
	case t.Lambda != nil && t.Lambda.Timeout > 0:
		return t.Lambda.Timeout
	case t.Lambda != nil:
		return defaultLambdaTimeout
	}
	return defaultHTTPTimeout
}
