package bridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/signing"
)

func (c Config) checkSources(k checklist) {
	seen := map[string]bool{}
	for i, s := range c.Sources {
		at := k.below("sources[%d]", i)
		at.name("source", s.Name, seen)
		s.check(at)
		if s.Spool && c.Ingress.Spool.Dir == "" {
			at.fail("spool", "needs ingress.spool.dir")
		}
		c.warnSharedDedup(at, i)
		c.warnDefaultRetention(at, s)
	}
}

// SigningOptions are the source's choice of scheme, as package signing takes
// it.
func (s Source) SigningOptions() signing.Options {
	o := signing.Options{Scheme: s.Scheme, SchemeOptions: s.SchemeOptions, PublicURL: s.PublicURL}
	for _, secret := range s.Secrets {
		o.Secrets = append(o.Secrets, secret.Reveal())
	}
	return o
}

func (s Source) check(k checklist) {
	_, problems := signing.New(s.SigningOptions())
	for _, p := range problems {
		k.fail(p.Path, "%s", p.Text)
	}
	if s.Name != "" || s.Queue != "" { // without a name the default queue is none
		k.foreignQueue("queue", s.Queue)
	}
	k.valueForm("partition", s.Partition, "body", "header", "query", "literal")
	k.between("lanes", s.Lanes, 1, maxLanes)
	k.valueForm("transaction_id", s.TransactionID, "body", "header", "query")
	k.valueForm("event_type", s.EventType, "body", "header", "query", "literal")
	k.word("payload", s.Payload, payloads)
	if s.Split != "" && s.Split != SplitDocument && s.Split != SplitNone {
		k.jsonPath("split", s.Split)
	}
	for i, m := range s.Methods {
		k.method(atIndex("methods", i), m)
	}
	k.when(s.MaxBody < 0 || s.MaxBody > maxQueenBody, "max_body", "must be at most %s (the largest request Queen takes), got %s", maxQueenBody, s.MaxBody)
	k.prefixes("allow_ips", s.AllowIPs)
	k.rate("rate", s.Rate.PerSecond, s.Rate.Burst)
	k.atLeast("max_in_flight", s.MaxInFlight, 0)
	s.Respond.check(k.below("respond"))
	k.word("on_invalid", s.OnInvalid, onInvalids)
	k.word("dedup", s.Dedup, dedups)
	k.headerNames("drop_headers", s.DropHeaders)
}

// maxLanes bounds the default partitions of a source: each is a row of Queen's
// that stays.
const maxLanes = 65536

func (r Respond) check(k checklist) {
	set := r.Status != 0
	k.when(set && (r.Status < 200 || r.Status > 299), "status", "must be 0 (the preset's) or 200 to 299, as anything else makes the provider send again, got %d", r.Status)
	k.when(!set && r.Body != "", "body", "has no effect without respond.status: set it, such as 200")
	k.when(!set && r.ContentType != "", "content_type", "has no effect without respond.status: set it, such as 200")
	k.when(r.Body != "" && (r.Status == 204 || r.Status == 205), "body", "status %d has no body", r.Status)
	k.when(strings.ContainsFunc(r.ContentType, isControl), "content_type", "must not hold control characters, got %q", r.ContentType)
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// valueForm checks body:<path>, header:<name>, query:<name> or literal:<text>,
// as far as they are among the kinds.
func (c checklist) valueForm(field, value string, kinds ...string) {
	if value == "" {
		return
	}
	kind, rest, ok := strings.Cut(value, ":")
	if !ok || !slices.Contains(kinds, kind) {
		c.fail(field, "must be %s, got %q", orList(forms(kinds)), value)
		return
	}
	switch {
	case rest == "":
		c.fail(field, "names nothing after %s:", kind)
	case kind == "header":
		c.when(!isToken(rest), field, "must name a header after header:, got %q", value)
	case kind == "body":
		c.jsonPath(field, rest)
	case kind == "literal":
		c.when(!storable(rest) || strings.ContainsFunc(rest, isControl), field, "must not hold control characters, got %q", value)
	}
}

// forms are the value forms of some kinds.
func forms(kinds []string) []string {
	all := make([]string, len(kinds))
	for i, kind := range kinds {
		what := "<name>"
		switch kind {
		case "body":
			what = "<path>"
		case "literal":
			what = "<text>"
		}
		all[i] = kind + ":" + what
	}
	return all
}

// jsonPath checks a dotted path (presets.md §1): no part is empty. "@this" is
// the document.
func (c checklist) jsonPath(field, path string) {
	plain := strings.ReplaceAll(path, `\.`, "x")
	c.when(path == "" || slices.Contains(strings.Split(plain, "."), ""), field, `must be a path such as data.object.id (\. is a dot in a key), got %q`, path)
}

func (c checklist) rate(field string, perSecond float64, burst int) {
	c.when(perSecond < 0, field+".per_second", "must be 0 (off) or more, got %v", perSecond)
	c.when(burst < 0, field+".burst", "must be 0 or more, got %d", burst)
	c.when(burst > 0 && perSecond == 0, field+".burst", "has no effect without %s.per_second", field)
}

// warnSharedDedup warns where equal ids of two sources meet in one partition:
// dedup is per partition, and default lanes carry the source's name.
func (c Config) warnSharedDedup(k checklist, i int) {
	s := c.Sources[i]
	for _, other := range c.Sources[:i] {
		if other.Queue == s.Queue && other.Scheme == s.Scheme && s.Queue != "" && (other.Partition != "" || s.Partition != "") {
			k.warn("queue", "source %q has the same scheme and queue, and partition is set: an event whose id both have is stored once", other.Name)
		}
	}
}

// warnDefaultRetention is warnHorizon for a queue that no entry of queues is
// about. Of the sources that feed it the one that resends longest is told of.
func (c Config) warnDefaultRetention(k checklist, s Source) {
	horizon, longest := c.horizon(s.Queue)
	if horizon <= defaultRetention || longest != s.Name || s.Queue == "" ||
		slices.ContainsFunc(c.Queues, func(q Queue) bool { return q.Name == s.Queue }) {
		return
	}
	k.warn("queue", "%q keeps events for %s, but this source may resend one for %s: add %s under queues", s.Queue, FormatDuration(defaultRetention), FormatDuration(horizon),
		fmt.Sprintf("{name: %s, retention: %s}", s.Queue, FormatDuration(horizon)))
}
