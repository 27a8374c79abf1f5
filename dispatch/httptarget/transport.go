package httptarget

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of connections (dispatch.md §5). The attempt's deadline covers all of
// it; these only tell a dead address or peer apart sooner.
const (
	dialTimeout    = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 64 << 10
)

// newTransport is a target's own: a slow target shares no connections, and no
// limit of connections, with another.
func newTransport(g *guard, concurrency int) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, ControlContext: g.control}
	return &http.Transport{
		Proxy: nil, // a proxy would dial for us, past the guard
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &countedConn{Conn: conn}, nil
		},
		TLSHandshakeTimeout:    tlsTimeout,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true, // a DialContext of one's own turns it off (measured)
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConns:           0,
		MaxIdleConnsPerHost:    max(concurrency, 2),
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // the answer is kept as it comes, and its size is its size
	}
}

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
