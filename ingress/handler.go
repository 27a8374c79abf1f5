package ingress

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/signing"
)

// exchange is one request while it is handled. It is used again afterwards,
// so nothing may keep a part of it.
type exchange struct {
	server  *Server
	context echo.Context
	start   time.Time // of the monotonic clock
	source  *source   // nil: none found
	request signing.Request
	proof   signing.Proof // of a request that is proven
	proven  bool
	resends int
	values  signing.Values
	headers []bridge.Header
	bundle  *queen.Bundle
	held    int64 // bytes of the body counted against Server.bodyRoom
}

// serve handles every request of the listener.
func (s *Server) serve(c echo.Context) error {
	x := s.exchanges.Get().(*exchange)
	x.context, x.start = c, time.Now()
	s.inFlight.Add(1)
	p := x.handle()
	s.inFlight.Add(-1)
	x.answer(&p)
	if p.confirm != "" {
		s.confirmer.start(x.source.name, p.confirm)
	}
	x.reset()
	s.exchanges.Put(x)
	return nil
}

// handle decides about a request. A panic of ours is an answer of ours: the
// sender must send again, and the process must live.
func (x *exchange) handle() (p reply) {
	defer func() {
		if cause := recover(); cause != nil {
			x.server.logger.Error(msgPanic, keyError, cause, keyStack, string(debug.Stack()))
			x.bundle = nil // whoever panicked may have kept it
			p = refuse(http.StatusInternalServerError, reasonPanic, "")
		}
	}()
	if p, refused := x.admit(); refused {
		return p
	}
	defer x.source.inFlight.Add(-1)
	if p, refused := x.read(); refused {
		return p
	}
	if p, answered := x.handshake(); answered {
		return p
	}
	return x.receive()
}

// admit applies what can be decided without the body: refusing before the
// first read saves the sender the upload.
func (x *exchange) admit() (reply, bool) {
	s, r := x.server, x.context.Request()
	path := requestPath(r)
	x.source = s.find(path)
	switch {
	case s.draining.Load():
		return reply{status: http.StatusServiceUnavailable, reason: reasonDraining, retryAfter: retryAfterLimit, close: true}, true
	case s.inFlight.Load() > s.maxInFlight:
		return busy(http.StatusServiceUnavailable, reasonInFlight, retryAfterLimit), true
	case s.tls.ClientCA != "" && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0):
		return refuse(http.StatusUnauthorized, reasonClientCert, ""), true
	case x.source == nil && s.expected(sourceName(path)):
		return busy(http.StatusServiceUnavailable, reasonExpected, retryAfterLimit), true
	case x.source == nil:
		return refuse(http.StatusNotFound, reasonUnknownSource, ""), true
	case ambiguousLength(r):
		return reply{status: http.StatusBadRequest, reason: reasonFraming, close: true}, true
	}
	x.request = signing.Request{
		Method: r.Method, Path: path, RawQuery: r.URL.RawQuery, Header: r.Header,
		Body: x.request.Body[:0], Now: s.now(),
	}
	if x.source.clientCert {
		x.request.TLS, x.request.Peer = r.TLS, peer(r)
	}
	return x.source.admit(r.Method, x.context, x.start)
}

// admit applies the source's own limits and counts the request in, unless it
// is refused.
func (s *source) admit(method string, c echo.Context, now time.Time) (reply, bool) {
	switch {
	case len(s.allowIPs) > 0 && !allowed(s.allowIPs, c.RealIP()):
		return refuse(http.StatusForbidden, reasonAddress, ""), true
	case !s.takes(method) && !slices.Contains(s.probes, method):
		return refuse(http.StatusMethodNotAllowed, reasonMethod, ""), true
	case s.paused:
		return busy(http.StatusServiceUnavailable, reasonPaused, retryAfterStored), true
	case s.limiter != nil && !s.limiter.AllowN(now, 1):
		return busy(s.limitStatus, reasonRate, retryAfterLimit), true
	}
	if n := s.inFlight.Add(1); s.maxInFlight > 0 && n > s.maxInFlight {
		s.inFlight.Add(-1)
		return busy(s.limitStatus, reasonSourceLimit, retryAfterLimit), true
	}
	return reply{}, false
}

// takes says that events come by this method.
func (s *source) takes(method string) bool { return slices.Contains(s.methods, method) }

// peer is the other end of the socket, whoever it says it speaks for.
func peer(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr()
}

// requestPath is the path as received. URL.Path is decoded and URL.String
// rebuilt, so neither serves: /in/a%2Fb is no source.
func requestPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath() // absolute form, or no server
}

// find looks up /in/<source> and /in/<source>/. There is no mux in front of
// it: those clean paths and answer 307, which senders take for a failure or
// turn into a GET without body.
func (s *Server) find(path string) *source {
	return s.catalog.Load().sources[sourceName(path)]
}

// sourceName is the name in a path; "" where that is no source's.
func sourceName(path string) string {
	name, ok := strings.CutPrefix(path, "/in/")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, "/")
}

// read reads the whole body once.
func (x *exchange) read() (reply, bool) {
	body := bodyReader{
		w: x.context.Response(), r: x.context.Request(),
		limit: x.source.maxBody, start: x.start, wait: x.server.enqueueTimeout,
		room: &x.server.bodyRoom,
	}
	var err error
	x.request.Body, err = body.appendTo(x.request.Body)
	x.held = body.held
	switch {
	case err == nil:
		return reply{}, false
	case errors.Is(err, errNoRoom):
		return reply{status: http.StatusServiceUnavailable, reason: reasonBodyRoom, retryAfter: retryAfterLimit, close: true}, true
	case errors.Is(err, errTooLarge):
		return reply{status: http.StatusRequestEntityTooLarge, reason: reasonTooLarge, close: true}, true
	}
	return reply{status: http.StatusBadRequest, reason: bodyReason(err), close: true}, true
}

