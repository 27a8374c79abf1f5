package signing_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(derivedNow)
	return c
}

func (c *clock) now() time.Time          { return time.Unix(c.at.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d / time.Second)) }

// provider is a TLS server that a fetcher takes for every host.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // host, method and path of each
	dialed   []string
}

// newProvider answers by handle, whose answers a test may change.
func newProvider(t *testing.T, handle http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, r.Method+" https://"+r.Host+r.URL.Path)
		p.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// fetcher trusts the test server under any of the names its certificate has
// (httptest's is for example.com), so those of providers need an own one.
func (p *provider) fetcher(t *testing.T, c *clock, names ...string) *signing.HTTPFetcher {
	t.Helper()
	return signing.NewFetcher(signing.FetcherConfig{RootCAs: p.certify(t, names), Dial: p.dial, Now: c.now})
}

func (p *provider) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	p.dialed = append(p.dialed, address)
	p.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, network, p.Listener.Addr().String())
}

// authority issues certificates in tests.
type authority struct {
	key         crypto.Signer
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := keysOnce().ec[1]
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key: key, certificate: c}
}

// issue makes a certificate for a key.
func (a *authority) issue(t *testing.T, public crypto.PublicKey, template x509.Certificate) []byte {
	t.Helper()
	template.SerialNumber = big.NewInt(2)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Unix(0, 0), time.Unix(1<<33, 0)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func pemCert(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// certify gives the server a certificate for more names.
func (p *provider) certify(t *testing.T, names []string) *x509.CertPool {
	t.Helper()
	if len(names) == 0 {
		pool := x509.NewCertPool()
		pool.AddCert(p.Certificate())
		return pool
	}
	a := newAuthority(t)
	key := keysOnce().ec[0]
	der := a.issue(t, key.Public(), x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	p.TLS.Certificates[0].Certificate, p.TLS.Certificates[0].PrivateKey, p.TLS.Certificates[0].Leaf = [][]byte{der}, key, nil
	return a.pool()
}

func get(address string, age time.Duration) signing.KeyRequest {
	return signing.KeyRequest{Method: http.MethodGet, URL: address, MaxAge: age}
}

func TestFetcherKeepsAnswers(t *testing.T) {
	t.Parallel()
	c := newClock()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.RawQuery) })
	f := p.fetcher(t, c)
	read := func(address string, age time.Duration, requests int) {
		t.Helper()
		body, err := f.Fetch(get(address, age))
		u, _ := url.Parse(address)
		if err != nil || string(body) != u.RawQuery || p.count() != requests {
			t.Errorf("Fetch(%s) = %q, %v after %d requests, want %d", address, body, err, p.count(), requests)
		}
	}
	read("https://example.com/?a", time.Hour, 1)
	read("https://example.com/?a", time.Hour, 1)
	read("https://example.com/?b", time.Hour, 2)
	c.advance(time.Minute)
	read("https://example.com/?a", time.Hour, 2)
	read("https://example.com/?a", time.Minute, 3) // whoever wants a younger one gets it
	c.advance(time.Hour)
	read("https://example.com/?a", time.Hour, 4)
}

// A failure is remembered for a minute; a credential in the request is not in
// its text.
func TestFetcherRemembersFailures(t *testing.T) {
	t.Parallel()
	c := newClock()
	status := atomic.Int64{}
	status.Store(500)
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		io.WriteString(w, "body of the answer") //nolint:errcheck // a test's answer
	})
	f := p.fetcher(t, c)
	request := get("https://example.com/x?token=s3cret", time.Hour)
	request.Header = http.Header{"Authorization": {"Bearer s3cret"}}
	for range 3 {
		if _, err := f.Fetch(request); err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "body of") {
			t.Errorf("Fetch = %v, want an error that shows nothing", err)
		}
	}
	if p.count() != 1 {
		t.Errorf("%d requests within the minute, want 1", p.count())
	}
	status.Store(200)
	c.advance(time.Minute)
	if body, err := f.Fetch(request); err != nil || string(body) != "body of the answer" {
		t.Errorf("Fetch after a minute = %q, %v", body, err)
	}
}

