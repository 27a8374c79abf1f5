package httptarget_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
	"github.com/queenbridge/queenbridge/dispatch/sendertest"
)

func TestSender(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, func(t *testing.T, fn sendertest.Function) dispatch.Sender {
		t.Helper()
		if fn == nil {
			return newSender(t, "http://"+closedPort(t), nil)
		}
		return newSender(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			a := fn(r.Context(), body)
			if a.Drop {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(a.Status)
			_, _ = w.Write(a.Body)
			if a.Cut {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}), nil)
	})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// closedPort is an address nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// trusting makes a target believe a server's certificate.
func trusting(t *testing.T, server *httptest.Server) func(*bridge.Target) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeCertificate(t, ca, server.Certificate().Raw)
	return func(t *bridge.Target) { t.TLS.CA = ca }
}

func writeCertificate(t *testing.T, path string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newSender makes a Sender; change edits the target first.
func newSender(t *testing.T, url string, change func(*bridge.Target)) *httptarget.Sender {
	t.Helper()
	return newSenderWith(t, url, httptarget.Options{}, change)
}

func newSenderWith(t *testing.T, url string, o httptarget.Options, change func(*bridge.Target)) *httptarget.Sender {
	t.Helper()
	target := bridge.Target{Name: "t", HTTP: &bridge.HTTPTarget{URL: url, Method: "POST", Timeout: 10 * time.Second}, Concurrency: 10}
	if change != nil {
		change(&target)
	}
	o.UserAgent = "queenbridge/test"
	s, err := httptarget.New(target, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

func send(t *testing.T, s *httptarget.Sender, r *bridge.Request) bridge.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return s.Send(ctx, r)
}

func request() *bridge.Request {
	return &bridge.Request{
		DeliveryID: "dlv_abc", Attempt: 3, Queue: "github", Partition: "octo/repo",
		ContentType: "application/json; charset=UTF-8", Body: []byte(`{"a": 1}`),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// capture serves one request and returns it with its body.
func capture(t *testing.T) (url string, got func() (*http.Request, string)) {
	t.Helper()
	var request atomic.Pointer[http.Request]
	var body atomic.Pointer[string]
	url = serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		text := string(b)
		request.Store(r)
		body.Store(&text)
	})
	return url, func() (*http.Request, string) { return request.Load(), *body.Load() }
}

func TestSendsTheEventsHeadersAndItsOwn(t *testing.T) {
	t.Parallel()
	url, got := capture(t)
	s := newSender(t, url+"/hook?x=1", func(t *bridge.Target) {
		t.HTTP.Headers = map[string]string{"x-team": "ci", "x-github-event": "replaced"}
		t.Auth = bridge.Auth{Type: "bearer", Token: "s3cret"}
	})
	r := request()
	r.Headers = []bridge.Header{
		{Name: "x-github-event", Value: "push"},
		{Name: "x-github-delivery", Value: "72d3162e"},
		{Name: "x-twice", Value: "b"}, {Name: "x-twice", Value: "a"},
		{Name: "user-agent", Value: "GitHub-Hookshot/044aadd"},
		{Name: "webhook-id", Value: "msg_provider"}, {Name: "webhook-signature", Value: "v1,provider"},
		{Name: "idempotency-key", Value: "k"}, {Name: "tracestate", Value: "congo=t61rcWkgMzE"},
		{Name: "connection", Value: "x-gone"}, {Name: "transfer-encoding", Value: "chunked"},
		{Name: "host", Value: "evil.example"}, {Name: "content-length", Value: "99"}, {Name: "accept-encoding", Value: "br"},
		{Name: "expect", Value: "100-continue"}, {Name: "bad name", Value: "x"}, {Name: "x-bad-value", Value: "a\r\nb: c"},
	}
	if resp := send(t, s, r); resp.Status != 200 {
		t.Fatalf("Send = %d, %v", resp.Status, resp.Err)
	}
	req, body := got()
	if stamp := req.Header.Get("webhook-timestamp"); len(stamp) != 10 {
		t.Errorf("webhook-timestamp = %q", stamp)
	}
	req.Header.Del("webhook-timestamp")
	want := http.Header{
		"X-Github-Event": {"replaced"}, "X-Github-Delivery": {"72d3162e"}, "X-Twice": {"b", "a"},
		"User-Agent": {"GitHub-Hookshot/044aadd"}, "Idempotency-Key": {"k"},
		"Content-Type": {"application/json; charset=UTF-8"}, "Content-Length": {"8"},
		"X-Team": {"ci"}, "Authorization": {"Bearer s3cret"},
		"Webhook-Id": {"dlv_abc"}, "Queen-Attempt": {"3"}, "Queen-Queue": {"github"}, "Queen-Partition": {"octo/repo"},
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"congo=t61rcWkgMzE"},
		"Accept-Encoding": {"identity"},
	}
	if diff := cmp.Diff(want, req.Header); diff != "" {
		t.Errorf("the function's headers (-want +got):\n%s", diff)
	}
	if body != `{"a": 1}` || req.URL.RequestURI() != "/hook?x=1" || req.Method != "POST" || req.Host != strings.TrimPrefix(url, "http://") {
		t.Errorf("got %s %s to %s, body %q", req.Method, req.URL, req.Host, body)
	}
}

func TestNoContentTypeIsInventedAndTheAgentIsOurs(t *testing.T) {
	t.Parallel()
	url, got := capture(t)
	r := request()
	r.ContentType, r.Traceparent, r.Partition = "", "", "größe/1"
	send(t, newSender(t, url, nil), r)
	req, _ := got()
	for name, want := range map[string][]string{
		"Content-Type": nil, "Traceparent": nil,
		"User-Agent": {"queenbridge/test"}, "Queen-Partition": {"gr%C3%B6%C3%9Fe%2F1"},
	} {
		if diff := cmp.Diff(want, req.Header[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBatchOverPartitionsNamesNone(t *testing.T) {
	t.Parallel()
	url, got := capture(t)
	r := request()
	r.Partition = ""
	send(t, newSender(t, url, nil), r)
	req, _ := got()
	if values, sent := req.Header["Queen-Partition"]; sent {
		t.Errorf("Queen-Partition = %q, want no such header", values)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		auth         bridge.Auth
		header, want string
	}{
		{bridge.Auth{Type: "none"}, "Authorization", ""},
		{bridge.Auth{Type: "basic", Username: "u", Password: "p:q"}, "Authorization", "Basic dTpwOnE="},
		{bridge.Auth{Type: "bearer", Token: "tok"}, "Authorization", "Bearer tok"},
		{bridge.Auth{Type: "api_key", Header: "x-api-key", Value: "key"}, "X-Api-Key", "key"},
	} {
		url, got := capture(t)
		send(t, newSender(t, url, func(t *bridge.Target) { t.Auth = tt.auth }), request())
		if req, _ := got(); req.Header.Get(tt.header) != tt.want {
			t.Errorf("auth %s: %s = %q, want %q", tt.auth.Type, tt.header, req.Header.Get(tt.header), tt.want)
		}
	}
}

// An answer that drips must not outlast the attempt; its status is known.
func TestDrippingBodyEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, ".")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	s := newSender(t, url, func(t *bridge.Target) { t.HTTP.Timeout = time.Second })
	begun := time.Now()
	resp := s.Send(t.Context(), request())
	if resp.Status != 200 || !resp.Cut || resp.Truncated || resp.Err != nil {
		t.Errorf("Send = %d, cut %v, truncated %v, %v; want a cut 200", resp.Status, resp.Cut, resp.Truncated, resp.Err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Send took %v with a timeout of 1s", took)
	}
}

// The proxy would fetch what the guard refuses.
func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://"+closedPort(t))
	t.Setenv("http_proxy", "http://"+closedPort(t))
	t.Setenv("NO_PROXY", "")
	url, _ := capture(t)
	if resp := send(t, newSender(t, url, nil), request()); resp.Status != 200 {
		t.Errorf("Send = %d, %v", resp.Status, resp.Err)
	}
}

// net/http sends a request with an Idempotency-Key again by itself when a
// reused connection dies (measured); so it does with an empty body or a PUT.
func TestNothingIsSentTwiceOnAReusedConnection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, method, body string }{
		{"POST with a key", "POST", `{"a":1}`}, {"empty POST with a key", "POST", ""}, {"PUT", "PUT", `{"a":1}`}, {"empty GET", "GET", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				if calls.Add(1) == 2 {
					panic(http.ErrAbortHandler)
				}
			})
			s := newSender(t, url, func(t *bridge.Target) { t.HTTP.Method = tt.method })
			r := request()
			r.Body, r.Headers = []byte(tt.body), []bridge.Header{{Name: "idempotency-key", Value: "k"}}
			send(t, s, r)
			resp := send(t, s, r)
			if resp.Err == nil || !resp.Sent {
				t.Errorf("Send = %d, sent %v, %v; want a sent failure", resp.Status, resp.Sent, resp.Err)
			}
			if n := calls.Load(); n != 2 {
				t.Errorf("the function saw %d requests for 2 calls", n)
			}
		})
	}
}

