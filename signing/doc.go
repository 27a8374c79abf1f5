// Package signing proves that a webhook request came from the sender that
// holds a shared secret or a private key, and signs the requests we send
// ourselves. It leaves to others what to do with a request, where secrets come
// from and how the value expressions of a preset become an event: it knows
// neither Queen nor configuration files.
//
// A scheme is a preset (one provider, [Lookup]) or a generic verifier that the
// user describes in full (hmac, public-key, token, basic, jwt, rfc9421, mtls,
// none). Almost every scheme is a declarative row: where the signature stands,
// how that header is written, how the signature and the key are encoded, which
// parts of the request are signed and where the timestamp is. What no row can
// say is in a file of its own, custom_<provider>.go. [New] compiles a row with
// a user's [Options], or reports every problem it finds.
//
//	v, problems := signing.New(signing.Options{Scheme: "github", Secrets: []string{secret}})
//	reply, is, err := v.Handshake(request) // the provider asks whether we are there
//	proof, err := v.Verify(request)
//	items, split := v.Items(v.Values(request)) // one event each
//	answer, ok := v.Answer(request)            // what the provider wants to hear
//
// Promises: the bytes are verified as they were received, before anything is
// parsed; comparisons take constant time; the order is structure, signature,
// timestamp window; a request carries at most 16 signatures; algorithms and
// the hosts keys come from are fixed by the scheme or the user, never by the
// request; no error text contains a secret, a body or a computed signature.
// Nothing is fetched but through the [Fetcher] of the options, and what cannot
// be fetched is a [*FetchError], not a verdict.
package signing
