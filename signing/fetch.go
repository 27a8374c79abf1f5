package signing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// fetchTimeout bounds one fetch: the shortest provider hangs up after one
	// to three seconds, and a 503 is better than silence.
	fetchTimeout = 2 * time.Second
	// maxKeyAnswer bounds an answer, in bytes. Google's key set has 2 KiB,
	// PayPal's chain 8 KiB.
	maxKeyAnswer = 64 << 10
	// failureAge is how long a failure is remembered, so that a provider that
	// is down is not asked for every request.
	failureAge = time.Minute
	// maxAnswers bounds what is kept: a sender can name many certificates of
	// one provider.
	maxAnswers = 256
	// maxFetches bounds the fetches that run at once.
	maxFetches = 8
)

// FetcherConfig are the parts of an [HTTPFetcher] that differ in tests and
// unusual networks.
type FetcherConfig struct {
	// RootCAs are who may have issued the certificates of providers. Defaults
	// to the system's.
	RootCAs *x509.CertPool
	// Dial connects. Defaults to a net.Dialer. There is no proxy: what the
	// environment says about one is not asked.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// HTTPFetcher fetches keys over https. Answers are kept as long as requests
// allow, failures for one minute; requests for the same thing wait for one
// fetch, which takes at most two seconds; no redirect is followed and at most
// 64 KiB are read. Safe for concurrent use.
type HTTPFetcher struct {
	client *http.Client
	roots  *x509.CertPool
	now    func() time.Time
	flight singleflight.Group
	slots  chan struct{}

	mu      sync.Mutex
	answers map[string]keyAnswer
}

// keyAnswer is what a fetch gave: a body or an error.
type keyAnswer struct {
	body []byte
	err  error
	at   time.Time
}

// NewFetcher makes a fetcher. Close is not needed: no connection stays open.
func NewFetcher(c FetcherConfig) *HTTPFetcher {
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	transport := &http.Transport{
		DialContext:         dialInTime(c.Dial),
		TLSClientConfig:     &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: fetchTimeout,
		DisableKeepAlives:   true, // fetches are rare
		ForceAttemptHTTP2:   true,
	}
	client := &http.Client{
		Transport: transport, Timeout: fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &HTTPFetcher{
		client: client, roots: c.RootCAs, now: c.Now,
		slots: make(chan struct{}, maxFetches), answers: make(map[string]keyAnswer),
	}
}

// dialInTime bounds a dial. The transport lets one go on after its request has
// given up, for the next request to use.
func dialInTime(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		return dial(ctx, network, address)
	}
}

var (
	errNotHTTPS    = errors.New("the URL is not https with a plain host")
	errManyFetches = errors.New("too many keys are being fetched at once")
)

// Fetch implements [Fetcher].
func (f *HTTPFetcher) Fetch(r KeyRequest) ([]byte, error) {
	if u, err := url.Parse(r.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errNotHTTPS
	}
	name := r.name()
	if a, ok := f.kept(name, r.MaxAge); ok {
		return a.body, a.err
	}
	v, err, _ := f.flight.Do(name, func() (any, error) {
		if a, ok := f.kept(name, r.MaxAge); ok { // another flight has just landed
			return a.body, a.err
		}
		body, err := f.get(r)
		if !errors.Is(err, errManyFetches) {
			f.keep(name, keyAnswer{body: body, err: err, at: f.now()})
		}
		return body, err
	})
	body, _ := v.([]byte)
	return body, err
}

// name tells requests apart without keeping the credentials they carry.
func (r *KeyRequest) name() string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %s\n", r.Method, r.URL)
	for _, key := range slices.Sorted(maps.Keys(r.Header)) {
		_, _ = fmt.Fprintf(h, "%s: %q\n", key, r.Header[key])
	}
	h.Write(r.Body)
	return hex.EncodeToString(h.Sum(nil))
}

func (f *HTTPFetcher) kept(name string, maxAge time.Duration) (keyAnswer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.answers[name]
	if a.err != nil {
		maxAge = failureAge
	}
	return a, ok && f.now().Sub(a.at) < maxAge
}

// keep remembers an answer; the oldest gives way when there are too many.
func (f *HTTPFetcher) keep(name string, a keyAnswer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.answers[name]; !known && len(f.answers) >= maxAnswers {
		oldest := ""
		for n, other := range f.answers {
			if oldest == "" || other.at.Before(f.answers[oldest].at) {
				oldest = n
			}
		}
		delete(f.answers, oldest)
	}
	f.answers[name] = a
}

// get asks the provider. The context is not that of a request: others wait
// for the same fetch, which must not end because the first one hung up.
func (f *HTTPFetcher) get(r KeyRequest) ([]byte, error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return nil, errManyFetches
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, errNotHTTPS
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { _ = response.Body.Close() }() // read to the end, or given up
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{code: response.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxKeyAnswer+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case len(body) > maxKeyAnswer:
		return nil, fmt.Errorf("the answer is longer than %d KiB", maxKeyAnswer>>10)
	}
	return body, nil
}

// statusError is an answer that is not 200.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("answered %d %s", e.code, http.StatusText(e.code)))
}

// cause drops the URL that net/http writes into its errors: it may hold a
// token of the user's.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Roots are who may have issued the certificates of providers, nil for the
// system's.
func (f *HTTPFetcher) Roots() *x509.CertPool { return f.roots }
