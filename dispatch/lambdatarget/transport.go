package lambdatarget

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of connections (dispatch.md §5). The attempt's deadline covers all of
// it; these only tell a dead address or peer apart sooner. Nothing else here
// ends a call: a function may take 900 s, and a call that is given up before
// its function ends is a second run of it.
const (
	dialTimeout    = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	idleTimeout    = 60 * time.Second
	keepAlive      = 15 * time.Second
	maxHeaderBytes = 64 << 10
)

// transport is a target's own: a slow function shares no connections with
// another. It is the SDK's HTTP client, so no redirect is followed and no proxy
// of the environment is used.
type transport struct{ *http.Transport }

func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error), concurrency int) *transport {
	if dial == nil {
		// Keep-alive: gateways forget a silent connection, NAT gateways after
		// 350 s, and the answer of a long function would never come.
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	return &transport{&http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countedConn{Conn: conn}, nil
		},
		TLSHandshakeTimeout:    tlsTimeout,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost:    max(concurrency, 2),
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // the size of an answer is its size
	}}
}

// Do makes one request, for the SDK. The call of its context learns how far it
// got and what Lambda answered. The hooks are set here and not on the whole
// operation, whose context also reaches the requests for credentials.
func (t *transport) Do(req *http.Request) (*http.Response, error) {
	c := callOf(req.Context())
	req = req.WithContext(c.watch(req.Context()))
	if req.Body != nil {
		req.Body = plainBody{req.Body}
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		c.err = err
		return nil, err
	}
	c.status, c.header = resp.StatusCode, resp.Header
	resp.Body = &answerBody{ReadCloser: resp.Body, call: c, left: c.limit}
	return resp, nil
}

// plainBody hides WriteTo of the SDK's body (smithy-go 1.28.9), which returns
// io.EOF once the SDK has closed the body: as soon as the answer begins. Then
// net/http, still looking for bytes beyond the content length, takes it for a
// failed write and drops the connection under the answer that is being read
// (measured: 1 of 150 calls of a fast function on a busy machine). Read ends as
// it should.
type plainBody struct{ io.ReadCloser }

// countedConn counts what is written, so that it is known whether a failed
// request had begun to go out.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

// Write counts before it writes: a failed write may have sent something.
func (c *countedConn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	return c.Conn.Write(p)
}
