package httptarget_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	t.Cleanup(secure.Close)
	for _, tt := range []struct {
		name, url string
		class     bridge.FailureClass
		sent      bool
	}{
		{"refused", "http://" + closedPort(t), bridge.FailureConnect, false},
		{"no such host", "http://no-such-host.invalid/", bridge.FailureConnect, false},
		{"unknown authority", secure.URL, bridge.FailureTLS, false},
		{"no TLS there", "https://" + strings.TrimPrefix(plain, "http://"), bridge.FailureTLS, false},
		{"metadata service", "http://169.254.169.254/latest/meta-data/", bridge.FailureConnect, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp := send(t, newSender(t, tt.url, nil), request())
			if resp.Err == nil || resp.Class != tt.class || resp.Sent != tt.sent {
				t.Errorf("Send = %d, class %q, sent %v, %v; want class %q, sent %v", resp.Status, resp.Class, resp.Sent, resp.Err, tt.class, tt.sent)
			}
		})
	}
}

// Keys in the configuration come back in no text, whatever the function does
// with them: its answers are stored and shown.
func TestSecretsComeBackInNoText(t *testing.T) {
	t.Parallel()
	echo := func(conn net.Conn, head string, prefix string) {
		_, _ = io.WriteString(conn, prefix+head)
	}
	for name, handle := range map[string]func(net.Conn, string){
		"status 500":  func(c net.Conn, head string) { echo(c, head, "HTTP/1.1 500 Internal Server Error\r\n\r\n") },
		"status line": func(c net.Conn, head string) { echo(c, strings.ReplaceAll(head, "\r\n", " "), "HTTP/1.1 ") },
		"no HTTP":     func(c net.Conn, head string) { echo(c, strings.ReplaceAll(head, "\r\n", " "), "") },
		"a header": func(c net.Conn, head string) {
			echo(c, strings.ReplaceAll(head, "\r\n", " ")+"\r\n\r\n", "HTTP/1.1 200 OK\r\n")
		},
		"silence": func(net.Conn, string) {},
	} {
		url := raw(t, handle)
		for _, auth := range []bridge.Auth{
			{Type: "bearer", Token: "s3cret-token"}, {Type: "basic", Username: "u", Password: "s3cret-password"},
			{Type: "api_key", Header: "x-key", Value: "s3cret-key"}, {Type: "oidc", Command: []string{"printf", "s3cret-printed"}},
		} {
			s := newSender(t, url+"/hook?code=s3cret-code", func(t *bridge.Target) {
				t.Auth = auth
				t.HTTP.Headers = map[string]string{"x-other": "s3cret-header"}
				t.Signing.Secrets = []bridge.Secret{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
			})
			resp := send(t, s, request())
			text := string(resp.Body)
			if resp.Err != nil {
				text += resp.Err.Error()
			}
			for _, secret := range []string{"s3cret", "dTpzM2NyZXQ", "v1,"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s, auth %s: %q in %s", name, auth.Type, secret, text)
				}
			}
			if name == "status 500" && !strings.Contains(text, "dlv_abc") {
				t.Errorf("auth %s: the answer is gone: %s", auth.Type, text)
			}
		}
	}
	closed := newSender(t, "http://"+closedPort(t)+"/hook?code=s3cret-code", nil)
	if resp := send(t, closed, request()); resp.Err == nil || strings.Contains(resp.Err.Error(), "s3cret") {
		t.Errorf("nobody listens: %v", resp.Err)
	}
}

// A captured answer is the function's own bytes: a reply must carry them.
func TestCapturedAnswerIsNotRedacted(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) })
	s := newSender(t, url, func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "bearer", Token: "s3cret-token"} })
	r := request()
	r.Capture = 1000
	if resp := send(t, s, r); string(resp.Body) != "Bearer s3cret-token" {
		t.Errorf("the captured answer is %q", resp.Body)
	}
}

// judged is what becomes of an event after this call.
func judged(t *testing.T, resp bridge.Response) bridge.Outcome {
	t.Helper()
	p, problems := bridge.NewPolicy(bridge.Route{Retry: bridge.RetryPolicy{
		MaxAttempts: 12, MaxAge: 24 * time.Hour, Jitter: bridge.JitterNone, Backoff: []time.Duration{5 * time.Second},
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return bridge.Decide(resp, bridge.Facts{Attempt: 1}, p, time.Now(), func() float64 { return 0 })
}

// One classifier for both: no failure of the network ends an event, and what
// never reached the function counts no attempt.
func TestNetworkErrorsAreRetriedLikeHTTPErrors(t *testing.T) {
	t.Parallel()
	quietly := func(_ net.Conn, _ string) {}
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // or the end of the connection goes unnoticed
		<-r.Context().Done()
	})
	for _, tt := range []struct {
		name, url string
		want      bridge.OutcomeKind
	}{
		{"status 500", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), bridge.Retry},
		{"connection closed", raw(t, quietly), bridge.Retry},
		{"no HTTP", raw(t, func(c net.Conn, _ string) { _, _ = io.WriteString(c, "220 smtp\r\n\r\n") }), bridge.Retry},
		{"no answer in time", hangs, bridge.Retry},
		{"refused", "http://" + closedPort(t), bridge.Hold},
		{"no such host", "http://no-such-host.invalid/", bridge.Hold},
		{"address refused", "http://169.254.169.254/", bridge.Hold},
		{"status 503 with Retry-After", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		}), bridge.Hold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t, tt.url, func(t *bridge.Target) { t.HTTP.Timeout = time.Second })
			if got := judged(t, send(t, s, request())); got.Kind != tt.want {
				t.Errorf("Decide = %s (%+v), want %s", got.Kind, got.Failure, tt.want)
			}
		})
	}
}

// The POST would become a GET without the event, and the login page's 200 a
// success: the cursor moved past what nobody got.
func TestRedirectToALoginPageIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var pages atomic.Int32
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/login" {
				pages.Add(1)
				return
			}
			http.Redirect(w, r, "/login", status)
		})
		got := judged(t, send(t, newSender(t, url, nil), request()))
		if got.Kind != bridge.Hold || got.Failure.Class != bridge.FailureRedirect || pages.Load() != 0 {
			t.Errorf("%d: Decide = %s, class %s, %d pages fetched; want a hold, redirect, none", status, got.Kind, got.Failure.Class, pages.Load())
		}
	}
}
