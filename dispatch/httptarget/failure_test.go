package httptarget_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
