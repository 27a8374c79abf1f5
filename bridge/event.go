package bridge

import "time"

// Class says how well an event's sender is proven.
type Class string

// The classes of an event.
const (
	ClassVerified      Class = "verified"      // the body is signed
	ClassAuthenticated Class = "authenticated" // the sender showed a credential
	ClassNone          Class = "none"          // nothing was proven
)

// Header is one header line as received, its name in lower case.
type Header struct{ Name, Value string }

// Event is one webhook as it travels through Queen (design.md, "The event in
// the queue"). Body is byte-exact.
type Event struct {
	ID          string // the transaction id
	Source      string
	Type        string
	Received    time.Time // microseconds, UTC
	Class       Class
	Method      string
	Path        string
	Query       string // credential values redacted
	Headers     []Header
	ContentType string
	Body        []byte
	Traceparent string
}
