package httptarget_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// clock is a clock that a test turns.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) turn(d time.Duration) { c.offset.Add(int64(d)) }

// authority is an OAuth2 server: it gives token-1, token-2 and so on.
type authority struct {
	url     string
	fetches atomic.Int32
	// answer replaces the usual answer to the n-th request.
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request, n int32)]
	last   atomic.Pointer[http.Request]
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		n := a.fetches.Add(1)
		a.last.Store(r)
		if answer := a.answer.Load(); answer != nil {
			(*answer)(w, r, n)
			return
		}
		giveToken(w, n)
	}) + "/token?tenant=s3cret"
	return a
}

func giveToken(w http.ResponseWriter, n int32) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer","expires_in":3600}`, n)
}

func (a *authority) answers(f func(w http.ResponseWriter, r *http.Request, n int32)) {
	a.answer.Store(&f)
}

func (a *authority) auth() bridge.Auth {
	return bridge.Auth{Type: "oauth2", TokenURL: a.url, ClientID: "me:1", ClientSecret: "c s3cret", Scopes: []string{"a", "b"}, Audience: "fn"}
}

func (a *authority) sender(t *testing.T, url string, c *clock) *httptarget.Sender {
	t.Helper()
	return newSenderWith(t, url, httptarget.Options{Now: c.now}, func(t *bridge.Target) { t.Auth = a.auth() })
}

// accepting serves a function that wants one of these tokens; calls counts.
func accepting(t *testing.T, accepted func(token string) bool) (url string, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.ReadAll(r.Body)
		if !accepted(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}), calls
}

func anyToken(token string) bool { return strings.HasPrefix(token, "token-") }

func TestClientCredentialsAreFetchedOnceAndShared(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	url1, calls := accepting(t, anyToken)
	s := a.sender(t, url1, new(clock))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if resp := send(t, s, request()); resp.Status != 200 {
				t.Errorf("Send = %d, %v", resp.Status, resp.Err)
			}
		})
	}
	wg.Wait()
	if n := a.fetches.Load(); n != 1 || calls.Load() != 16 {
		t.Errorf("%d fetches for %d calls, want one for 16", n, calls.Load())
	}
	r := a.last.Load()
	want := url.Values{"grant_type": {"client_credentials"}, "scope": {"a b"}, "audience": {"fn"}}
	if diff := cmp.Diff(want, r.PostForm); diff != "" {
		t.Errorf("the token request (-want +got):\n%s", diff)
	}
	if user, password, _ := r.BasicAuth(); user != "me%3A1" || password != "c+s3cret" { // RFC 6749 §2.3.1
		t.Errorf("Basic %q %q", user, password)
	}
}

func TestServerThatWantsTheSecretInTheBodyGetsIt(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.answers(func(w http.ResponseWriter, r *http.Request, n int32) {
		if r.PostForm.Get("client_secret") != "c s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		giveToken(w, n)
	})
	url, _ := accepting(t, anyToken)
	if resp := send(t, a.sender(t, url, new(clock)), request()); resp.Status != 200 {
		t.Errorf("Send = %d, %v", resp.Status, resp.Err)
	}
}

// Renewed before it ends, and while the server of tokens is away the old one
// is used to its end.
func TestTokenIsRenewedEarly(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var used atomic.Pointer[string]
	url, _ := accepting(t, func(token string) bool { used.Store(&token); return true })
	c := new(clock)
	s := a.sender(t, url, c)
	for _, step := range []struct {
		turn time.Duration
		away bool
		want string
	}{
		{0, false, "token-1"},
		{50 * time.Minute, false, "token-1"},
		{8 * time.Minute, true, "token-1"}, // 58 minutes: renewed between 55 and 57.5
		{failurePause + time.Second, false, "token-3"},
	} {
		c.turn(step.turn)
		a.answer.Store(nil)
		if step.away {
			a.answers(func(w http.ResponseWriter, _ *http.Request, _ int32) { w.WriteHeader(503) })
		}
		if resp := send(t, s, request()); resp.Status != 200 || *used.Load() != step.want {
			t.Errorf("after %v: Send = %d with %q, want %q; %v", step.turn, resp.Status, *used.Load(), step.want, resp.Err)
		}
	}
}

