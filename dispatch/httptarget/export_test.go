package httptarget

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/netip"

	"github.com/queenbridge/queenbridge/bridge"
)

// Trust makes a Sender believe one certificate; tls.ca of a target is not
// built yet.
func Trust(s *Sender, cert *x509.Certificate) {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	s.transport.TLSClientConfig.RootCAs = pool
}

// Reachable says what a network setting makes of an address.
func Reachable(n bridge.Network, ip string) (bool, error) {
	g, err := newGuard(n)
	if err != nil {
		return false, err
	}
	addr, err := netip.ParseAddr(ip)
	return err == nil && g.check(addr) == nil, err
}

// Request is the request of one attempt.
func Request(ctx context.Context, s *Sender, r *bridge.Request) *http.Request {
	return s.request(ctx, r)
}
