package httptarget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// progress watches how far a request gets.
type progress struct {
	mu        sync.Mutex // dials go on in goroutines of the transport
	handshake bool       // the TLS handshake began, and did not end well
	conn      *countedConn
	shared    bool  // HTTP/2: others write on the connection, too
	before    int64 // bytes written when the request got it
	got       bool
	wrote     bool          // the transport is done with the body
	waiting   chan struct{} // closed then, where somebody waits
}

// watch returns ctx with the hooks set.
func (p *progress) watch(ctx context.Context, secure bool) context.Context {
	trace := &httptrace.ClientTrace{GotConn: p.gotConn, WroteRequest: p.wroteRequest}
	if secure {
		trace.TLSHandshakeStart = func() { p.setHandshake(true) }
		trace.TLSHandshakeDone = func(_ tls.ConnectionState, err error) { p.setHandshake(err != nil) }
	}
	return httptrace.WithClientTrace(ctx, trace)
}

func (p *progress) setHandshake(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handshake = on
}

func (p *progress) gotConn(info httptrace.GotConnInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got, p.handshake = true, false
	raw := info.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		p.shared = secure.ConnectionState().NegotiatedProtocol == "h2"
		raw = secure.NetConn()
	}
	if conn, ok := raw.(*countedConn); ok {
		p.conn, p.before = conn, conn.written.Load()
	}
}

func (p *progress) wroteRequest(httptrace.WroteRequestInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote = true
	if p.waiting != nil {
		close(p.waiting)
		p.waiting = nil
	}
}

// awaitWritten makes the event's body the caller's again. A function may
// answer before it has read all, or the call be given up: the transport then
// ends its connection, or stream, and is done with the body at once. It says
// nothing where it had not begun to send, so the wait is bounded.
func (p *progress) awaitWritten() {
	p.mu.Lock()
	if !p.got || p.wrote {
		p.mu.Unlock()
		return
	}
	done := make(chan struct{})
	p.waiting = done
	p.mu.Unlock()
	t := time.NewTimer(writtenWait)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

const writtenWait = 100 * time.Millisecond

// sent says that the function may have seen something of the request.
func (p *progress) sent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.got {
		return false
	}
	return p.shared || p.conn == nil || p.conn.written.Load() != p.before
}

// failure is the response of a request without an answer. One classifier for
// all errors: network errors are as much an outcome as statuses.
func (p *progress) failure(ctx context.Context, err error) bridge.Response {
	p.mu.Lock()
	handshake, got := p.handshake, p.got
	p.mu.Unlock()
	resp := bridge.Response{Err: err, Sent: p.sent() && !unestablished(err) && !refusesUs(err), Class: bridge.FailureConnect}
	switch {
	case errors.Is(err, errAddress):
	case handshake, isTLS(err):
		resp.Class = bridge.FailureTLS
	case got && (ctx.Err() != nil || isTimeout(err)):
		resp.Class = bridge.FailureTimeout
		if errors.Is(err, context.DeadlineExceeded) {
			resp.Err = errNoAnswer
		}
	}
	return resp
}

var errNoAnswer = errors.New("no answer before the timeout")

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

func isTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &alert) || errors.As(err, &record) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.Is(err, errPin) || refusesUs(err) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// refusesUs says that the server refused our certificate, or the lack of one.
// With TLS 1.3 we learn it when the request is on its way; the server reads
// none of it (RFC 8446 §4.4.2.4, §6.2).
func refusesUs(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	if !ok || alert.Op != "remote error" || alert.Err == nil {
		return false
	}
	text := alert.Err.Error()
	return strings.Contains(text, "certificate") || strings.Contains(text, "access denied")
}

// unestablished is net/http's word for an HTTP/2 connection that ended before
// its first request; why, it does not say.
func unestablished(err error) bool {
	return strings.Contains(err.Error(), "client conn could not be established")
}

// retriable says that the same request may well get through at once: the
// connection was refused, reset, or closed while it was idle.
func retriable(err error) bool {
	if errors.Is(err, errAddress) {
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || unestablished(err) ||
		strings.Contains(err.Error(), "server closed idle connection") || strings.Contains(err.Error(), "connection broken")
}
