package httptarget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

// progress is how far a request got, and whether its body is the caller's again.
type progress struct {
	exchange.Progress

	mu      sync.Mutex
	wrote   bool          // the transport is done with the body
	waiting chan struct{} // closed then, where somebody waits
}

// watch returns ctx with the hooks set.
func (p *progress) watch(ctx context.Context) context.Context {
	trace := p.Trace()
	trace.WroteRequest = p.wroteRequest
	return httptrace.WithClientTrace(ctx, trace)
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
	if !p.Connected() {
		return
	}
	p.mu.Lock()
	if p.wrote {
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

// failure is the response of a request without an answer. One classifier for
// all errors: network errors are as much an outcome as statuses.
func (p *progress) failure(ctx context.Context, err error) bridge.Response {
	resp := bridge.Response{Err: err, Sent: p.Sent() && !unestablished(err) && !refusesUs(err), Class: p.Failure(ctx, err)}
	switch {
	case errors.Is(err, errAddress):
		resp.Class = bridge.FailureConnect
	case isTLS(err):
		resp.Class = bridge.FailureTLS
	case resp.Class == bridge.FailureTimeout && errors.Is(err, context.DeadlineExceeded):
		resp.Err = errNoAnswer
	}
	return resp
}

var errNoAnswer = errors.New("no answer before the timeout")

// isTLS says that an error is about TLS, whatever phase it came in.
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

// retriable says that the same request may well get through at once.
func retriable(err error) bool {
	if errors.Is(err, errAddress) {
		return false
	}
	return exchange.Retriable(err) || unestablished(err) ||
		strings.Contains(err.Error(), "server closed idle connection") || strings.Contains(err.Error(), "connection broken")
}
