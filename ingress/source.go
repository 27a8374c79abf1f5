package ingress

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/signing"
)

// source is a compiled bridge.Source. Immutable but for its counters; safe for
// concurrent use.
type source struct {
	config              bridge.Source // as it was given
	name, scheme, queue string
	paused              bool
	verifier            *signing.Verifier
	resends             func(http.Header) int
	buffer, apart       *queen.Buffer // of the queue and, where there is one, of its quarantine
	id                  idRule
	eventType           expression
	partition           expression
	lanes               bridge.Lanes
	split               string // "" means the scheme's own, "none" one event
	rawJSON             bool   // payload: json
	spooled             bool   // the local spool stands in while Queen is away
	maxBody             int64
	methods             []string // of events
	probes              []string // further methods, of handshakes
	allow               string   // the Allow header
	handshakes          bool
	clientCert          bool // the proof is the certificate of the connection
	allowIPs            []netip.Prefix
	limiter             *rate.Limiter
	maxInFlight         int64
	limitStatus         int // 429, or 503 where the provider would drop the event
	inFlight            *atomic.Int64
	headers             *headerFilter
	query               queryRedactor
	answer              answer
	refusal             *answer // nil: 401 with a short text
	challenge           http.Header
	ownAnswer           bool // respond is set
	// wait bounds the time from receipt to verdict, 0: only enqueue_timeout.
	wait       time.Duration
	quarantine *rate.Limiter // nil: what is not proven is refused
	recent     *recent       // nil with dedup: off
	metrics    sourceMetrics
}

// answer is what a request is answered, ready to send.
type answer struct {
	status        int
	body          []byte
	contentType   []string
	contentLength []string
	header        http.Header
}

const (
	defaultLanes = 16
	// schemeClientCert proves by the certificate of the connection.
	schemeClientCert = "mtls"
	// hangUpMargin is kept between our verdict and the provider's deadline.
	hangUpMargin = 500 * time.Millisecond
	// quarantineRate bounds the events per second that nobody proved: a
	// quarantine must not become an open door to the disk.
	quarantineRate = 10
)

// sourceParts are what all sources share.
type sourceParts struct {
	fetcher signing.Fetcher
	spool   bool // there is one
	metrics *metrics
}

// compileSource reports everything that is wrong with a source.
func compileSource(s bridge.Source, shared sourceParts) (*source, error) {
	preset, known := signing.Lookup(s.Scheme)
	if !known {
		return nil, fmt.Errorf("source %q: scheme %q is unknown", s.Name, s.Scheme)
	}
	c := sourceCompiler{source: s, preset: preset, options: s.SigningOptions()}
	c.options.Fetcher = shared.fetcher
	if s.Spool && !shared.spool {
		c.problem("spool", errors.New("needs ingress.spool.dir"))
	}
	out := c.compile()
	if err := errors.Join(c.problems...); err != nil {
		return nil, fmt.Errorf("source %q: %w", s.Name, err)
	}
	out.metrics = shared.metrics.source(s.Name, out.answer.status, len(s.Secrets))
	if s.Spool {
		out.metrics.buffered = verdictSpooled
	}
	return out, nil
}

// sourceCompiler gathers the problems of one source.
type sourceCompiler struct {
	source   bridge.Source
	preset   signing.Preset
	options  signing.Options
	problems []error
}

func (c *sourceCompiler) problem(field string, err error) {
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %w", field, err))
	}
}

func (c *sourceCompiler) compile() *source {
	s, p := c.source, c.preset
	out := &source{
		config: s, name: s.Name, scheme: s.Scheme, queue: c.queue(), paused: s.Paused,
		verifier: c.verifier(), resends: p.Resends, lanes: bridge.NewLanes(s.Name, orDefault(s.Lanes, defaultLanes)),
		split: s.Split, rawJSON: s.Payload == bridge.PayloadJSON, spooled: s.Spool, maxBody: p.MaxBody,
		methods: c.methods(), handshakes: len(p.Handshakes) > 0, clientCert: s.Scheme == schemeClientCert,
		allowIPs: c.allowIPs(), limiter: newLimiter(s.Rate), maxInFlight: int64(s.MaxInFlight), inFlight: new(atomic.Int64),
		limitStatus: http.StatusTooManyRequests, answer: c.answer(), ownAnswer: s.Respond.Status != 0,
		wait: max(p.Deadline-hangUpMargin, 0),
	}
	if p.Refusal.Status != 0 {
		refusal := newAnswer(p.Refusal)
		out.refusal = &refusal
	}
	if p.Challenge != "" {
		out.challenge = http.Header{"Www-Authenticate": {p.Challenge}}
	}
	if s.MaxBody > 0 {
		out.maxBody = int64(s.MaxBody)
	}
	if p.Permanent4xx {
		out.limitStatus = http.StatusServiceUnavailable
	}
	for _, m := range p.HandshakeMethods() {
		if !slices.Contains(out.methods, m) {
			out.probes = append(out.probes, m)
		}
	}
	out.allow = strings.Join(slices.Concat(out.methods, out.probes), ", ")
	c.expressions(out)
	c.privacy(out)
	c.dedup(out)
	return out
}

