package bridge

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Validate checks what the values mean: names, references between resources,
// enumerations, ranges and forms. It reports every problem, with path, value
// and remedy, and warnings beside them. See Check for a configuration that was
// just decoded.
func (c Config) Validate() []Problem {
	var problems []Problem
	root := checklist{problems: &problems}
	c.checkProcess(root)
	c.Queen.check(root.below("queen"))
	c.Ingress.check(root.below("ingress"))
	c.Admin.check(root.below("admin"))
	c.checkSources(root)
	c.checkTargets(root)
	c.checkRoutes(root)
	c.checkQueues(root)
	return problems
}

// Check reports every problem of a configuration that Decode made: those
// Decode found, then the fields this version does not act on (Unbuilt) and
// what Validate finds, without what only follows from an earlier problem.
func (c Config) Check(decoded []Problem) []Problem {
	problems := decoded
	for _, p := range append(c.Validate(), c.Unbuilt()...) {
		if !explained(p, problems) {
			problems = append(problems, p)
		}
	}
	return problems
}

// explained says that p only follows from an earlier problem: what stands at
// or above its path could not be read, was spelled wrong or is refused already.
func explained(p Problem, earlier []Problem) bool {
	for _, e := range earlier {
		switch {
		case e.Warning:
		case p.Path == e.Path, e.form && within(p.Path, e.Path), e.meant != "" && within(p.Path, e.meant):
			return true
		case e.Path == "targets" || e.meant == "targets":
			if missesTarget.MatchString(p.Path) {
				return true
			}
		}
	}
	return false
}

// missesTarget matches where a route names a target that there is not.
var missesTarget = regexp.MustCompile(`^routes\[\d+\]\.target$`)

// within says that path is parent, or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (parent == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (c Config) checkProcess(k checklist) {
	k.word("log.level", c.Log.Level, logLevels)
	if c.Log.Format != "" {
		k.word("log.format", c.Log.Format, logFormats)
	}
	k.positive("stop_timeout", c.StopTimeout)
	k.atLeast("dispatch.max_in_flight", c.Dispatch.MaxInFlight, 1)
}

func (q QueenConfig) check(k checklist) {
	if q.Embedded != "" && len(q.URLs) > 0 {
		k.fail("embedded", "excludes queen.urls: set one of them")
	}
	if q.Embedded == "" && len(q.URLs) == 0 {
		k.fail("urls", "is required: name the Queen nodes, or set queen.embedded")
	}
	seen := map[string]bool{}
	for i, text := range q.URLs {
		field := atIndex("urls", i)
		k.webURL(field, text)
		if u, err := url.Parse(text); err == nil && strings.Contains(text, "?") && u.User == nil {
			k.fail(field, "must not hold a query")
		}
		k.when(seen[text], field, "is listed twice")
		seen[text] = true
	}
	if q.EmbeddedAddr != "" {
		k.address("embedded_addr", q.EmbeddedAddr)
		if q.Embedded == "" {
			k.warn("embedded_addr", "has no effect without queen.embedded")
		}
	}
	k.word("strategy", q.Strategy, strategies)
	k.when(q.TLS.CA != "" && !slices.ContainsFunc(q.URLs, isHTTPS), "tls.ca", "needs a URL in queen.urls that begins with https://")
}

func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https"
}

func (i IngressConfig) check(k checklist) {
	k.address("addr", i.Addr)
	k.when(i.TLS.Cert != "" && i.TLS.Key == "", "tls.cert", "needs ingress.tls.key, too")
	k.when(i.TLS.Key != "" && i.TLS.Cert == "", "tls.key", "needs ingress.tls.cert, too")
	k.when(i.TLS.ClientCA != "" && i.TLS.Cert == "", "tls.client_ca", "needs ingress.tls.cert and key")
	k.cidrs("trusted_proxies", i.TrustedProxies)
	k.atLeast("max_in_flight", i.MaxInFlight, 1)
	k.positive("enqueue_timeout", i.EnqueueTimeout)
	b := i.Batch
	k.between("batch.max_items", b.MaxItems, 1, maxPushItems)
	k.when(b.MaxBytes < 1 || b.MaxBytes > maxQueenBody, "batch.max_bytes", "must be between 1B and %s, got %s", maxQueenBody, b.MaxBytes)
	k.when(b.MaxPending < b.MaxItems, "batch.max_pending", "must be at least batch.max_items (%d), got %d", b.MaxItems, b.MaxPending)
	k.notNegative("batch.linger", b.Linger)
	k.when(b.Linger >= i.EnqueueTimeout && b.Linger > 0, "batch.linger", "must be below ingress.enqueue_timeout (%s), got %s",
		FormatDuration(i.EnqueueTimeout), FormatDuration(b.Linger))
	k.when(i.Spool.MaxBytes < 1, "spool.max_bytes", "must be 1B or more, got %s", i.Spool.MaxBytes)
}

// Bounds of Queen (queen-contract.md §1): the body of a request, and the items
// of a push that every plan takes.
const (
	maxQueenBody Size = 64 << 20
	maxPushItems      = 10_000
)

func (a AdminConfig) check(k checklist) {
	k.address("addr", a.Addr)
	if !isLoopback(a.Addr) && len(a.Tokens) == 0 && a.EnvToken == "" {
		k.fail("addr", "%q is reachable from other machines and no token is set: set QUEENBRIDGE_ADMIN_TOKEN, or bind to 127.0.0.1", a.Addr)
	}
	seen := map[string]bool{}
	for i, t := range a.Tokens {
		at := k.below("tokens[%d]", i)
		at.name("token", t.Name, seen)
		at.word("role", t.Role, roles)
		at.when(strings.TrimSpace(t.Token.Reveal()) == "", "token", "is required")
	}
}

func (c Config) checkQueues(k checklist) {
	seen := map[string]bool{}
	for i, q := range c.Queues {
		at := k.below("queues[%d]", i)
		at.foreignQueue("name", q.Name)
		at.when(seen[q.Name] && q.Name != "", "name", "another entry is about queue %q: merge them", q.Name)
		seen[q.Name] = true
		at.seconds("lease", q.Lease, 1)
		at.seconds("retention", q.Retention, 1)
		at.seconds("completed_retention", q.CompletedRetention, 0)
		at.seconds("dedup_window", q.DedupWindow, 0)
		c.warnHorizon(at, q)
	}
}

// warnHorizon warns where a provider may resend what the queue no longer
// knows.
func (c Config) warnHorizon(k checklist, q Queue) {
	horizon, source := c.horizon(q.Name)
	if q.Retention > 0 && q.Retention < horizon {
		k.warn("retention", "%s is shorter than the %s in which source %q may resend an event", FormatDuration(q.Retention), FormatDuration(horizon), source)
	}
	if q.DedupWindow > 0 && q.DedupWindow < horizon {
		k.warn("dedup_window", "%s is shorter than the %s in which source %q may resend an event: a late one is stored twice",
			FormatDuration(q.DedupWindow), FormatDuration(horizon), source)
	}
}
