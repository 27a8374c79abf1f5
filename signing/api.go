package signing

import (
	"net/http"
	"time"
)

// Request is what a verifier may look at: the bytes as they were received.
// It must not be changed while in use.
type Request struct {
	Method string
	// Path as received (escaped), without the query.
	Path string
	// RawQuery as received, without "?".
	RawQuery string
	// Header has canonical keys, as net/http makes them.
	Header http.Header
	Body   []byte
	// Now is the time of receipt; timestamp windows are judged by it.
	Now time.Time
}

// Class says how well a scheme proves its sender.
type Class string

// The classes.
const (
	Verified      Class = "verified"      // the body is signed
	Authenticated Class = "authenticated" // a credential was shown; the body is not covered
	Unproven      Class = "none"          // scheme none
)

// Proof is the result of a successful verification.
type Proof struct {
	Class Class
	// Secret is the index of the secret that matched, -1 where there is none.
	Secret int
	// Skew is now minus the signed timestamp; 0 where there is none.
	Skew time.Duration
}

// Reason is why a request was refused: a fixed word for logs and metrics.
type Reason string

// The reasons.
const (
	ReasonMissingSignature   Reason = "missing_signature"
	ReasonMalformedSignature Reason = "malformed_signature"
	ReasonTooManySignatures  Reason = "too_many_signatures"
	ReasonDuplicateHeader    Reason = "duplicate_header"
	ReasonBadSignature       Reason = "bad_signature"
	ReasonMissingTimestamp   Reason = "missing_timestamp"
	ReasonMalformedTimestamp Reason = "malformed_timestamp"
	ReasonTimestampWindow    Reason = "timestamp_outside_window"
	ReasonMissingPart        Reason = "missing_part" // a part of the signed message is absent
	ReasonMalformedBody      Reason = "malformed_body"
	ReasonMissingCredential  Reason = "missing_credential"
	ReasonBadCredential      Reason = "bad_credential"
)

// Rejection says why a request was not proven. Its text names headers and,
// for timestamps, the skew; never a secret, a body or a computed signature.
type Rejection struct {
	Reason Reason
	Detail string
}

func (r *Rejection) Error() string { return string(r.Reason) + ": " + r.Detail }

// Options are a source's choice of scheme.
type Options struct {
	// Scheme is a preset or a generic verifier.
	Scheme string
	// Secrets are tried in order.
	Secrets []string
	// SchemeOptions are the scheme's own options (presets.md), as decoded
	// from YAML or JSON: string, bool, int64, float64, []any, map[string]any.
	SchemeOptions map[string]any
	// PublicURL is the URL given to the provider, without query and fragment.
	PublicURL string
}

// Problem is one thing wrong with Options. Path is secrets[0],
// scheme_options.header, public_url, scheme …
type Problem struct{ Path, Text string }

// Answer is what an accepted request is answered.
type Answer struct {
	Status      int
	Body        string
	ContentType string
}

// Reply is the answer of a handshake.
type Reply struct {
	Status      int
	Header      http.Header
	Body        []byte
	ContentType string
}
