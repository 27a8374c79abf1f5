package lambdatarget

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxAnswer bounds what is read of an answer where nobody asks for more, in
// bytes.
const maxAnswer = 64 << 10

// errClosed is what net/http says of a connection that ended before its answer.
var errClosed = io.EOF

// call is what is seen of one request below the SDK: it retries nothing, so
// there is one.
type call struct {
	limit int64 // of the answer's body, in bytes

	mu        sync.Mutex // dials go on in goroutines of the transport
	handshake bool       // the TLS handshake began, and did not end well
	got       bool
	conn      *countedConn
	shared    bool  // HTTP/2: others write on the connection, too
	before    int64 // bytes written when the request got it

	err       error // of the request; nil with a status
	status    int
	header    http.Header
	truncated bool
	cut       bool
}

// callKey is the key of a call in a context.
type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		c = &call{limit: maxAnswer}
	}
	return c
}

// watch returns ctx with the hooks set.
func (c *call) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:           c.gotConn,
		TLSHandshakeStart: func() { c.setHandshake(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { c.setHandshake(err != nil) },
	})
}

func (c *call) setHandshake(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handshake = on
}

func (c *call) gotConn(info httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got, c.handshake = true, false
	raw := info.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		c.shared = secure.ConnectionState().NegotiatedProtocol == "h2"
		raw = secure.NetConn()
	}
	if conn, ok := raw.(*countedConn); ok {
		c.conn, c.before = conn, conn.written.Load()
	}
}

// sent says that Lambda may have seen something of the request.
func (c *call) sent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.got {
		return false
	}
	return c.shared || c.conn == nil || c.conn.written.Load() != c.before
}

// failure is the response of a call without an answer. err is the SDK's: it
// also tells of credentials that were not found.
func (c *call) failure(ctx context.Context, err error) bridge.Response {
	resp := bridge.Response{Err: err, Sent: c.sent(), Class: bridge.FailureConnect}
	if err == nil { // the SDK answered without a request
		resp.Err = errors.New("no request was made")
		return resp
	}
	if c.err != nil {
		resp.Err = c.err // without the SDK's words around it
	}
	c.mu.Lock()
	handshake, got := c.handshake, c.got
	c.mu.Unlock()
	switch {
	case handshake, isTLS(c.err):
		resp.Class = bridge.FailureTLS
	case got && (ctx.Err() != nil || isTimeout(c.err)):
		resp.Class = bridge.FailureTimeout
		if errors.Is(err, context.DeadlineExceeded) {
			resp.Err = errNoAnswer
		}
	}
	return resp
}

var errNoAnswer = errors.New("no answer before the timeout: the function may run on")

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

func isTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	return errors.As(err, &verify) || errors.As(err, &alert) || errors.As(err, &record)
}

// answerBody is an answer's body, read as far as it is needed. A body that is
// cut takes nothing from the status, which is known: to the SDK it ends.
type answerBody struct {
	io.ReadCloser
	call *call
	left int64
}

// Read reads at most what is left of the limit, and one byte that says whether
// there was more.
func (b *answerBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var more [1]byte
		n, _ := io.ReadFull(b.ReadCloser, more[:])
		b.call.truncated = b.call.truncated || n > 0
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.call.truncated, b.call.cut = true, true
		err = io.EOF
	}
	return n, err
}

// head is as much of a body as was asked for, or by default maxAnswer bytes.
func head(body []byte, capture int64, truncated bool) ([]byte, bool) {
	limit := capture
	if limit <= 0 {
		limit = maxAnswer
	}
	if int64(len(body)) > limit {
		return body[:limit], true
	}
	return body, truncated
}