func TestFetcherRefuses(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "https://example.com/ok", http.StatusFound)
		case "/long":
			io.WriteString(w, strings.Repeat("a", 64<<10+1)) //nolint:errcheck // a test's answer
		case "/created":
			w.WriteHeader(http.StatusCreated)
		default:
			io.WriteString(w, strings.Repeat("a", 64<<10)) //nolint:errcheck // a test's answer
		}
	})
	f := p.fetcher(t, newClock())
	for address, want := range map[string]bool{
		"https://example.com/ok": true, "https://example.com/redirect": false, "https://example.com/long": false, "https://example.com/created": false,
		"http://example.com/ok": false, "https://user@example.com/ok": false, "https:///ok": false, "file:///etc/passwd": false, "https://other.test/ok": false, "://": false,
	} {
		if body, err := f.Fetch(get(address, time.Hour)); (err == nil) != want {
			t.Errorf("Fetch(%s) = %d bytes, %v, want ok %t", address, len(body), err, want)
		}
	}
	down := signing.NewFetcher(signing.FetcherConfig{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }})
	if _, err := down.Fetch(get("https://example.com/?token=s3cret", time.Hour)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Fetch(unreachable) = %v, want an error without the query", err)
	}
}

// Whoever asks for the same thing waits for one fetch; too many different
// ones at once are refused, and not remembered as failures.
func TestFetcherFlights(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{}, 100)
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		io.WriteString(w, "key") //nolint:errcheck // a test's answer
	})
	f := p.fetcher(t, newClock())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if body, err := f.Fetch(get(fmt.Sprintf("https://example.com/%d", i%8), time.Hour)); err != nil || string(body) != "key" {
				t.Errorf("Fetch = %q, %v", body, err)
			}
		})
	}
	for range 8 {
		<-arrived
	}
	if _, err := f.Fetch(get("https://example.com/ninth", time.Hour)); err == nil {
		t.Error("a ninth fetch at once was made")
	}
	close(release)
	wg.Wait()
	if p.count() != 8 {
		t.Errorf("%d requests, want 8", p.count())
	}
	if _, err := f.Fetch(get("https://example.com/ninth", time.Hour)); err != nil {
		t.Errorf("Fetch afterwards = %v", err)
	}
}

// A sender can name many certificates; what is kept stays bounded.
func TestFetcherBounds(t *testing.T) {
	t.Parallel()
	c := newClock()
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "key") }) //nolint:errcheck // a test's answer
	f := p.fetcher(t, c)
	for i := range 257 {
		if _, err := f.Fetch(get(fmt.Sprintf("https://example.com/%d", i), time.Hour)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			c.advance(time.Second)
		}
	}
	before := p.count()
	f.Fetch(get("https://example.com/256", time.Hour)) //nolint:errcheck // only the count matters
	f.Fetch(get("https://example.com/0", time.Hour))   //nolint:errcheck // only the count matters
	if got := p.count() - before; got != 1 {
		t.Errorf("%d requests for the newest and the oldest, want 1: the oldest gave way", got)
	}
}

