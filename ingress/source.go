package ingress

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
)

// source is a compiled bridge.Source. Immutable but for its counters; safe for
// concurrent use.
type source struct {
	name, scheme, queue string
	paused              bool
	verifier            *signing.Verifier
	id                  idRule
	eventType           expression
	partition           expression
	lanes               int
	split               string // "" means one event
	rawJSON             bool   // payload: json
	maxBody             int64
	methods             []string
	allow               string // the Allow header
	handshakes          bool
	allowIPs            []netip.Prefix
	limiter             *rate.Limiter
	maxInFlight         int64
	limitStatus         int // 429, or 503 where the provider would drop the event
	inFlight            atomic.Int64
	headers             *headerFilter
	query               queryRedactor
	answer              answer
	// wait bounds the time from receipt to verdict, 0: only enqueue_timeout.
	wait       time.Duration
	quarantine *rate.Limiter // nil: what is not proven is refused
	recent     *recent       // nil with dedup: off
	metrics    sourceMetrics
}

// answer is what an accepted request is answered, ready to send.
type answer struct {
	status        int
	body          []byte
	contentType   []string
	contentLength []string
}

const (
	defaultLanes = 16
	// hangUpMargin is kept between our verdict and the provider's deadline.
	hangUpMargin = 500 * time.Millisecond
	// quarantineRate bounds the events per second that nobody proved: a
	// quarantine must not become an open door to the disk.
	quarantineRate = 10
)

// compileSource reports everything that is wrong with a source.
func compileSource(s bridge.Source, m *metrics) (*source, error) {
	preset, known := signing.Lookup(s.Scheme)
	if !known {
		return nil, fmt.Errorf("source %q: scheme %q is unknown", s.Name, s.Scheme)
	}
	c := sourceCompiler{source: s, preset: preset}
	out := c.compile()
	if err := errors.Join(c.problems...); err != nil {
		return nil, fmt.Errorf("source %q: %w", s.Name, err)
	}
	out.metrics = m.source(s.Name, out.answer.status, len(s.Secrets))
	return out, nil
}

// sourceCompiler gathers the problems of one source.
type sourceCompiler struct {
	source   bridge.Source
	preset   signing.Preset
	problems []error
}

func (c *sourceCompiler) problem(field string, err error) {
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %w", field, err))
	}
}

func (c *sourceCompiler) compile() *source {
	s, p := c.source, c.preset
	if s.Spool {
		c.problem("spool", errors.New("the local spool is not built in this version"))
	}
	out := &source{
		name: s.Name, scheme: s.Scheme, queue: c.queue(), paused: s.Paused,
		verifier: c.verifier(), lanes: orDefault(s.Lanes, defaultLanes),
		split: c.split(), rawJSON: s.Payload == "json", maxBody: p.MaxBody,
		methods: c.methods(), handshakes: len(p.Handshakes) > 0,
		allowIPs: c.allowIPs(), limiter: newLimiter(s.Rate), maxInFlight: int64(s.MaxInFlight),
		limitStatus: http.StatusTooManyRequests, answer: c.answer(), wait: max(p.Deadline-hangUpMargin, 0),
	}
	if s.MaxBody > 0 {
		out.maxBody = int64(s.MaxBody)
	}
	if p.Permanent4xx {
		out.limitStatus = http.StatusServiceUnavailable
	}
	out.allow = strings.Join(out.methods, ", ")
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

func (c *sourceCompiler) options() signing.Options {
	o := signing.Options{Scheme: c.source.Scheme, SchemeOptions: c.source.SchemeOptions, PublicURL: c.source.PublicURL}
	for _, secret := range c.source.Secrets {
		o.Secrets = append(o.Secrets, secret.Reveal())
	}
	return o
}

func (c *sourceCompiler) verifier() *signing.Verifier {
	v, problems := signing.New(c.options())
	for _, p := range problems {
		c.problem(p.Path, errors.New(p.Text))
	}
	return v
}

func (c *sourceCompiler) split() string {
	switch c.source.Split {
	case "":
		return c.preset.Split
	case "none":
		return ""
	}
	return c.source.Split
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

func newLimiter(r bridge.SourceRate) *rate.Limiter {
	if r.PerSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(r.PerSecond), max(r.Burst, 1))
}

func (c *sourceCompiler) answer() answer {
	a := c.preset.Answer
	if r := c.source.Respond; r.Status != 0 {
		a = signing.Answer{Status: r.Status, Body: r.Body, ContentType: r.ContentType}
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Body != "" && a.ContentType == "" {
		a.ContentType = contentTypeText
	}
	out := answer{status: a.Status, body: []byte(a.Body), contentLength: []string{strconv.Itoa(len(a.Body))}}
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
	o := c.options()
	out.headers = newHeaderFilter(c.source.DropHeaders, c.preset.CredentialHeaders(o), c.preset.KeepHeaders(o))
	out.query = newQueryRedactor(c.preset.CredentialQuery(o))
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

// queues are the queues this source may push to.
func (s *source) queues() []string {
	if s.quarantine == nil {
		return []string{s.queue}
	}
	return []string{s.queue, bridge.QuarantineQueue(s.queue)}
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
