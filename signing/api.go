package signing

import (
	"crypto"
	"crypto/tls"
	"net/http"
	"net/netip"
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
	// TLS is the connection the request came over, nil without TLS. Only
	// scheme mtls looks at it.
	TLS *tls.ConnectionState
	// Peer is the other end of the socket. Only scheme mtls looks at it: a
	// forwarded certificate counts from trusted proxies alone.
	Peer netip.Addr
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
	ReasonUnknownKey         Reason = "unknown_key"     // a key id or certificate that is neither pinned nor may be fetched
	ReasonBadClaim           Reason = "bad_claim"       // a signed token or signature says something else than it must
	ReasonNotAllowed         Reason = "not_allowed"     // proven, but not from a topic, account or name that was allowed
	ReasonBadCertificate     Reason = "bad_certificate" // a client certificate that nobody trusted issued, or of another name
	ReasonUnsupported        Reason = "unsupported"     // an algorithm, version or component this scheme does not take
)

// Rejection says why a request was not proven. Its text names headers and,
// for timestamps, the skew; never a secret, a body or a computed signature.
type Rejection struct {
	Reason Reason
	Detail string
	// Skew of ReasonTimestampWindow is now minus the signed time at fault, of a
	// request whose signature is good; 0 of all others.
	Skew time.Duration
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

	// Fetcher gets the public keys of schemes whose providers publish them.
	// nil: nothing can be fetched, so every key that is not pinned ends in a
	// [*FetchError]. See [NewFetcher].
	Fetcher Fetcher

	// ForgeKey is the private key [Forge] signs with where the secrets hold
	// only the public one; ForgeKeyID is the key id (or certificate URL) it
	// writes, by default the first of the pinned keys. New ignores both.
	ForgeKey   crypto.Signer
	ForgeKeyID string
}

// Problem is one thing wrong with Options. Path is secrets[0],
// scheme_options.header, public_url, scheme …
type Problem struct{ Path, Text string }

// Answer is what an accepted request is answered.
type Answer struct {
	Status      int
	Body        string
	ContentType string
	// Header are more headers of the answer, nil where there are none.
	Header http.Header
}

// Reply is the answer of a handshake.
type Reply struct {
	Status      int
	Header      http.Header
	Body        []byte
	ContentType string
	// Surface is a secret the provider handed over in the handshake: the
	// operator must see it once, to put it into the source's secrets. It must
	// not be logged or stored elsewhere.
	Surface string
	// Confirm is an https URL of the provider that has to be called with GET
	// once, after the answer is on its way; "" where there is none. The host
	// has been checked; redirects must not be followed.
	Confirm string
	// Detail says why a guard refused the handshake, for the log; "" where
	// none did. It repeats nothing of the request.
	Detail string
}
