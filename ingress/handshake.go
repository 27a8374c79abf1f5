package ingress

import (
	"net/http"

	"github.com/queenbridge/queenbridge/signing"
)

// handshake answers what is no event. Nothing is queued.
func (x *exchange) handshake() (reply, bool) {
	if !x.source.handshakes {
		return reply{}, false
	}
	h, ok, err := x.source.verifier.Handshake(&x.request)
	switch {
	case err != nil:
		return x.source.notProven(err), true
	case !ok && x.source.takes(x.request.Method):
		return reply{}, false
	case !ok:
		return refuse(http.StatusMethodNotAllowed, reasonMethod, ""), true
	case h.Status >= http.StatusBadRequest:
		return refuse(h.Status, reasonHandshake, h.Detail), true
	}
	return x.shaken(&h), true
}

// shaken answers a handshake, and does what it asks for besides.
func (x *exchange) shaken(h *signing.Reply) reply {
	if h.Surface != "" {
		if x.server.showSecret == nil || !x.server.shown.AllowN(x.start, 1) {
			return busy(http.StatusServiceUnavailable, reasonNobody, retryAfterStored)
		}
		x.server.showSecret(x.source.name, h.Surface)
	}
	if h.Confirm != "" && !x.server.confirmer.reserve() {
		return busy(http.StatusServiceUnavailable, reasonConfirming, retryAfterLimit)
	}
	p := reply{status: h.Status, body: h.Body, header: h.Header, confirm: h.Confirm, handshake: true}
	if h.ContentType != "" {
		p.contentType = []string{h.ContentType}
	}
	return p
}
