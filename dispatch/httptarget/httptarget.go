package httptarget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/signing"
)

// maxAnswer bounds what is read of an answer's body, in bytes; a connection
// with more to read is closed.
const maxAnswer = 64 << 10

// Options are what a Sender needs besides its target.
type Options struct {
	// UserAgent is sent where the event has none. Empty means "queenbridge".
	UserAgent string
	// Now tells the time of webhook-timestamp. Nil means time.Now.
	Now func() time.Time
}

// Sender calls one HTTP target. Safe for concurrent use.
type Sender struct {
	url       *url.URL
	method    string
	timeout   time.Duration
	headers   http.Header // of the target, credential included: they replace the event's
	userAgent string
	signer    *signing.Signer // nil: unsigned
	transport *http.Transport
	now       func() time.Time
}

var _ dispatch.Sender = (*Sender)(nil)

// New makes the Sender of a target that has HTTP set. It dials nobody. The
// error says which field is wrong, never a secret.
func New(t bridge.Target, o Options) (*Sender, error) {
	if t.HTTP == nil {
		return nil, errors.New("http is required")
	}
	u, err := parseURL(t.HTTP.URL)
	if err != nil {
		return nil, err
	}
	s := &Sender{
		url: u, method: t.HTTP.Method, timeout: t.HTTP.Timeout,
		userAgent: o.UserAgent, now: o.Now,
	}
	if s.method == "" {
		s.method = http.MethodPost
	}
	if s.userAgent == "" {
		s.userAgent = "queenbridge"
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.headers, err = targetHeaders(t); err != nil {
		return nil, err
	}
	if s.signer, err = newSigner(t.Signing); err != nil {
		return nil, err
	}
	guard, err := newGuard(t.Network)
	if err != nil {
		return nil, err
	}
	s.transport = newTransport(guard, t.Concurrency)
	return s, nil
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
	scheme := s.Scheme
	if scheme == "" {
		scheme = "v1"
	}
	signer, err := signing.NewSigner(scheme, secrets)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return signer, nil
}

// Send makes one call. Where certainly nothing reached the function it tries
// once more within a second (dispatch.md §4.5): a stale idle connection, a
// refused one.
func (s *Sender) Send(ctx context.Context, r *bridge.Request) bridge.Response {
	if s.timeout > 0 {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > s.timeout {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.timeout)
			defer cancel()
		}
	}
	begun := time.Now()
	resp, again := s.once(ctx, r)
	if again && time.Since(begun) < quickRetry/2 && pause(ctx, quickRetry/4) {
		resp, _ = s.once(ctx, r)
	}
	resp.Elapsed = time.Since(begun)
	return resp
}

// quickRetry bounds the time lost to the one retry in place.
const quickRetry = time.Second

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes one request. again says that nothing was sent and another try may
// help.
func (s *Sender) once(ctx context.Context, r *bridge.Request) (resp bridge.Response, again bool) {
	var p progress
	answer, err := s.transport.RoundTrip(s.request(p.watch(ctx, s.url.Scheme == "https"), r))
	if err != nil {
		resp = p.failure(ctx, err)
		return resp, !resp.Sent && retriable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	resp = bridge.Response{Status: answer.StatusCode, Header: answer.Header, Sent: true}
	resp.Body, resp.Truncated = readAnswer(answer.Body)
	return resp, false
}

// request is one attempt. It is built by hand: without GetBody net/http cannot
// send it a second time by itself, as it does with an Idempotency-Key or a
// method it takes for idempotent (measured).
func (s *Sender) request(ctx context.Context, r *bridge.Request) *http.Request {
	req := &http.Request{
		Method: s.method, URL: s.url, Host: s.url.Host, Header: s.requestHeader(r),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		// Never http.NoBody: that is sent again, too.
		Body: io.NopCloser(bytes.NewReader(r.Body)), ContentLength: int64(len(r.Body)),
	}
	return req.WithContext(ctx)
}

// readAnswer reads at most maxAnswer bytes. A cut or dripping body takes
// nothing from the status, which is known.
func readAnswer(body io.Reader) (head []byte, truncated bool) {
	head, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if len(head) > maxAnswer {
		return head[:maxAnswer], true
	}
	return head, err != nil
}

// Close drops idle connections. Calls under way are not disturbed.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }
