package adminapi

import (
	"fmt"
	"strings"
	"time"
)

// Problem is one thing wrong with a resource.
type Problem struct {
	// Path is relative to the resource, such as retry.max_attempts; "" is the
	// resource as a whole. What is wrong with another resource because of this
	// one has its path from the top: routes/pushes-to-ci.target.
	Path string `json:"path"`
	// Value is what stands there, where that is short and no secret.
	Value string `json:"value,omitempty"`
	// Text says what is wrong and, where it is not plain, what to do.
	Text string `json:"text"`
	// Warning marks a problem that refuses nothing.
	Warning bool `json:"warning,omitempty"`
}

// Code names a kind of error, for programs.
type Code string

// The codes, each with its HTTP status.
const (
	CodeMalformed       Code = "malformed"         // 400: the request cannot be read
	CodeUnauthenticated Code = "unauthenticated"   // 401: no token, or not one of ours
	CodeForbidden       Code = "forbidden"         // 403: the token's role does not allow it, or a browser asked
	CodeNotFound        Code = "not_found"         // 404
	CodeMethod          Code = "method"            // 405
	CodeConflict        Code = "conflict"          // 409: it cannot be done in this state
	CodeManagedByFile   Code = "managed_by_file"   // 409: the configuration file owns the resource
	CodeInUse           Code = "in_use"            // 409: another resource needs it
	CodeDraining        Code = "draining"          // 409: the route was deleted and is not gone yet
	CodeNewerVersion    Code = "newer_version"     // 409: a newer bridge stored it, with what this one does not know
	CodePrecondition    Code = "precondition"      // 412: If-Match or If-None-Match does not hold
	CodeTooLarge        Code = "too_large"         // 413
	CodeMediaType       Code = "media_type"        // 415
	CodeInvalid         Code = "invalid"           // 422: Problems lists what is wrong
	CodeRateLimited     Code = "rate_limited"      // 429
	CodeInternal        Code = "internal"          // 500
	CodeUnavailable     Code = "queen_unavailable" // 503: Queen is away; the change may have been made
	CodeNotServed       Code = "not_served"        // 503: this process does not run the part that can do it
)

// OfTheResource says that the code is about the resource that a request names,
// and not about the one who asks, the bridge or Queen: other resources may be
// written all the same.
func (c Code) OfTheResource() bool {
	switch c {
	case CodeConflict, CodeManagedByFile, CodeInUse, CodeDraining, CodeNewerVersion, CodePrecondition, CodeTooLarge, CodeInvalid, CodeNotFound, CodeMalformed:
		return true
	}
	return false
}

// Error is an answer that is no success: application/problem+json (RFC 9457).
type Error struct {
	// Type is about:blank: Code tells errors apart.
	Type string `json:"type"`
	// Title is the text of the HTTP status, Status its number.
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   Code   `json:"code"`
	// Detail is one sentence about this very error, with what to do.
	Detail string `json:"detail,omitempty"`
	// RequestID stands in the bridge's log, too.
	RequestID string    `json:"request_id,omitempty"`
	Problems  []Problem `json:"problems,omitempty"`

	// RetryAfter is the wait that the answer asked for, 0 where it did not.
	RetryAfter time.Duration `json:"-"`
}

// Error has one line for the error and one for each problem.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", e.Status, e.Code)
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for _, p := range e.Problems {
		b.WriteString("\n" + p.String())
	}
	return b.String()
}

// String is retry.max_attempts: must be 1 or more, got 0.
func (p Problem) String() string {
	text := p.Text
	if p.Warning {
		text = "warning: " + text
	}
	if p.Path == "" {
		return text
	}
	return p.Path + ": " + text
}
