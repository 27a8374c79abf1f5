package httptarget_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

// proxy is a forward proxy that notes what it is asked.
type proxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	// status, unless 0, answers every CONNECT.
	status int
}

func newProxy(t *testing.T, secure bool) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewUnstartedServer(p)
	quiet(p.Server)
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		p.asked = append(p.asked, "client certificate")
	}
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	p.tunnel(w, r)
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := net.Dial("tcp", r.RequestURI)
	if err != nil {
		w.WriteHeader(502)
		return
	}
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go pipe(there, buffered.Reader, here)
	pipe(here, bufio.NewReader(there), there)
}

func pipe(to net.Conn, from *bufio.Reader, closes net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = closes.Close()
}

func (p *proxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func TestProxyOfTheConfigurationIsUsed(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(secure.Close)
	for _, behindTLS := range []bool{false, true} {
		for url, want := range map[string]string{
			plain + "/hook": "POST " + plain + "/hook", secure.URL + "/hook": "CONNECT " + strings.TrimPrefix(secure.URL, "https://"),
		} {
			p := newProxy(t, behindTLS)
			client := newIdentity(t)
			s := newSender(t, url, func(target *bridge.Target) {
				target.Network.Proxy = p.URL
				target.TLS.Cert, target.TLS.Key = client.cert, client.key
				target.TLS.CA = authorities(t, secure, p.Server)
			})
			for range 2 { // the second on the same connection
				if resp := send(t, s, request()); resp.Status != 200 || string(resp.Body) != `{"a": 1}` || !resp.Sent {
					t.Fatalf("Send to %s through %s = %d, %q, %v", url, p.URL, resp.Status, resp.Body, resp.Err)
				}
			}
			if got := p.seen(); got[0] != want || slices.Contains(got, "client certificate") {
				t.Errorf("the proxy was asked %q, want %q and no certificate of the target's", got, want)
			}
		}
	}
}

// authorities is a file with the certificates of servers.
func authorities(t *testing.T, servers ...*httptest.Server) string {
	t.Helper()
	var all []byte
	for i, server := range servers {
		if server.Certificate() == nil {
			continue
		}
		path := filepath.Join(t.TempDir(), "ca.pem")
		writeCertificate(t, path, servers[i].Certificate().Raw)
		one, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one...)
	}
	path := filepath.Join(t.TempDir(), "all.pem")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What does not get past the proxy has not reached the function.
func TestProxyThatRefusesIsAnUnsentFailure(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for _, status := range []int{403, 407, 502} {
		p := newProxy(t, false)
		p.status = status
		s := newSender(t, secure.URL+"/hook?s3cret", func(t *bridge.Target) { t.Network.Proxy = p.URL })
		resp := send(t, s, request())
		if resp.Err == nil || resp.Sent || resp.Class != bridge.FailureConnect || resp.Err.Error() != fmt.Sprintf("the proxy answered %d to CONNECT", status) {
			t.Errorf("proxy answers %d: Send = %d, class %q, sent %v, %v; want an unsent failure", status, resp.Status, resp.Class, resp.Sent, resp.Err)
		}
	}
}

// The proxy's own address is dialled here, and so checked here; what it dials
// is its business.
func TestAddressOfTheProxyIsGuarded(t *testing.T) {
	t.Parallel()
	p := newProxy(t, false)
	url, _ := capture(t)
	for _, tt := range []struct {
		network bridge.Network
		reached bool
	}{
		{bridge.Network{Proxy: p.URL}, true},
		{bridge.Network{Proxy: p.URL, Profile: "public"}, false},
		{bridge.Network{Proxy: p.URL, Profile: "public", Allow: []string{"127.0.0.1/32"}}, true},
		{bridge.Network{Proxy: "http://169.254.169.254"}, false},
	} {
		resp := send(t, newSender(t, url, func(t *bridge.Target) { t.Network = tt.network }), request())
		if (resp.Status == 200) != tt.reached {
			t.Errorf("%+v: Send = %d, %v; want reached %v", tt.network, resp.Status, resp.Err, tt.reached)
		}
	}
}

func TestTokenURLIsReachedThroughTheProxy(t *testing.T) {
	t.Parallel()
	p := newProxy(t, false)
	a := newAuthority(t)
	url, _ := accepting(t, anyToken)
	s := newSender(t, url, func(t *bridge.Target) { t.Network.Proxy, t.Auth = p.URL, a.auth() })
	if resp := send(t, s, request()); resp.Status != 200 || p.seen()[0] != "POST "+a.url {
		t.Errorf("Send = %d, %v; the proxy was asked %q", resp.Status, resp.Err, p.seen())
	}
}
