package signing

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Fetcher gets what providers publish keys in. Implementations must be safe
// for concurrent use, bound every call in time and size, follow no redirect,
// and keep answers: a verifier asks for every request it proves.
// [HTTPFetcher] is one.
type Fetcher interface {
	// Fetch returns the body of an answer with status 200. The bytes must not
	// be changed by anyone. Any other outcome is an error, which must not hold
	// header values or the body of the request.
	Fetch(KeyRequest) ([]byte, error)
}

// KeyRequest asks for a key set, a certificate or one key. Its URL is fixed by
// the scheme or the configuration, or has passed the scheme's rule for host
// and path; it is never one a sender may choose freely.
type KeyRequest struct {
	Method string
	// URL is always https.
	URL    string
	Header http.Header
	Body   []byte
	// MaxAge is how old a kept answer may be.
	MaxAge time.Duration
}

// FetchError says that a key could not be had: the request was neither proven
// nor disproven, so it should be answered with 503. It unwraps to the cause.
type FetchError struct {
	// URL is what was fetched, without query.
	URL string
	Err error
}

func (e *FetchError) Error() string { return fmt.Sprintf("fetch key from %s: %v", e.URL, e.Err) }

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

var errNoFetcher = errors.New("nothing is set up to fetch keys")

// fetch asks the fetcher.
func (v *Verifier) fetch(r KeyRequest) ([]byte, error) {
	if v.fetcher == nil {
		return nil, &FetchError{URL: withoutQuery(r.URL), Err: errNoFetcher}
	}
	body, err := v.fetcher.Fetch(r)
	if err != nil {
		return nil, &FetchError{URL: withoutQuery(r.URL), Err: err}
	}
	return body, nil
}

func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an unreadable URL"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// publicKey finds the key of an id: among the pinned ones first, then by the
// scheme's own fetching.
func (v *Verifier) publicKey(in *input, id string) (crypto.PublicKey, error) {
	if public, ok := v.scheme.pinned[id]; ok {
		return public, nil
	}
	if !v.scheme.fetchKeys || v.scheme.load == nil {
		return nil, reject(ReasonUnknownKey, "no key of this source has the id the request names")
	}
	return v.scheme.load(v, in, id)
}

// keyID is the form of the ids of keys: what a sender writes must fit before
// it is looked up or becomes part of a request to the provider.
var keyID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// parsedKeys remembers what fetched bytes hold, so that a certificate is not
// parsed for every request.
type parsedKeys struct {
	mu sync.Mutex
	of map[string]parsedEntry
}

type parsedEntry struct {
	first *byte
	size  int
	keys  map[string]crypto.PublicKey
}

// maxParsed bounds the entries: a sender can name many certificates.
const maxParsed = 64

// get returns the keys in raw, parsing it when it has not been seen under
// this name. A fetcher hands out the same slice while it keeps an answer.
func (p *parsedKeys) get(name string, raw []byte, parse func([]byte) (map[string]crypto.PublicKey, error)) (map[string]crypto.PublicKey, error) {
	if len(raw) == 0 {
		return nil, errors.New("the answer is empty")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.of[name]; ok && e.first == &raw[0] && e.size == len(raw) {
		return e.keys, nil
	}
	keys, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if p.of == nil || len(p.of) >= maxParsed {
		p.of = make(map[string]parsedEntry)
	}
	p.of[name] = parsedEntry{first: &raw[0], size: len(raw), keys: keys}
	return keys, nil
}

// keysOption reads keys and fetch_keys. An id may be anything: what a sender
// names has passed the scheme's rule before it is looked up here.
func keysOption(r *reader, s *scheme) {
	s.fetchKeys = r.boolean("fetch_keys", true)
	keys := r.texts("keys")
	if len(keys) > 0 {
		s.pinned = make(map[string]crypto.PublicKey, len(keys))
	}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		public, err := readPublicKey("", keys[id])
		if err == nil {
			err = s.algorithm.fitsAny(public)
		}
		if err != nil {
			r.add(r.at("keys")+"."+id, "%s", err)
			continue
		}
		s.pinned[id] = public
	}
}

// fitsAny is fits where the algorithm is known already; where the tokens of a
// scheme may use several, each key is checked when it is used.
func (a algorithm) fitsAny(public crypto.PublicKey) error {
	if a == "" {
		return nil
	}
	return a.fits(public)
}

// needsKeys reports options that could never find a key.
func needsKeys(r *reader, s *scheme) {
	if len(s.pinned) == 0 && !s.fetchKeys {
		r.add(r.at("keys"), "is required with fetch_keys: false, as no key could ever be found: pin one, or allow fetching")
	}
}
