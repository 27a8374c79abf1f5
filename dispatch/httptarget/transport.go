package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

// network is how connections of a target are made: checked by its guard, and
// through its proxy where it has one.
type network struct {
	dialer *net.Dialer
	proxy  *url.URL // nil: none
	secure bool     // TLS towards the proxy
}

// newNetwork reads a target's network settings.
func newNetwork(n bridge.Network, resolver *net.Resolver) (*network, error) {
	guard, err := newGuard(n)
	if err != nil {
		return nil, err
	}
	made := &network{dialer: &net.Dialer{
		Timeout: exchange.DialTimeout, KeepAlive: exchange.KeepAlive, Resolver: resolver, ControlContext: guard.control,
	}}
	if n.Proxy == "" {
		return made, nil // never one of the environment: a proxy dials for us, past the guard
	}
	u, err := url.Parse(n.Proxy)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("network.proxy must be an http or https URL without user and password")
	}
	made.proxy, made.secure = u, u.Scheme == "https"
	return made, nil
}

// transport makes a target's own: a slow target shares no connections, and no
// limit of connections, with another. trust is what TLS towards the target
// uses, others what TLS towards an https proxy does.
func (n *network) transport(trust, others *tls.Config, concurrency int) *http.Transport {
	t := exchange.NewTransport(concurrency)
	t.DialContext, t.TLSClientConfig = n.dial(others), trust
	if n.proxy != nil {
		// TLS towards the proxy is made by dial: the transport would use the
		// target's client certificate and pins for it.
		plain := url.URL{Scheme: "http", Host: n.proxyAddr()}
		t.Proxy = http.ProxyURL(&plain)
		t.OnProxyConnectResponse = tunnelled
	}
	return t
}

// tunnelled reads a proxy's answer to CONNECT.
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy answered %d to CONNECT", resp.StatusCode)
	}
	return nil
}

// proxyAddr is where the proxy listens, with its port.
func (n *network) proxyAddr() string {
	port := n.proxy.Port()
	switch {
	case port != "":
	case n.secure:
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(n.proxy.Hostname(), port)
}

func (n *network) dial(others *tls.Config) func(ctx context.Context, kind, addr string) (net.Conn, error) {
	return func(ctx context.Context, kind, addr string) (net.Conn, error) {
		conn, err := n.dialer.DialContext(ctx, kind, addr)
		if err != nil {
			return nil, err
		}
		if n.secure {
			if conn, err = n.handshake(ctx, conn, others); err != nil {
				return nil, err
			}
		}
		return exchange.Count(conn), nil
	}
}

// handshake makes TLS with the proxy.
func (n *network) handshake(ctx context.Context, conn net.Conn, others *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, exchange.TLSTimeout)
	defer cancel()
	config := others.Clone()
	config.ServerName = n.proxy.Hostname()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS with network.proxy: %w", err)
	}
	return secure, nil
}
