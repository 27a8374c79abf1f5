package lambdatarget

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"

	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

// transport is a target's own. It is the SDK's HTTP client, so no redirect is
// followed. Nothing of its bounds ends a call that was made: a function may take
// 900 s, and a call that is given up before its function ends is a second run
// of it.
type transport struct{ *http.Transport }

func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error), concurrency int) *transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: exchange.DialTimeout, KeepAlive: exchange.KeepAlive}).DialContext
	}
	t := exchange.NewTransport(concurrency)
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return exchange.Count(conn), nil
	}
	return &transport{t}
}

// Do makes one request, for the SDK. The call of its context learns how far it
// got and what Lambda answered. The hooks are set here and not on the whole
// operation, whose context also reaches the requests for credentials.
func (t *transport) Do(req *http.Request) (*http.Response, error) {
	c := callOf(req.Context())
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), c.Trace()))
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
