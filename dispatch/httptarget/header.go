package httptarget

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// Names of the identity headers (Standard Webhooks, and Queen's own).
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerAttempt   = "Queen-Attempt"
	headerQueue     = "Queen-Queue"
	headerPartition = "Queen-Partition"
	headerTrace     = "Traceparent"
	headerType      = "Content-Type"
	headerAgent     = "User-Agent"
	headerAuth      = "Authorization"
	headerAccept    = "Accept-Encoding"
	headerEncoding  = "Content-Encoding"
)

// dropped are headers of an event that are not passed on: those of the
// provider's connection (RFC 9110 §7.6.1), and those this package sets. A
// provider's own webhook-id, -timestamp and -signature give way to ours.
var dropped = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Http2-Settings": true, "Host": true, "Content-Length": true, headerAccept: true, "Expect": true,
	headerType: true, headerID: true, headerTimestamp: true, headerSignature: true,
	headerAttempt: true, headerQueue: true, headerPartition: true,
}

// requestHeader is the header of one attempt.
func (s *Sender) requestHeader(r *bridge.Request, bearer string) http.Header {
	h := make(http.Header, len(r.Headers)+len(s.headers)+11)
	values := make([]string, 0, len(r.Headers)+11) // one array for all
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	s.addEventHeaders(h, r.Headers, set)
	if r.ContentType != "" && validValue(r.ContentType) {
		set(headerType, r.ContentType)
	}
	if h[headerAgent] == nil {
		set(headerAgent, s.userAgent)
	}
	if r.Traceparent != "" && validValue(r.Traceparent) {
		set(headerTrace, r.Traceparent)
	}
	set(headerAccept, "identity") // RFC 9110 §12.5.3: without it any coding will do
	for name, values := range s.headers {
		h[name] = values
	}
	if bearer != "" {
		set(headerAuth, "Bearer "+bearer)
	}
	now := s.now()
	set(headerID, r.DeliveryID)
	set(headerTimestamp, strconv.FormatInt(now.Unix(), 10))
	if s.signer != nil {
		set(headerSignature, s.signer.Sign(r.DeliveryID, now, r.Body))
	}
	set(headerAttempt, strconv.Itoa(r.Attempt))
	set(headerQueue, asciiValue(r.Queue))
	if r.Partition != "" { // a batch over partitions names none
		set(headerPartition, asciiValue(r.Partition))
	}
	return h
}

// addEventHeaders passes on what the provider sent, repeated lines in order.
// Lines that HTTP cannot carry are left out: they would fail every attempt.
func (s *Sender) addEventHeaders(h http.Header, lines []bridge.Header, set func(name, value string)) {
	for _, line := range lines {
		name := s.names.of(line.Name)
		if name == "" || !validValue(line.Value) {
			continue
		}
		if h[name] == nil {
			set(name, line.Value)
			continue
		}
		h[name] = append(h[name], line.Value)
	}
}

// targetHeaders are the headers of the configuration, with the credential.
func targetHeaders(t bridge.Target) (http.Header, error) {
	h := make(http.Header, len(t.HTTP.Headers)+1)
	for name, value := range t.HTTP.Headers {
		if !validName(name) || !validValue(value) {
			return nil, fmt.Errorf("http.headers.%s is no HTTP header", name)
		}
		h.Set(name, value)
	}
	name, value := constantCredential(t.Auth)
	if name == "" {
		return h, nil
	}
	if !validName(name) || !validValue(value) {
		return nil, fmt.Errorf("auth: the %s header cannot carry this credential", name)
	}
	h.Set(name, value)
	return h, nil
}

// asciiValue is s as a header value: percent-encoded unless it is printable
// ASCII throughout.
func asciiValue(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return url.PathEscape(s)
		}
	}
	return s
}

// validName says that s is a token (RFC 9110 §5.6.2).
func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// validValue says that s is a field value: no control characters but tab
// (RFC 9110 §5.5).
func validValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
