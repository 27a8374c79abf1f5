package ingress

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const contentTypeText = "text/plain; charset=utf-8"

// Reasons of refusals besides those of package signing: fixed words for logs
// and metrics.
const (
	reasonUnknownSource = "unknown_source"
	reasonExpected      = "source_not_in_use"
	reasonMethod        = "method"
	reasonAddress       = "address"
	reasonRate          = "rate"
	reasonInFlight      = "in_flight"
	reasonSourceLimit   = "source_in_flight"
	reasonPaused        = "paused"
	reasonDraining      = "draining"
	reasonTooLarge      = "too_large"
	reasonTooManyItems  = "too_many_items"
	reasonCutBody       = "cut_body"
	reasonSlowBody      = "slow_body"
	reasonBodyRoom      = "body_memory"
	reasonFraming       = "ambiguous_length"
	reasonNotJSON       = "not_json"
	reasonQuarantine    = "quarantine_full"
	reasonVerifier      = "verifier_unavailable"
	reasonKey           = "key_unavailable" // a key could not be fetched: neither proven nor disproven
	reasonNobody        = "secret_not_shown"
	reasonConfirming    = "confirmations"
	reasonClientCert    = "client_certificate"
	reasonSpoolFull     = "spool_full"
	reasonHandshake     = "handshake"
	reasonTimeout       = "timeout"
	reasonBuffered      = "buffered"
	reasonRefused       = "refused_by_queen"
	reasonPanic         = "panic"
)

// retryAfterStored is asked of senders whose event is not known to be stored.
const (
	retryAfterStored = 30
	retryAfterLimit  = 1
)

// reply is the decision about one request. Reason is empty for an accepted
// request and for a handshake.
type reply struct {
	status int
	reason string
	// detail goes to the log only.
	detail string
	// retryAfter in seconds, 0: none.
	retryAfter int
	// close ends the connection: what follows on it cannot be trusted.
	close bool
	// unproven marks a refusal for lack of proof; exact replaces its text
	// where the provider wants a certain answer.
	unproven bool
	exact    *answer

	// Of accepted requests and handshakes.
	body          []byte
	contentType   []string
	contentLength []string // nil: as body is long
	header        http.Header
	duplicate     bool
	items         int
	handshake     bool
	confirm       string // is called with GET once the answer is out
}

func refuse(status int, reason, detail string) reply {
	return reply{status: status, reason: reason, detail: detail}
}

// busy is a refusal after which the sender should try again.
func busy(status int, reason string, retryAfter int) reply {
	return reply{status: status, reason: reason, retryAfter: retryAfter}
}

// Header values that every answer shares. They are read only.
var (
	headerNosniff   = []string{"nosniff"}
	headerText      = []string{contentTypeText}
	headerDuplicate = []string{"1"}
	headerClose     = []string{"close"}
)

// write sends a reply. Every header is set here, so that no answer is ever a
// redirect, a cookie, HTML, or of unknown length.
func (p *reply) write(w http.ResponseWriter, allow, requestID string) {
	h := w.Header()
	h["X-Content-Type-Options"] = headerNosniff
	if p.bare() {
		w.WriteHeader(p.status)
		return
	}
	for name, values := range p.header {
		h[name] = values
	}
	body := p.body
	switch {
	case p.exact != nil:
		body, p.contentType, p.contentLength = p.exact.body, p.exact.contentType, p.exact.contentLength
	case p.reason != "":
		body = p.refusal(requestID)
		p.contentType = headerText
	}
	if len(body) > 0 || p.contentType != nil {
		h["Content-Type"] = p.contentType
	}
	h["Content-Length"] = p.contentLength
	if p.contentLength == nil {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	if p.status == http.StatusNoContent {
		delete(h, "Content-Length") // RFC 9110, 8.6
	}
	if p.status == http.StatusMethodNotAllowed {
		h["Allow"] = []string{allow}
	}
	if p.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.Itoa(p.retryAfter)}
	}
	if p.duplicate {
		h["Queen-Duplicate"] = headerDuplicate
	}
	if p.close {
		h["Connection"] = headerClose
	}
	w.WriteHeader(p.status)
	if len(body) > 0 {
		_, _ = w.Write(body) // a sender that is gone cannot be told so
	}
}

// bare says that a reply is a status and nothing else, as most providers want
// it. net/http then sets Content-Length: 0 by itself.
func (p *reply) bare() bool {
	return p.reason == "" && !p.handshake && len(p.body) == 0 && p.contentType == nil && len(p.header) == 0 &&
		!p.duplicate && !p.close && p.retryAfter == 0
}

// refusal is the fixed text of a refused request: what HTTP calls the status,
// and the id under which the log has the reason.
func (p *reply) refusal(requestID string) []byte {
	if p.status == http.StatusNotFound {
		return []byte("not found\n") // the same for every path
	}
	return fmt.Appendf(nil, "%s (request %s)\n", refusalText(p.status), requestID)
}

func refusalText(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "bad request"
	case http.StatusUnauthorized:
		return "not authenticated"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusMethodNotAllowed:
		return "method not allowed"
	case http.StatusRequestEntityTooLarge:
		return "body too large"
	case http.StatusTooManyRequests:
		return "too many requests"
	case http.StatusServiceUnavailable:
		return "not stored, send again later"
	}
	return "internal error"
}

// newRequestID is an id that ties an answer to its log record.
func newRequestID() string { return strings.ToLower(rand.Text()[:16]) }
