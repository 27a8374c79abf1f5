package queen

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// call is one request to Queen, whichever node takes it.
type call struct {
	method string
	path   string // percent-encoded, below the node's base
	query  string
	body   *payload // nil: none. Its first reference is the caller's.
	node   string   // preferred node, "" any
	key    string   // of StrategyAffinity, "" none
	// safe says that the call may be sent to another node though one may have
	// seen it (queen-contract.md §8.4).
	safe bool
	// timeout bounds one try at one node; 0: the client's.
	timeout time.Duration
	// tries bounds how often a call answered 429 is sent, in all; 0:
	// throttleTries. No try begins after until, unless it is zero.
	tries int
	until time.Time
}

// answer is a whole HTTP answer.
type answer struct {
	call   *call
	node   string
	status int
	header http.Header
	body   []byte
	asked  time.Time // before it was sent
	secret string    // the token: a proxy may echo it
	// encoded is the content coding of a body that was not read for it.
	encoded string
}

// send sends a call to one node and reads the answer whole.
func (c *Client) send(ctx context.Context, n *node, k *call, token string) (*answer, error) {
	timeout := k.timeout
	if timeout <= 0 {
		timeout = c.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asked := time.Now()
	res, err := c.transport.RoundTrip(c.request(ctx, n, k, token))
	if err != nil {
		return nil, k.failed(n.name, !neverSent(err), err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := readBounded(res, c.maxAnswer)
	if errors.Is(err, errTooLarge) {
		return nil, &BadBodyError{Method: k.method, Path: k.shownPath(), Status: res.StatusCode, TooLarge: true, Err: &oversize{head: body, node: n.name}}
	}
	if err != nil {
		return nil, k.failed(n.name, true, fmt.Errorf("read answer: %w", err))
	}
	a := &answer{call: k, node: n.name, status: res.StatusCode, header: res.Header, body: body, asked: asked, secret: token}
	a.checkCoding()
	return a, nil
}

// checkCoding drops a body in a content coding: none was asked for, and what it
// means for a payload is nobody's guess.
func (a *answer) checkCoding() {
	coding := a.header.Get("Content-Encoding")
	if bytes.HasPrefix(a.body, []byte("\x1f\x8b")) {
		coding = "gzip" // said or not: no JSON begins so
	}
	if coding == "" || strings.EqualFold(coding, "identity") || len(a.body) == 0 {
		return
	}
	a.body, a.encoded = nil, "the body is compressed ("+clip(coding, 32)+"), which was not asked for"
}

// request builds the request by hand: no GetBody, so net/http cannot re-send
// it, and no header that would make it think it may.
func (c *Client) request(ctx context.Context, n *node, k *call, token string) *http.Request {
	u := *n.base
	decoded, _ := url.PathUnescape(k.path)
	u.Path, u.RawPath, u.RawQuery = n.base.Path+decoded, n.base.EscapedPath()+k.path, k.query
	header := make(http.Header, 4)
	header["User-Agent"] = []string{"queenbridge"}
	header["Accept-Encoding"] = []string{"identity"}
	if token != "" {
		header["Authorization"] = []string{"Bearer " + token}
	} else if n.auth != "" {
		header["Authorization"] = []string{n.auth}
	}
	req := &http.Request{
		Method: k.method, URL: &u, Host: n.base.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	if k.body != nil {
		header["Content-Type"] = []string{"application/json"}
		req.Body, req.ContentLength = k.body.reader(), int64(len(k.body.data))
	}
	return req.WithContext(ctx)
}

func (k *call) failed(node string, sent bool, err error) error {
	return &CallError{Method: k.method, Path: k.shownPath(), Node: node, Sent: sent, Err: err}
}

// shownPath is the path as messages show it: bounded, without query.
func (k *call) shownPath() string { return clip(k.path, 200) }

// neverSent says that no connection was made, so the node saw nothing.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &dns) || errors.As(err, &certificate) ||
		errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

var errTooLarge = errors.New("answer too large")

// oversize is errTooLarge with what was read of the answer.
type oversize struct {
	head []byte
	node string // that gave it
}

func (*oversize) Error() string { return errTooLarge.Error() }

// headSize is what is kept of an answer too large to read.
const headSize = 64 << 10

// readBounded reads a body of at most limit bytes, into one allocation where
// the length is known.
func readBounded(res *http.Response, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	if res.ContentLength > limit {
		_, _ = buf.ReadFrom(io.LimitReader(res.Body, headSize)) // what it shows is a courtesy
		return buf.Bytes(), errTooLarge
	}
	// A length is believed up to 1 MiB before its bytes are there.
	buf.Grow(int(min(max(res.ContentLength, 0), 1<<20)) + bytes.MinRead)
	n, err := buf.ReadFrom(io.LimitReader(res.Body, limit+1))
	if err == nil && n > limit {
		return buf.Bytes()[:min(n, headSize)], errTooLarge
	}
	return buf.Bytes(), err
}

// ok says that the call was accepted.
func (a *answer) ok() bool { return a.status >= 200 && a.status < 300 }

// decode reads a success into v, anything else into a *StatusError.
func (a *answer) decode(v any) error {
	if !a.ok() {
		return a.statusError()
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return a.badBody(err)
	}
	return nil
}

func (a *answer) badBody(err error) *BadBodyError {
	return &BadBodyError{Method: a.call.method, Path: a.call.shownPath(), Status: a.status, Err: err}
}

// succeeded reads an answer that says no more than that; otherwise is the error
// of one that does not say it.
func (a *answer) succeeded(otherwise string) error {
	var wire struct {
		Success bool `json:"success"`
	}
	if err := a.decode(&wire); err != nil {
		return err
	}
	if !wire.Success {
		return a.misfit("%s", otherwise)
	}
	return nil
}

// misfit is a decoded answer that does not fit what was asked.
func (a *answer) misfit(format string, args ...any) error {
	return &AnswerError{Method: a.call.method, Path: a.call.shownPath(), Text: clip(fmt.Sprintf(format, args...), maxText)}
}

// segment percent-encodes one path segment, slash included. Dots alone would
// be taken for a relative path by proxies.
func segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// segments percent-encodes all but the slashes (timer keys: a catch-all).
func segments(s string) string {
	parts := strings.Split(s, "/")
	for i := range parts {
		parts[i] = segment(parts[i])
	}
	return strings.Join(parts, "/")
}
