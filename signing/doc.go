// Package signing proves that a webhook request came from the sender that
// holds a shared secret, and signs the requests we send ourselves. It leaves
// to others what to do with a request, where secrets come from and how the
// value expressions of a preset become an event: it knows neither Queen nor
// configuration files.
//
// A scheme is a preset (one provider, [Lookup]) or a generic verifier that the
// user describes in full (hmac, token, basic, none). Almost every scheme is a
// declarative row: where the signature stands, how that header is written, how
// the signature and the key are encoded, which parts of the request are
// signed and where the timestamp is. [New] compiles a row with a user's
// [Options], or reports every problem it finds.
//
//	v, problems := signing.New(signing.Options{Scheme: "github", Secrets: []string{secret}})
//	proof, err := v.Verify(request)
//
// Promises: the bytes are verified as they were received, before anything is
// parsed; comparisons take constant time; the order is structure, signature,
// timestamp window; a request carries at most 16 signatures; no error text
// contains a secret, a body or a computed signature.
package signing
