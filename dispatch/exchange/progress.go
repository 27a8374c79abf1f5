package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"sync"
	"syscall"

	"github.com/queenbridge/queenbridge/bridge"
)

// Progress is how far one request got. The zero value is one that has not
// begun; it may be used by many goroutines, and for one request only.
type Progress struct {
	mu        sync.Mutex // dials go on in goroutines of the transport
	handshake bool       // the TLS handshake began, and did not end well
	got       bool
	conn      *counted
	shared    bool  // HTTP/2: others write on the connection, too
	before    int64 // bytes written when the request got it
}

// Trace returns the hooks that let p follow a request; the caller may add its
// own to those that are not set.
func (p *Progress) Trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:           p.gotConn,
		TLSHandshakeStart: func() { p.setHandshake(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { p.setHandshake(err != nil) },
	}
}

func (p *Progress) setHandshake(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handshake = on
}

func (p *Progress) gotConn(info httptrace.GotConnInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got, p.handshake = true, false
	raw := info.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		p.shared = secure.ConnectionState().NegotiatedProtocol == "h2"
		raw = secure.NetConn()
	}
	if conn, ok := raw.(*counted); ok {
		p.conn, p.before = conn, conn.written.Load()
	}
}

// Connected says that the request got a connection.
func (p *Progress) Connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// Sent says that the other side may have seen something of the request.
func (p *Progress) Sent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.got {
		return false
	}
	return p.shared || p.conn == nil || p.conn.written.Load() != p.before
}

// Failure is the class of a request that ended with err and without an answer;
// ctx is the request's. The timeout of a dial is one of the connection.
func (p *Progress) Failure(ctx context.Context, err error) bridge.FailureClass {
	p.mu.Lock()
	handshake, got := p.handshake, p.got
	p.mu.Unlock()
	switch {
	case handshake, isTLS(err):
		return bridge.FailureTLS
	case got && (ctx.Err() != nil || isTimeout(err)):
		return bridge.FailureTimeout
	}
	return bridge.FailureConnect
}

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

// Retriable says of the error of a request that was not sent that the same
// request may well get through at once: the connection was refused, reset, or
// closed while it was idle.
func Retriable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
