package bridge

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// checklist collects the problems of one part of a configuration, whose path
// is at.
type checklist struct {
	at       string
	problems *[]Problem
}

// below is the checklist of a part of the part.
func (c checklist) below(format string, args ...any) checklist {
	return checklist{at: c.path(fmt.Sprintf(format, args...)), problems: c.problems}
}

func (c checklist) path(field string) string {
	if field == "" || c.at == "" {
		return c.at + field
	}
	return c.at + "." + field
}

func (c checklist) fail(field, format string, args ...any) {
	*c.problems = append(*c.problems, Problem{Path: c.path(field), Text: fmt.Sprintf(format, args...)})
}

func (c checklist) warn(field, format string, args ...any) {
	*c.problems = append(*c.problems, Problem{Path: c.path(field), Text: fmt.Sprintf(format, args...), Warning: true})
}

// when reports text about field where bad holds.
func (c checklist) when(bad bool, field, format string, args ...any) {
	if bad {
		c.fail(field, format, args...)
	}
}

func (c checklist) word(field, got string, words []string) {
	if slices.Contains(words, got) {
		return
	}
	text := oneOf(words, got)
	if near := nearest(got, words); near != "" && got != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	c.fail(field, "%s", text)
}

func (c checklist) atLeast(field string, got, least int) {
	c.when(got < least, field, "must be %d or more, got %d", least, got)
}

func (c checklist) between(field string, got, least, most int) {
	c.atLeast(field, got, least)
	c.when(got > most, field, "must be at most %d, got %d", most, got)
}

func (c checklist) positive(field string, got time.Duration) {
	c.when(got <= 0, field, "must be above 0s, got %s", FormatDuration(got))
}

func (c checklist) notNegative(field string, got time.Duration) {
	c.when(got < 0, field, "must be 0s or more, got %s", FormatDuration(got))
}

// seconds checks a duration that Queen counts in whole seconds.
func (c checklist) seconds(field string, got time.Duration, least int) {
	if got < time.Duration(least)*time.Second || got%time.Second != 0 {
		c.fail(field, "must be whole seconds and at least %ds, got %s", least, FormatDuration(got))
	}
}

// namePattern is that of sources, targets and routes (config.md).
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// name checks the name of a resource of kind, which seen remembers.
func (c checklist) name(kind, name string, seen map[string]bool) {
	switch {
	case name == "":
		c.fail("name", "is required")
	case !namePattern.MatchString(name):
		c.fail("name", "must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit, got %q", cutText(name, 100))
	case seen[name]:
		c.fail("name", "another %s is called %q: names are unique", kind, name)
	}
	seen[name] = true
}

// queueName checks the name of a queue or group. Queen loses what is pushed to
// a longer one (queen-contract.md §3, measured 1.3.0).
func (c checklist) queueName(field, name string) {
	switch {
	case name == "":
		c.fail(field, "is required")
	case utf8.RuneCountInString(name) > 255:
		c.fail(field, "must be at most 255 characters, got %d", utf8.RuneCountInString(name))
	case strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
		c.fail(field, "must not hold control characters, got %q", cutText(name, 100))
	}
}

// foreignQueue also refuses the names the bridge keeps for itself.
func (c checklist) foreignQueue(field, name string) {
	c.queueName(field, name)
	for _, own := range []string{RetryNamespace + ".", DeadNamespace + ".", LargeNamespace + ".", AwakeQueue} {
		c.when(strings.HasPrefix(name, own), field, "must not begin with %s: such queues are the bridge's own", own)
	}
}

// address checks a listen address such as :8080 or 127.0.0.1:8081.
func (c checklist) address(field, addr string) {
	_, port, err := net.SplitHostPort(addr)
	n, numeric := strconv.Atoi(port)
	c.when(err != nil || numeric != nil || n < 0 || n > 65535 || !isDigits(port), field,
		"must be a listen address such as :8080 or 127.0.0.1:8080, got %q", addr)
}

// isLoopback says that only this machine reaches addr.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLoopbackHost(host)
}

func isLoopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func (c checklist) cidrs(field string, list []string) {
	for i, text := range list {
		_, err := netip.ParsePrefix(text)
		c.when(err != nil, atIndex(field, i), "must be a CIDR such as 10.0.0.0/8 or 192.0.2.7/32, got %q", text)
	}
}

// prefixes are CIDRs, or addresses that stand for themselves: providers publish
// both.
func (c checklist) prefixes(field string, list []string) {
	for i, text := range list {
		_, err := netip.ParsePrefix(text)
		addr, single := netip.ParseAddr(text)
		c.when(err != nil && (single != nil || addr.Zone() != ""), atIndex(field, i), "must be a CIDR such as 10.0.0.0/8, or an address such as 192.0.2.7, got %q", text)
	}
}

// webURL checks an http or https URL. Its text is never shown: it may hold a
// credential.
func (c checklist) webURL(field, text string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		c.fail(field, "is required")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		c.fail(field, "must be a URL that begins with http:// or https:// and a host")
	case u.User != nil:
		c.fail(field, "must not hold a user or password")
	case strings.Contains(text, "#"):
		c.fail(field, "must not hold a fragment (#)")
	case !validPort(u.Port()):
		c.fail(field, "must name a port between 1 and 65535")
	}
}

func validPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n >= 1 && n <= 65535
}

// isToken says that s may be a header name or method (RFC 9110 §5.6.2).
func isToken(s string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(others, r)
	})
}

func (c checklist) headerNames(field string, names []string) {
	for i, name := range names {
		c.when(!isToken(name), atIndex(field, i), "must be a header name, got %q", name)
	}
}

func (c checklist) method(field, m string) {
	c.when(!isToken(m) || m != strings.ToUpper(m), field, "must be a method in upper case such as POST, got %q", m)
}
