package httptarget

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/queenbridge/queenbridge/bridge"
)

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
	return s.request(ctx, r, "")
}
