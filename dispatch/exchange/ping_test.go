package exchange_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

// An HTTP/2 connection whose other end is gone without a word (a gateway that
// forgot it, a machine that died) is found by pings, long before the deadline of
// a call that waits on it, and the next call has a new one.
func TestSilentHTTP2ConnectionIsFoundByPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		var silent atomic.Bool
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto)
		})}
		go func() {
			_ = server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"h2"}}))
		}()
		transport := exchange.NewTransport(1)
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		dials := 0
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials++
			conn, err := l.dial(ctx)
			if dials > 1 { // the machine is there again
				return conn, err
			}
			return &mute{Conn: conn, silent: &silent}, err
		}
		call := func() (string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://fn.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				return "", err
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		if proto, err := call(); err != nil || proto != "HTTP/2.0" {
			t.Fatalf("the first call: %q, %v", proto, err)
		}
		silent.Store(true)
		begun := time.Now()
		_, err := call()
		if took := time.Since(begun); err == nil || took > 30*time.Second {
			t.Errorf("a call on a silent connection ended after %v with %v, want an error within 15s and 10s", took, err)
		}
		if proto, err := call(); err != nil || dials != 2 {
			t.Errorf("the next call: %q, %v, %d connections", proto, err, dials)
		}
		transport.CloseIdleConnections()
		_ = server.Close()
	})
}

// mute is a connection that at some time hears nothing any more, until it is
// closed.
type mute struct {
	net.Conn
	silent *atomic.Bool
}

func (m *mute) Read(p []byte) (int, error) {
	for {
		if n, err := m.Conn.Read(p); err != nil || !m.silent.Load() {
			return n, err
		}
	}
}

// pipes serves connections in memory: the clock of a bubble stands still while a
// socket is waited for.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.closed); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// certificate is one of the test's own.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"fn.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