// One try more, in place, where certainly nothing was sent.
func TestRefusedConnectionIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	addr := closedPort(t)
	s := newSender(t, "http://"+addr, nil)
	listening := make(chan net.Listener, 1)
	time.AfterFunc(60*time.Millisecond, func() {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("listen again: %v", err)
		}
		listening <- l
		_ = http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) //nolint:gosec // a test
	})
	resp := send(t, s, request())
	_ = (<-listening).Close()
	if resp.Status != 200 {
		t.Errorf("Send = %d, %v; want the second try to get through", resp.Status, resp.Err)
	}
}

func TestHTTP2IsSpoken(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(505)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSender(t, server.URL, trusting(t, server))
	if resp := send(t, s, request()); resp.Status != 200 {
		t.Errorf("Send = %d, %v; want HTTP/2", resp.Status, resp.Err)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS11} //nolint:gosec // that is the point
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSender(t, server.URL, trusting(t, server))
	if resp := send(t, s, request()); resp.Class != bridge.FailureTLS || resp.Sent {
		t.Errorf("Send = %d, class %q, sent %v", resp.Status, resp.Class, resp.Sent)
	}
}

func TestWrongTargets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*bridge.Target)
	}{
		{"no http", func(t *bridge.Target) { t.HTTP = nil }},
		{"no host", func(t *bridge.Target) { t.HTTP.URL = "http:///x" }},
		{"user in the URL", func(t *bridge.Target) { t.HTTP.URL = "http://u:s3cret@example.com/" }},
		{"ftp", func(t *bridge.Target) { t.HTTP.URL = "ftp://example.com/" }},
		{"bad header", func(t *bridge.Target) { t.HTTP.Headers = map[string]string{"a b": "x"} }},
		{"bad credential", func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "bearer", Token: "s3cret\n"} }},
		{"unknown auth", func(t *bridge.Target) { t.Auth.Type = "kerberos" }},
		{"bad secret", func(t *bridge.Target) { t.Signing.Secrets = []bridge.Secret{"whsec_s3cret!"} }},
		{"bad profile", func(t *bridge.Target) { t.Network.Profile = "open" }},
		{"bad CIDR", func(t *bridge.Target) { t.Network.Allow = []string{"10.0.0.1"} }},
	} {
		target := bridge.Target{HTTP: &bridge.HTTPTarget{URL: "http://example.com/"}}
		tt.change(&target)
		_, err := httptarget.New(target, httptarget.Options{})
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("New(%s) = %v, want an error without the secret", tt.name, err)
		}
	}
}

func TestAnswerIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(503)
		_, _ = io.WriteString(w, "not gzip at all")
	})
	resp := send(t, newSender(t, url, nil), request())
	if resp.Status != 503 || resp.Header.Get("Retry-After") != "7" || string(resp.Body) != "not gzip at all" || resp.Truncated || !resp.Sent {
		t.Errorf("Send = %+v", resp)
	}
}

func TestEndOfContextWhileConnectingIsUnsent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	resp := newSender(t, "http://"+closedPort(t), nil).Send(ctx, request())
	if !errors.Is(resp.Err, context.Canceled) || resp.Sent {
		t.Errorf("Send = %v, sent %v", resp.Err, resp.Sent)
	}
}