// receive proves a request and stores its events.
func (x *exchange) receive() reply {
	s := x.source
	proof, err := s.verifier.Verify(&x.request)
	if err != nil {
		return x.unproven(s.notProven(err))
	}
	x.proof, x.proven, x.resends = proof, true, s.resends(x.request.Header)
	s.metrics.proven(proof, x.resends, x.request.Now)
	e := x.newEnvelope(bridge.Class(proof.Class))
	if p, ok := x.fill(&e); !ok {
		return p
	}
	if x.bundle.Len() == 0 { // an empty batch
		return x.accepted(0, false)
	}
	if s.recent != nil && s.recent.knows(x.bundle, x.start) {
		s.metrics.events.WithLabelValues(s.name, verdictRecent).Add(float64(x.bundle.Len()))
		return x.accepted(x.bundle.Len(), true)
	}
	return x.store(s.buffer)
}

// notProven is the refusal of a request whose proof failed. An error that is
// no rejection is our trouble, not the sender's: it must come again.
func (s *source) notProven(err error) reply {
	var rejection *signing.Rejection
	var fetch *signing.FetchError
	switch {
	case errors.As(err, &rejection):
		s.metrics.skewed(rejection.Skew)
		p := refuse(http.StatusUnauthorized, string(rejection.Reason), rejection.Detail)
		p.unproven, p.header = true, s.challenge
		if s.refusal != nil {
			p.status, p.exact = s.refusal.status, s.refusal
		}
		return p
	case errors.As(err, &fetch):
		return unavailable(reasonKey, err)
	}
	return unavailable(reasonVerifier, err)
}

func unavailable(reason string, err error) reply {
	p := busy(http.StatusServiceUnavailable, reason, retryAfterStored)
	p.detail = err.Error()
	return p
}

// unproven queues a request whose proof failed apart, where the user wants
// that.
func (x *exchange) unproven(p reply) reply {
	s := x.source
	if s.quarantine == nil || !p.unproven {
		return p
	}
	s.metrics.rejections.WithLabelValues(s.name, p.reason).Inc()
	if !s.quarantine.AllowN(x.start, 1) {
		return busy(s.limitStatus, reasonQuarantine, retryAfterLimit)
	}
	e := x.newEnvelope(bridge.ClassNone)
	e.queue, e.apart = bridge.QuarantineQueue(s.queue), true
	if p, ok := x.fill(&e); !ok {
		return p
	}
	return x.store(s.apart)
}

// maxKeptBytes bounds the room an exchange keeps for the next body: one large
// one must not make every later request cost as much memory.
const maxKeptBytes = 64 << 10

// reset makes the exchange usable for another request.
func (x *exchange) reset() {
	body := x.request.Body
	if cap(body) > maxKeptBytes {
		body = nil
	}
	x.server.bodyRoom.Add(x.held)
	x.held = 0
	clear(x.headers)
	if x.bundle != nil {
		x.bundle.Reset()
	} else {
		x.bundle = queen.NewBundle()
	}
	x.context, x.source, x.values = nil, nil, signing.Values{}
	x.proof, x.proven, x.resends = signing.Proof{}, false, 0
	x.request = signing.Request{Body: body[:0]}
}

// answer sends the reply, counts and logs it.
func (x *exchange) answer(p *reply) {
	var requestID, allow, name string
	if p.reason != "" {
		requestID = newRequestID()
	}
	if x.source != nil {
		allow, name = x.source.allow, x.source.name
	}
	p.write(x.context.Response(), allow, requestID)
	x.count(p, name)
	x.log(p, name, requestID)
}

func (x *exchange) count(p *reply, name string) {
	m := x.server.metrics
	if x.source != nil && p.reason == "" && p.status == x.source.answer.status {
		x.source.metrics.accepted.Inc()
		return
	}
	m.requests.WithLabelValues(name, statusLabel(p.status)).Inc()
	if p.reason != "" {
		m.rejections.WithLabelValues(name, p.reason).Inc()
	}
}

// log writes one record per request: what was refused at warn, because somebody
// should look, the rest at debug.
func (x *exchange) log(p *reply, name, requestID string) {
	level, msg := slog.LevelDebug, msgAccepted
	switch {
	case p.reason == reasonUnknownSource, p.reason == reasonExpected:
		msg = msgRefusedRequest // scanners: no news
	case p.handshake:
		level, msg = slog.LevelInfo, msgHandshake
	case p.reason != "" && p.items > 0:
		level, msg = slog.LevelWarn, msgNotStored
	case p.reason != "":
		level, msg = slog.LevelWarn, msgRefusedRequest
	}
	r := x.context.Request()
	ctx := r.Context()
	if !x.server.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String(keySource, name), slog.String(keyRoute, routeTemplate),
		slog.Int(keyStatus, p.status), slog.Duration(keyElapsed, time.Since(x.start))}
	if p.reason != "" {
		attrs = append(attrs, slog.String(keyReason, p.reason), slog.String(keyDetail, p.detail),
			slog.String(keyRequest, requestID), slog.String(keyRemote, x.context.RealIP()))
	} else {
		attrs = append(attrs, slog.Int(keyItems, p.items), slog.Bool(keyDuplicate, p.duplicate))
	}
	if x.proven {
		attrs = append(attrs, slog.Int(keySecret, x.proof.Secret), slog.Duration(keySkew, x.proof.Skew), slog.Int(keyResend, x.resends))
	}
	if g := x.bundle; g != nil && g.Len() == 1 {
		attrs = append(attrs, slog.String(keyEvent, g.Item(0).TransactionID))
	}
	x.server.logger.LogAttrs(ctx, level, msg, attrs...)
}