func (c *sourceCompiler) queue() string {
	if c.source.Queue == "" {
		return c.source.Name
	}
	return c.source.Queue
}

func (c *sourceCompiler) verifier() *signing.Verifier {
	v, problems := signing.New(c.options)
	for _, p := range problems {
		c.problem(p.Path, errors.New(p.Text))
	}
	return v
}

// methods puts POST first: it is always taken.
func (c *sourceCompiler) methods() []string {
	methods := []string{http.MethodPost}
	for _, m := range slices.Concat(c.source.Methods, c.preset.Methods) {
		if m = strings.ToUpper(m); !slices.Contains(methods, m) {
			methods = append(methods, m)
		}
	}
	return methods
}

func (c *sourceCompiler) allowIPs() []netip.Prefix {
	prefixes, err := parsePrefixes(c.source.AllowIPs)
	c.problem("allow_ips", err)
	return prefixes
}

// newLimiter is nil where nothing is limited.
func newLimiter(r bridge.SourceRate) *rate.Limiter {
	if r.PerSecond <= 0 {
		return nil
	}
	burst := r.Burst
	if burst == 0 {
		burst = int(math.Ceil(r.PerSecond)) // a second's worth
	}
	return rate.NewLimiter(rate.Limit(r.PerSecond), burst)
}

func (c *sourceCompiler) answer() answer {
	a := c.preset.Answer
	if r := c.source.Respond; r.Status != 0 {
		a = signing.Answer{Status: r.Status, Body: r.Body, ContentType: r.ContentType}
	}
	return newAnswer(a)
}

// newAnswer makes an answer ready to send; status 0 is 200.
func newAnswer(a signing.Answer) answer {
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Body != "" && a.ContentType == "" {
		a.ContentType = contentTypeText
	}
	out := answer{status: a.Status, body: []byte(a.Body), contentLength: []string{strconv.Itoa(len(a.Body))}, header: a.Header}
	if a.ContentType != "" {
		out.contentType = []string{a.ContentType}
	}
	return out
}

// expressions compiles what names the event. A source's own form replaces the
// preset's expression.
func (c *sourceCompiler) expressions(out *source) {
	s, p := c.source, c.preset
	out.id.scheme = s.Scheme
	out.id.expression = c.expression("transaction_id", s.TransactionID, p.TransactionID, false)
	out.eventType = c.expression("event_type", s.EventType, p.EventType, true)
	out.partition = c.expression("partition", s.Partition, "", true)
}

func (c *sourceCompiler) expression(field, own, preset string, literal bool) expression {
	if own == "" {
		e, err := parseExpression(preset)
		c.problem(field, err)
		return e
	}
	e, err := parseSourceForm(own, literal)
	c.problem(field, err)
	if literal && len(e) > 0 && e[0].kind == termItem {
		// Of one item, but a batch may say it once for all of them.
		e = append(e, term{kind: termBody, name: e[0].name})
	}
	return e
}

// privacy sets what an event must not carry.
func (c *sourceCompiler) privacy(out *source) {
	p, o := c.preset, c.options
	out.headers = newHeaderFilter(c.source.DropHeaders, p.CredentialHeaders(o), p.KeepHeaders(o))
	out.query = newQueryRedactor(p.CredentialQuery(o))
}

func (c *sourceCompiler) dedup(out *source) {
	out.id.random = c.source.Dedup == "off"
	if !out.id.random {
		var err error
		out.recent, err = newRecent()
		c.problem("dedup", err)
	}
	if c.source.OnInvalid == "quarantine" {
		out.quarantine = rate.NewLimiter(quarantineRate, 10*quarantineRate)
	}
}

// inherit takes over from the source of the same name in the configuration
// before what its requests have built up, as far as it still means the same.
// Requests under way still use old.
func (s *source) inherit(old *source) {
	s.inFlight = old.inFlight
	if s.config.Rate == old.config.Rate {
		s.limiter = old.limiter
	}
	if s.quarantine != nil && old.quarantine != nil {
		s.quarantine = old.quarantine
	}
	if s.recent != nil && old.recent != nil && s.queue == old.queue {
		s.recent = old.recent
	}
}

// deadline is when a request received at start must be answered.
func (s *source) deadline(start, now time.Time, enqueueTimeout time.Duration) time.Time {
	deadline := now.Add(enqueueTimeout)
	if s.wait > 0 && start.Add(s.wait).Before(deadline) {
		return start.Add(s.wait)
	}
	return deadline
}

// parsePrefixes reads CIDRs; an address alone is itself.
func parsePrefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	var problems []error
	for _, text := range list {
		if addr, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%q is no CIDR", text))
			continue
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 { // ::ffff:10.0.0.0/104 is 10.0.0.0/8
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		out = append(out, p.Masked())
	}
	return out, errors.Join(problems...)
}

// allowed says that an address is in one of the prefixes, or that there are
// none. An IPv4 address in IPv6 form is taken for what it is:
// 10.0.0.0/8 does not contain ::ffff:10.0.0.1 otherwise.
func allowed(prefixes []netip.Prefix, address string) bool {
	if len(prefixes) == 0 {
		return true
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