const failurePause = 10 * time.Second

func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var bodies sync.Map
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies.Store(n.Add(1), string(body)+r.Header.Get("webhook-id"))
		if r.Header.Get("Authorization") == "Bearer token-1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	resp := send(t, a.sender(t, url, new(clock)), request())
	if resp.Status != 200 || a.fetches.Load() != 2 || n.Load() != 2 {
		t.Errorf("Send = %d after %d fetches and %d calls, want 200 after two of each", resp.Status, a.fetches.Load(), n.Load())
	}
	first, _ := bodies.Load(int32(1))
	second, _ := bodies.Load(int32(2))
	if first != second || first != `{"a": 1}dlv_abc` {
		t.Errorf("the calls were %q and %q, want the same event", first, second)
	}
}

// A function that names an outcome has run: it is not called again.
func TestRefusalWithAnOutcomeIsNotRepeated(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var calls atomic.Int32
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Queen-Outcome", "retry")
		w.WriteHeader(http.StatusUnauthorized)
	})
	if resp := send(t, a.sender(t, url, new(clock)), request()); resp.Status != 401 || calls.Load() != 1 {
		t.Errorf("Send = %d after %d calls, want the 401 after one", resp.Status, calls.Load())
	}
}

// A function that refuses every token must cost no token per attempt.
func TestFunctionThatRefusesEveryTokenIsBounded(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	url, calls := accepting(t, func(string) bool { return false })
	c := new(clock)
	s := a.sender(t, url, c)
	for range 5 {
		if resp := send(t, s, request()); resp.Status != 401 || resp.Err != nil {
			t.Errorf("Send = %d, %v; want the 401", resp.Status, resp.Err)
		}
	}
	if a.fetches.Load() != 2 || calls.Load() != 6 {
		t.Errorf("%d fetches, %d calls; want 2 and 6", a.fetches.Load(), calls.Load())
	}
	c.turn(failurePause + time.Second)
	send(t, s, request())
	if a.fetches.Load() != 3 {
		t.Errorf("%d fetches after a pause, want 3", a.fetches.Load())
	}
}

func TestCallsRefusedAtOnceShareOneNewToken(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var refused sync.WaitGroup
	refused.Add(8)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer token-1" {
			refused.Done()
			refused.Wait() // all of them have the old token
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	s := a.sender(t, url, new(clock))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if resp := send(t, s, request()); resp.Status != 200 {
				t.Errorf("Send = %d, %v", resp.Status, resp.Err)
			}
		})
	}
	wg.Wait()
	if n := a.fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
}

