package exchange_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

// ask makes one request of a server that does as it is told with a connection.
func ask(t *testing.T, url string, serve func(net.Conn)) (*exchange.Progress, context.Context, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	transport := exchange.NewTransport(1)
	t.Cleanup(transport.CloseIdleConnections)
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		if err != nil {
			return nil, err
		}
		return exchange.Count(conn), nil
	}
	p := new(exchange.Progress)
	ctx := t.Context()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, p.Trace()), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return p, ctx, err
}

func TestProgress(t *testing.T) {
	t.Parallel()
	hangUp := func(net.Conn) {}
	swallow := func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }
	for _, tt := range []struct {
		name, url string
		serve     func(net.Conn)
		sent      bool
		class     bridge.FailureClass
	}{
		{"read, then closed", "http://function.example/", swallow, true, bridge.FailureConnect},
		{"closed in the TLS handshake", "https://function.example/", hangUp, false, bridge.FailureTLS},
		{"no TLS there", "https://function.example/", func(conn net.Conn) { swallow(conn); _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, false, bridge.FailureTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, ctx, err := ask(t, tt.url, tt.serve)
			if err == nil {
				t.Fatal("answered")
			}
			if p.Sent() != tt.sent || p.Failure(ctx, err) != tt.class {
				t.Errorf("Sent = %t, Failure(%v) = %q; want %t, %q", p.Sent(), err, p.Failure(ctx, err), tt.sent, tt.class)
			}
		})
	}
}

func TestProgressOfNothing(t *testing.T) {
	t.Parallel()
	var p exchange.Progress
	if p.Sent() || p.Connected() || p.Failure(t.Context(), context.DeadlineExceeded) != bridge.FailureConnect {
		t.Error("a request that got no connection was sent, or failed elsewhere")
	}
	if exchange.Retriable(errors.New("refused by the operator")) || !exchange.Retriable(net.ErrClosed) {
		t.Error("Retriable is not about connections")
	}
}
