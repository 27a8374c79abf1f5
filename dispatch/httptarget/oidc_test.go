package httptarget_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/aws"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// jwt is an unsigned token that ends at end.
func jwt(name string, end time.Time) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"exp":%d}`, name, end.Unix())) + "." + part("s3cret")
}

// bearer serves a function that tells the token it saw.
func bearer(t *testing.T) (url string, seen func() string) {
	t.Helper()
	url, got := capture(t)
	return url, func() string {
		r, _ := got()
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	url, seen := bearer(t)
	c := new(clock)
	first, second := jwt("first", c.now().Add(time.Hour)), jwt("second", c.now().Add(2*time.Hour))
	write(t, path, first+"\n")
	s := newSenderWith(t, url, httptarget.Options{Now: c.now}, func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "oidc", TokenFile: path} })
	for _, step := range []struct {
		turn        time.Duration
		write, want string
	}{
		{0, "", first},
		{2 * time.Second, second, second},
		{2 * time.Second, "", second},
		{30 * time.Minute, "remove", second}, // still good
	} {
		c.turn(step.turn)
		switch step.write {
		case "":
		case "remove":
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		default:
			write(t, path, step.write)
		}
		if resp := send(t, s, request()); resp.Status != 200 || seen() != step.want {
			t.Errorf("after %v: Send = %d, %v with %q, want %q", step.turn, resp.Status, resp.Err, seen(), step.want)
		}
	}
	c.turn(2 * time.Hour)
	if resp := send(t, s, request()); resp.Err == nil || resp.Sent || resp.Class != bridge.FailureConnect || !strings.Contains(resp.Err.Error(), "auth.token_file: open ") {
		t.Errorf("token ended: Send = %d, %v; want an unsent failure that names the file", resp.Status, resp.Err)
	}
}

// A token in the file that a 401 reveals to be old is replaced at once.
func TestRefusedTokenOfAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "token-old")
	url, calls := accepting(t, func(token string) bool {
		if token == "token-old" {
			write(t, path, "token-new")
		}
		return token == "token-new"
	})
	s := newSender(t, url, func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "oidc", TokenFile: path} })
	if resp := send(t, s, request()); resp.Status != 200 || calls.Load() != 2 {
		t.Errorf("Send = %d after %d calls, %v; want 200 after 2", resp.Status, calls.Load(), resp.Err)
	}
}

func TestTokensThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	url, _ := bearer(t)
	ended := jwt("x", time.Now().Add(-time.Minute))
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	write(t, script, "#!/bin/sh\necho s3cret >&2\necho s3cret\nexit 3\n")
	if err := os.Chmod(script, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	file := func(name, text string) bridge.Auth {
		write(t, filepath.Join(dir, name), text)
		return bridge.Auth{Type: "oidc", TokenFile: filepath.Join(dir, name)}
	}
	command := func(argv ...string) bridge.Auth { return bridge.Auth{Type: "oidc", Command: argv} }
	for name, tt := range map[string]struct {
		auth bridge.Auth
		want string
	}{
		"ended":          {file("ended", ended), "the token in it ended at "},
		"empty":          {file("empty", "\n"), "the token is empty"},
		"two lines":      {file("lines", "s3cret\ns3cret"), "characters that no header can carry"},
		"long":           {file("long", strings.Repeat("s3cret", 1<<13)), "too long for a header"},
		"no program":     {command(filepath.Join(dir, "missing")), "no such file"},
		"exit code":      {command(script), "exit status 3"},
		"ended, printed": {command("printf", "%s", ended), "the token has ended already"},
		"endless output": {command("yes", "s3cret"), "printed too much"},
		"hanging":        {command("sleep", "60"), "did not end in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t, url, func(t *bridge.Target) { t.Auth, t.HTTP.Timeout = tt.auth, 2*time.Second })
			begun := time.Now()
			resp := send(t, s, request())
			if resp.Err == nil || resp.Sent || resp.Class != bridge.FailureConnect || !strings.Contains(resp.Err.Error(), tt.want) || strings.Contains(resp.Err.Error(), "s3cret") {
				t.Errorf("Send = %d, class %q, sent %v, %v; want unsent, %q", resp.Status, resp.Class, resp.Sent, resp.Err, tt.want)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("Send took %v", took)
			}
		})
	}
}

// The command runs once for many calls, without a shell, and without our own
// settings; its token is used until shortly before its exp.
func TestTokenCommand(t *testing.T) {
	t.Setenv("QUEENBRIDGE_ADMIN_TOKEN", "s3cret")
	dir := t.TempDir()
	script, count := filepath.Join(dir, "token"), filepath.Join(dir, "count")
	c := new(clock)
	token := jwt("$(id)", c.now().Add(time.Hour))
	write(t, script, "#!/bin/sh\nprintf x >> '"+count+"'\nprintf %s \"$QUEENBRIDGE_ADMIN_TOKEN\"\nprintf '%s\\n' \"$1\"\n")
	if err := os.Chmod(script, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	url, seen := bearer(t)
	s := newSenderWith(t, url, httptarget.Options{Now: c.now}, func(t *bridge.Target) {
		t.Auth = bridge.Auth{Type: "oidc", Command: []string{script, token}}
	})
	runs := func() int {
		data, _ := os.ReadFile(count)
		return len(data)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if resp := send(t, s, request()); resp.Status != 200 {
				t.Errorf("Send = %d, %v", resp.Status, resp.Err)
			}
		})
	}
	wg.Wait()
	if seen() != token || runs() != 1 {
		t.Errorf("token %q after %d runs, want %q after one", seen(), runs(), token)
	}
	c.turn(58 * time.Minute)
	send(t, s, request())
	if runs() != 2 {
		t.Errorf("%d runs shortly before the token ends, want 2", runs())
	}
}

// Each attempt is signed, for AWS takes a signature for five minutes.
func TestSigV4SignsEachAttempt(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
	url, got := capture(t)
	var turn atomic.Int64
	o := httptarget.Options{
		Now: func() time.Time { return time.Unix(1_700_000_000+turn.Load(), 0) },
		SigV4: func(a bridge.Auth) (httptarget.RequestSigner, error) {
			return aws.NewSigner(t.Context(), aws.SignerConfig{Service: a.Service, Region: a.Region})
		},
	}
	s := newSenderWith(t, url, o, func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "sigv4", Service: "lambda", Region: "eu-west-1"} })
	var signatures []string
	for range 2 {
		turn.Add(60)
		if resp := send(t, s, request()); resp.Status != 200 {
			t.Fatalf("Send = %d, %v", resp.Status, resp.Err)
		}
		r, _ := got()
		signature := r.Header.Get("Authorization")
		if !strings.HasPrefix(signature, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/eu-west-1/lambda/aws4_request, ") || r.Header.Get("webhook-id") != "dlv_abc" {
			t.Errorf("Authorization %q, webhook-id %q", signature, r.Header.Get("webhook-id"))
		}
		signatures = append(signatures, signature)
	}
	if signatures[0] == signatures[1] {
		t.Error("the second attempt carries the first one's signature")
	}
}

// Signers write into the request they are given; calls run at once.
func TestSigV4SignsCallsAtOnce(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
	o := httptarget.Options{SigV4: func(a bridge.Auth) (httptarget.RequestSigner, error) {
		return aws.NewSigner(t.Context(), aws.SignerConfig{Service: a.Service, Region: a.Region})
	}}
	s := newSenderWith(t, url+"/hook?b=2&a=1", o, func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "sigv4", Service: "lambda", Region: "eu-west-1"} })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if resp := send(t, s, request()); resp.Status != 200 || string(resp.Body) != "/hook?a=1&b=2" {
				t.Errorf("Send = %d, %s, %v", resp.Status, resp.Body, resp.Err)
			}
		})
	}
	wg.Wait()
}

func TestSigV4WithoutCredentialsIsAnUnsentFailure(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	url, _ := capture(t)
	o := httptarget.Options{SigV4: func(a bridge.Auth) (httptarget.RequestSigner, error) {
		return aws.NewSigner(t.Context(), aws.SignerConfig{Service: a.Service, Region: a.Region})
	}}
	s := newSenderWith(t, url, o, func(t *bridge.Target) { t.Auth = bridge.Auth{Type: "sigv4", Service: "lambda", Region: "eu-west-1"} })
	if resp := send(t, s, request()); resp.Err == nil || resp.Sent || resp.Class != bridge.FailureConnect {
		t.Errorf("Send = %d, class %q, sent %v, %v; want an unsent failure", resp.Status, resp.Class, resp.Sent, resp.Err)
	}
	refused := bridge.Target{HTTP: &bridge.HTTPTarget{URL: url}, Auth: bridge.Auth{Type: "sigv4", Service: "lambda"}}
	if _, err := httptarget.New(refused, httptarget.Options{}); err == nil {
		t.Error("New without SigV4 made a Sender that does not sign")
	}
}
