package httptarget

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/queenbridge/queenbridge/bridge"
)

// unknownLife is how long a token without expires_in is used: until a 401, at
// most an hour.
const unknownLife = time.Hour

// clientCredentials fetches tokens by the client credentials grant (RFC 6749
// §4.4). Client id and secret go as Basic authentication, or, where the server
// takes that for wrong, as parameters of the body (§2.3.1).
type clientCredentials struct {
	config *clientcredentials.Config
	client *http.Client
	now    func() time.Time
}

// newClientCredentials makes the fetcher of an auth of type oauth2. Its calls
// go through the target's guard and proxy, and follow no redirect: one would
// carry the secret away.
func newClientCredentials(a bridge.Auth, c *connections) (*clientCredentials, error) {
	u, err := url.Parse(a.TokenURL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, errors.New("auth.token_url must be an https URL without user and password")
	}
	config := &clientcredentials.Config{
		ClientID: a.ClientID, ClientSecret: a.ClientSecret.Reveal(), TokenURL: a.TokenURL, Scopes: a.Scopes,
	}
	if a.Audience != "" {
		config.EndpointParams = url.Values{"audience": {a.Audience}}
	}
	return &clientCredentials{config: config, now: c.now, client: &http.Client{
		Transport:     tokenTransport{c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// isLoopback says that host is this machine: a token URL there may be http.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// tokenTransport makes a connection for each call: they are rare.
type tokenTransport struct{ connections *connections }

// RoundTrip implements http.RoundTripper.
func (t tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.connections
	others := c.trust.others(c.current.Load().material)
	transport := c.network.transport(others, others, 1)
	transport.DisableKeepAlives = true
	return transport.RoundTrip(req)
}

// fetch gets a token.
func (c *clientCredentials) fetch(ctx context.Context) (token, error) {
	got, err := c.config.Token(context.WithValue(ctx, oauth2.HTTPClient, c.client))
	if err != nil {
		return token{}, fetchError(err)
	}
	if !strings.EqualFold(got.Type(), "Bearer") {
		return token{}, errors.New("auth.token_url gave a token that is no bearer token")
	}
	life := unknownLife
	if !got.Expiry.IsZero() {
		life = time.Until(got.Expiry)
	}
	return lasting(got.AccessToken, life, c.now()), nil
}

// fetchError says why there is no token, in words of ours: the library's hold
// the URL with its query, and the whole answer.
func fetchError(err error) error {
	if answered, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		text := fmt.Sprintf("auth.token_url answered %d", answered.Response.StatusCode)
		if known[answered.ErrorCode] {
			text += " (" + answered.ErrorCode + ")"
		}
		return &credentialError{classOf(answered.Response.StatusCode), errors.New(text)}
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		class := bridge.FailureConnect
		if isTLS(failed.Err) {
			class = bridge.FailureTLS
		}
		return &credentialError{class, fmt.Errorf("call auth.token_url: %w", failed.Err)}
	}
	return errors.New("auth.token_url gave an answer without a token that can be read")
}

// known are the error codes of RFC 6749 §5.2: other text of an answer is not
// shown.
var known = map[string]bool{
	"invalid_request": true, "invalid_client": true, "invalid_grant": true,
	"unauthorized_client": true, "unsupported_grant_type": true, "invalid_scope": true,
}

func classOf(status int) bridge.FailureClass {
	switch {
	case status >= 500:
		return bridge.FailureHTTP5xx
	case status >= 400:
		return bridge.FailureHTTP4xx
	case status >= 300:
		return bridge.FailureRedirect
	}
	return bridge.FailureConnect
}
