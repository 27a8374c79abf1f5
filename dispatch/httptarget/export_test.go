package httptarget

import (
	"context"
	"net/http"
	"net/netip"
	"time"

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

// ReadAnswer reads the body of an answer.
func ReadAnswer(answer *http.Response, capture int64) bridge.Response {
	resp := bridge.Response{Header: answer.Header}
	readAnswer(&resp, answer, capture)
	return resp
}

// JWTEnd is when a token says that it ends.
func JWTEnd(value string) time.Time { return jwtEnd(value) }