// jwksOf is a key set.
func jwksOf(keys map[string]crypto.PublicKey) string {
	b64 := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	var all []string
	for id, key := range keys {
		switch k := key.(type) {
		case *rsa.PublicKey:
			all = append(all, fmt.Sprintf(`{"kty":"RSA","use":"sig","kid":%q,"n":%q,"e":"AQAB"}`, id, b64(k.N.Bytes())))
		case *ecdsa.PublicKey:
			point, _ := k.Bytes()
			all = append(all, fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":%q,"x":%q,"y":%q}`, id, b64(point[1:33]), b64(point[33:])))
		}
	}
	return `{"keys":[{"kty":"oct","kid":"o","k":"AAAA"},` + strings.Join(all, ",") + `]}`
}

// TestKeySet: keys come from the set; a new id leads to a new fetch at most
// once a minute; a set that cannot be had is no verdict.
func TestKeySet(t *testing.T) {
	t.Parallel()
	k, c := keysOnce(), newClock()
	var set atomic.Value
	set.Store(jwksOf(map[string]crypto.PublicKey{"r": k.rsa[0].Public(), "e": k.ec[0].Public()}))
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, set.Load()) })
	v, problems := signing.New(signing.Options{
		Scheme: "jwt", SchemeOptions: opts("algorithms", []any{"RS256", "ES256"}, "jwks_url", "https://example.com/jwks"), Fetcher: p.fetcher(t, c),
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	claims := map[string]any{"exp": derivedNow + 1<<20}
	verify := func(kid, alg string, sign func([]byte) []byte, reason signing.Reason, requests int) {
		t.Helper()
		r := bearer("Bearer ", makeToken(t, map[string]any{"alg": alg, "kid": kid}, claims, sign), "x")
		r.Now = c.now()
		proof, err := v.Verify(r)
		if checkReason(t, proof, err, reason); p.count() != requests {
			t.Errorf("Verify(%s): %d requests, want %d", kid, p.count(), requests)
		}
	}
	verify("r", "RS256", rs256(k.rsa[0]), "", 1)
	verify("e", "ES256", es256(k.ec[0]), "", 1)
	verify("r", "RS256", rs256(k.rsa[1]), badSig, 1)
	verify("o", "RS256", rs256(k.rsa[0]), signing.ReasonUnknownKey, 1) // the set is younger than a minute
	c.advance(time.Minute)
	verify("new", "RS256", rs256(k.rsa[1]), signing.ReasonUnknownKey, 2)
	set.Store(jwksOf(map[string]crypto.PublicKey{"r": k.rsa[0].Public(), "new": k.rsa[1].Public()}))
	verify("new", "RS256", rs256(k.rsa[1]), signing.ReasonUnknownKey, 2)
	c.advance(time.Minute)
	verify("new", "RS256", rs256(k.rsa[1]), "", 3)
	verify("e", "ES256", es256(k.ec[0]), signing.ReasonUnknownKey, 3)
	c.advance(time.Hour)
	set.Store("not JSON")
	r := bearer("Bearer ", makeToken(t, map[string]any{"alg": "RS256", "kid": "r"}, claims, rs256(k.rsa[0])), "x")
	r.Now = c.now()
	checkFetchError(t, v, r)
}

// checkFetchError: neither proven nor disproven.
func checkFetchError(t *testing.T, v *signing.Verifier, r *signing.Request) {
	t.Helper()
	proof, err := v.Verify(r)
	var fetch *signing.FetchError
	var rejection *signing.Rejection
	if !errors.As(err, &fetch) || errors.As(err, &rejection) || fetch.URL == "" || errors.Unwrap(err) == nil || proof != (signing.Proof{}) {
		t.Errorf("Verify = %+v, %v, want a fetch error", proof, err)
	}
}

// Pinned keys come first, and nothing is fetched where that is turned off or
// nothing can.
func TestPinnedKeys(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	o := signing.Options{Scheme: "jwt", Fetcher: p.fetcher(t, newClock())}
	o.SchemeOptions = opts("algorithms", []any{"RS256"}, "jwks_url", "https://example.com/jwks", "keys", opts("r", pemOf(k.rsa[0].Public())))
	known := bearer("Bearer ", makeToken(t, map[string]any{"alg": "RS256", "kid": "r"}, map[string]any{"exp": derivedNow + 9}, rs256(k.rsa[0])), "x")
	unknown := bearer("Bearer ", makeToken(t, map[string]any{"alg": "RS256", "kid": "x"}, map[string]any{"exp": derivedNow + 9}, rs256(k.rsa[0])), "x")
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	proof, err := v.Verify(known)
	if checkReason(t, proof, err, ""); p.count() != 0 {
		t.Errorf("%d requests for a pinned key", p.count())
	}
	checkFetchError(t, v, unknown)
	o.SchemeOptions["fetch_keys"] = false
	v, _ = signing.New(o)
	before := p.count()
	proof, err = v.Verify(unknown)
	if checkReason(t, proof, err, signing.ReasonUnknownKey); p.count() != before {
		t.Error("a key was fetched with fetch_keys: false")
	}
	o.Fetcher = nil
	delete(o.SchemeOptions, "fetch_keys")
	v, _ = signing.New(o)
	checkFetchError(t, v, unknown)
}