// Without a credential nothing is sent, and no text holds a secret: not the
// client's, not of the URL, not what the server answers.
func TestNoTokenIsAnUnsentFailure(t *testing.T) {
	t.Parallel()
	url, calls := accepting(t, anyToken)
	for _, tt := range []struct {
		name   string
		class  bridge.FailureClass
		text   string
		answer func(w http.ResponseWriter, r *http.Request, n int32)
	}{
		{"refused", bridge.FailureHTTP4xx, "auth.token_url answered 401 (invalid_client)", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"c s3cret is wrong"}`)
		}},
		{"unknown code", bridge.FailureHTTP4xx, "auth.token_url answered 400", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":"s3cret"}`)
		}},
		{"away", bridge.FailureHTTP5xx, "auth.token_url answered 503", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			w.WriteHeader(503)
			_, _ = io.WriteString(w, "s3cret")
		}},
		{"redirect", bridge.FailureRedirect, "auth.token_url answered 307", func(w http.ResponseWriter, r *http.Request, _ int32) {
			http.Redirect(w, r, url+"/s3cret", http.StatusTemporaryRedirect)
		}},
		{"no token", bridge.FailureConnect, "auth.token_url gave an answer without a token that can be read", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			_, _ = io.WriteString(w, `{"s3cret":`)
		}},
		{"other kind", bridge.FailureConnect, "auth.token_url gave a token that is no bearer token", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"s3cret","token_type":"DPoP"}`)
		}},
		{"no header can carry it", bridge.FailureConnect, "the token holds characters that no header can carry", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"s3cret\n","token_type":"bearer"}`)
		}},
		{"endless", bridge.FailureConnect, "auth.token_url gave an answer without a token that can be read", func(w http.ResponseWriter, r *http.Request, _ int32) {
			for block := strings.Repeat(" ", 1<<16); r.Context().Err() == nil; {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
			}
		}},
		{"cut off", bridge.FailureConnect, "call auth.token_url: EOF", func(http.ResponseWriter, *http.Request, int32) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			a.answers(tt.answer)
			resp := send(t, a.sender(t, url, new(clock)), request())
			if resp.Err == nil || resp.Sent || resp.Class != tt.class {
				t.Fatalf("Send = %d, class %q, sent %v, %v; want class %q, unsent", resp.Status, resp.Class, resp.Sent, resp.Err, tt.class)
			}
			if got := resp.Err.Error(); got != "get token for auth: "+tt.text {
				t.Errorf("Err = %s, want %s", got, tt.text)
			}
		})
	}
	t.Cleanup(func() {
		if calls.Load() != 0 {
			t.Errorf("the function was called %d times", calls.Load())
		}
	})
}

func TestTokenURLIsBehindTheSameGuard(t *testing.T) {
	t.Parallel()
	url, _ := accepting(t, anyToken)
	for profile, allow := range map[string][]string{"internal": nil, "public": {"127.0.0.1/32"}} {
		tokenURL := map[string]string{"internal": "https://169.254.169.254/token?s3cret", "public": "https://10.0.0.1/token?s3cret"}[profile]
		s := newSender(t, url, func(t *bridge.Target) {
			t.Network = bridge.Network{Profile: profile, Allow: allow}
			t.Auth = bridge.Auth{Type: "oauth2", TokenURL: tokenURL, ClientID: "me", ClientSecret: "c"}
		})
		resp := send(t, s, request())
		if resp.Err == nil || !strings.Contains(resp.Err.Error(), "address not allowed") || resp.Sent || resp.Class != bridge.FailureConnect || strings.Contains(resp.Err.Error(), "s3cret") {
			t.Errorf("profile %s: Send = %d, %v; want the address refused", profile, resp.Status, resp.Err)
		}
	}
}

func TestTokenURLIsStrictAboutTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { giveToken(w, 1) }))
	t.Cleanup(server.Close)
	url, _ := accepting(t, anyToken)
	oauth := func(t *bridge.Target) {
		t.Auth = bridge.Auth{Type: "oauth2", TokenURL: server.URL, ClientID: "me", ClientSecret: "c"}
	}
	if resp := send(t, newSender(t, url, oauth), request()); resp.Err == nil || resp.Class != bridge.FailureTLS || resp.Sent {
		t.Errorf("unknown authority: Send = %d, class %q, %v; want a TLS failure", resp.Status, resp.Class, resp.Err)
	}
	trust := trusting(t, server)
	s := newSender(t, url, func(t *bridge.Target) { oauth(t); trust(t) })
	if resp := send(t, s, request()); resp.Status != 200 {
		t.Errorf("authority of tls.ca: Send = %d, %v", resp.Status, resp.Err)
	}
}

func TestHangingTokenURLEndsWithTheAttempt(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.answers(func(_ http.ResponseWriter, r *http.Request, _ int32) { <-r.Context().Done() })
	s := newSender(t, "http://"+closedPort(t), func(t *bridge.Target) { t.Auth, t.HTTP.Timeout = a.auth(), 200*time.Millisecond })
	begun := time.Now()
	if resp := s.Send(t.Context(), request()); resp.Err == nil || resp.Sent || time.Since(begun) > 5*time.Second {
		t.Errorf("Send = %d, sent %v after %v", resp.Status, resp.Sent, time.Since(begun))
	}
}
