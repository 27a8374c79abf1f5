package httptarget

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
	"github.com/queenbridge/queenbridge/signing"
)

// Options are what a Sender needs besides its target.
type Options struct {
	// UserAgent is sent where the event has none. Empty means "queenbridge".
	UserAgent string
	// Now tells the time of webhook-timestamp. Nil means time.Now.
	Now func() time.Time
	// SigV4 makes the signer of an auth of type sigv4; the package that knows
	// AWS offers one. Nil: New refuses such a target.
	SigV4 func(bridge.Auth) (RequestSigner, error)
	// Resolver looks up host names. Nil means net.DefaultResolver.
	Resolver *net.Resolver
	// Logger is told when the TLS files of a target cannot be read again. Nil
	// means nobody is.
	Logger *slog.Logger
}

// Sender calls one HTTP target. Safe for concurrent use.
type Sender struct {
	url       *url.URL
	template  http.Request // of every attempt
	timeout   time.Duration
	headers   http.Header // of the target, credential included: they replace the event's
	names     names       // of the headers of events
	secrets   []string    // of the target, not to be shown
	userAgent string
	signer    *signing.Signer // nil: unsigned
	now       func() time.Time

	connections *connections
	tokens      *tokens       // nil: the credential, if any, never changes
	sigv4       RequestSigner // nil: not signed by AWS's rules
}

var _ dispatch.Sender = (*Sender)(nil)

// New makes the Sender of a target that has HTTP set. It reads the files of
// its tls, and dials nobody. The error says which field is wrong, never a
// secret.
func New(t bridge.Target, o Options) (*Sender, error) {
	if t.HTTP == nil {
		return nil, errors.New("http is required")
	}
	u, err := parseURL(t.HTTP.URL)
	if err != nil {
		return nil, err
	}
	s := &Sender{
		url: u, timeout: t.HTTP.Timeout,
		template: http.Request{
			Method: cmp.Or(t.HTTP.Method, http.MethodPost), URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		},
		userAgent: cmp.Or(o.UserAgent, "queenbridge"), now: o.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.headers, err = targetHeaders(t); err != nil {
		return nil, err
	}
	s.secrets = secretsOf(t, u, s.headers)
	if s.signer, err = newSigner(t.Signing); err != nil {
		return nil, err
	}
	if s.connections, err = connectionsOf(t, o, s.now); err != nil {
		return nil, err
	}
	if err := s.setAuth(t.Auth, o); err != nil {
		return nil, err
	}
	return s, nil
}

// connectionsOf reads how a target is reached.
func connectionsOf(t bridge.Target, o Options, now func() time.Time) (*connections, error) {
	network, err := newNetwork(t.Network, o.Resolver)
	if err != nil {
		return nil, err
	}
	trust, err := newTrust(t.TLS)
	if err != nil {
		return nil, err
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("target", t.Name)
	return newConnections(&connections{network: network, trust: trust, concurrency: t.Concurrency, now: now, log: log})
}

func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("http.url must be an http or https URL without user and password")
	}
	u.Fragment = ""
	return u, nil
}

func newSigner(s bridge.TargetSigning) (*signing.Signer, error) {
	if len(s.Secrets) == 0 {
		return nil, nil
	}
	secrets := make([]string, len(s.Secrets))
	for i, secret := range s.Secrets {
		secrets[i] = secret.Reveal()
	}
	signer, err := signing.NewSigner(cmp.Or(s.Scheme, bridge.SigningV1), secrets)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return signer, nil
}

// Send makes one call, and one more at once where certainly nothing reached the
// function (exchange.Send).
func (s *Sender) Send(ctx context.Context, r *bridge.Request) bridge.Response {
	return exchange.Send(ctx, s.timeout, func(ctx context.Context) (bridge.Response, bool) { return s.authorized(ctx, r) })
}

// once makes one request. again says that nothing was sent and another try
// may help.
func (s *Sender) once(ctx context.Context, r *bridge.Request, bearer string) (resp bridge.Response, again bool) {
	var p progress
	defer p.awaitWritten()
	req := s.request(p.watch(ctx), r, bearer)
	if s.sigv4 != nil {
		if err := s.sigv4.Sign(ctx, req, r.Body, s.now()); err != nil {
			return bridge.Response{Err: fmt.Errorf("sign the request for auth: %w", err), Class: bridge.FailureConnect}, false
		}
	}
	answer, err := s.connections.transport().RoundTrip(req)
	if err != nil {
		resp = p.failure(ctx, err)
		s.redact(&resp, req.Header, false)
		return resp, !resp.Sent && retriable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	resp = bridge.Response{Status: answer.StatusCode, Header: answer.Header, Sent: true}
	readAnswer(&resp, answer, r.Capture)
	s.redact(&resp, req.Header, r.Capture > 0)
	return resp, false
}

// request is one attempt. It is built by hand: without GetBody net/http cannot
// send it a second time by itself, as it does with an Idempotency-Key or a
// method it takes for idempotent (measured).
func (s *Sender) request(ctx context.Context, r *bridge.Request, bearer string) *http.Request {
	req := s.template.WithContext(ctx)
	req.Header = s.requestHeader(r, bearer)
	// Never http.NoBody: that is sent again, too.
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	if s.sigv4 != nil {
		own := *s.url // signers sort its query
		req.URL = &own
	}
	return req
}

// Close drops idle connections. Calls under way are not disturbed.
func (s *Sender) Close() { s.connections.close() }
