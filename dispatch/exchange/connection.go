package exchange

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of connections (dispatch.md §5). The attempt's deadline covers all of
// it; these only tell a dead address or peer apart sooner.
const (
	DialTimeout = 5 * time.Second
	TLSTimeout  = 5 * time.Second
	// KeepAlive is the pause between probes of a silent connection: gateways
	// forget one, NAT gateways after 350 s, and a late answer would never come.
	KeepAlive      = 15 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 64 << 10
)

// NewTransport returns a transport with these bounds for one target, so that a
// slow one shares no connections with another. It has no proxy, also none of
// the environment, and its dialer is the caller's, which must return
// connections from Count.
func NewTransport(concurrency int) *http.Transport {
	return &http.Transport{
		TLSHandshakeTimeout:    TLSTimeout,
		ForceAttemptHTTP2:      true, // a DialContext of one's own turns it off (measured)
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost:    max(concurrency, 2),
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // what is asked for and decoded is the Sender's to decide
	}
}

// Count returns conn so that Progress knows what was written to it.
func Count(conn net.Conn) net.Conn { return &counted{Conn: conn} }

type counted struct {
	net.Conn
	written atomic.Int64
}

// Write counts before it writes: a failed write may have sent something.
func (c *counted) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	return c.Conn.Write(p)
}
