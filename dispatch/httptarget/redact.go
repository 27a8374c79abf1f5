package httptarget

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

const (
	// leastSecret is how long a text of the configuration must be to be looked
	// for in what a function says: shorter ones stand in any text.
	leastSecret = 6
	redacted    = "***"
)

// secretsOf are the texts that must not come back in an error or in the head
// of an answer: by their origin in the configuration, whatever they are called
// there. A key may be anywhere: in auth, in a header, in the URL's query.
func secretsOf(t bridge.Target, u *url.URL, headers http.Header) []string {
	texts := []string{t.Auth.Password.Reveal(), t.Auth.Token.Reveal(), t.Auth.Value.Reveal(), t.Auth.ClientSecret.Reveal(), u.RawQuery}
	for _, values := range u.Query() {
		texts = append(texts, values...)
	}
	for _, values := range headers {
		texts = append(texts, values...)
	}
	var secrets []string
	for _, text := range texts {
		if len(text) >= leastSecret {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// redact blanks the target's secrets, and the credentials and signatures of
// this request, in what goes into dead letters and logs: the text of an error,
// and the head of an answer. A captured answer stays as it came.
func (s *Sender) redact(resp *bridge.Response, sent http.Header, captured bool) {
	if resp.Err == nil && (captured || len(resp.Body) == 0) {
		return
	}
	for _, secret := range append(sentSecrets(sent), s.secrets...) {
		if !captured {
			resp.Body = blank(resp.Body, secret)
		}
		if resp.Err != nil && strings.Contains(resp.Err.Error(), secret) {
			resp.Err = &redactedError{strings.ReplaceAll(resp.Err.Error(), secret, redacted), resp.Err}
		}
	}
}

// sentSecrets are the credentials and signatures in the headers of a request.
func sentSecrets(sent http.Header) []string {
	secrets := strings.Fields(sent.Get(headerSignature))
	for _, name := range []string{headerAuth, "X-Amz-Security-Token"} {
		value := sent.Get(name)
		_, credential, _ := strings.Cut(value, " ")
		for _, text := range []string{value, credential} {
			if len(text) >= leastSecret {
				secrets = append(secrets, text)
			}
		}
	}
	return secrets
}

func blank(body []byte, secret string) []byte {
	if !bytes.Contains(body, []byte(secret)) {
		return body
	}
	return bytes.ReplaceAll(body, []byte(secret), []byte(redacted))
}

// redactedError has another text than its cause.
type redactedError struct {
	text  string
	cause error
}

// Error is the text without secrets.
func (e *redactedError) Error() string { return e.text }

// Unwrap is for errors.Is; the text of a cause is not to be shown.
func (e *redactedError) Unwrap() error { return e.cause }
