package bridge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The ways to spread retries (RetryPolicy.Jitter).
const (
	JitterEqual = "equal"
	JitterFull  = "full"
	JitterNone  = "none"
)

// maxTimer is Queen's default timer horizon: a later timer is refused
// (queen-contract.md, "Timers").
const maxTimer = 90 * 24 * time.Hour

// Policy is a route's retry policy and outcome lists, checked and ready for
// Decide. It is immutable and safe for concurrent use; the zero value is not
// usable: see NewPolicy.
type Policy struct {
	maxAttempts int
	maxAge      time.Duration
	backoff     []time.Duration
	jitter      string
	listed      map[int]listing
}

// listing is what a route's outcomes say about one status code.
type listing struct {
	kind  OutcomeKind
	width int // codes covered by the entry: the narrowest entry wins
}

// NewPolicy reads a route's retry and outcomes. The paths of its problems are
// relative to the route: retry.max_attempts, outcomes.dead[0]. With a problem
// the Policy is not usable.
//
// Where a code is covered by several outcome entries the narrowest wins, so
// retry: ["202"] stands beside the default success: ["2xx"].
func NewPolicy(r Route) (Policy, []Problem) {
	p := Policy{
		maxAttempts: r.Retry.MaxAttempts, maxAge: r.Retry.MaxAge,
		backoff: slices.Clone(r.Retry.Backoff), jitter: r.Retry.Jitter,
		listed: map[int]listing{},
	}
	problems := r.Retry.check()
	for _, list := range []struct {
		name  string
		kind  OutcomeKind
		codes []string
	}{
		{"success", Delivered, r.Outcomes.Success},
		{"retry", Retry, r.Outcomes.Retry},
		{"dead", Dead, r.Outcomes.Dead},
	} {
		for i, codes := range list.codes {
			if text := p.list(list.kind, codes); text != "" {
				problems = append(problems, Problem{Path: fmt.Sprintf("outcomes.%s[%d]", list.name, i), Text: text})
			}
		}
	}
	return p, problems
}

// MaxAttempts bounds the calls of one delivery.
func (p Policy) MaxAttempts() int { return p.maxAttempts }

// MaxAge bounds the time since the first failure of a delivery.
func (p Policy) MaxAge() time.Duration { return p.maxAge }

// UsedUp says that a popped delivery has no call left: it becomes a dead
// letter of class exhausted without one.
func (p Policy) UsedUp(d Delivery) bool { return d.Attempt >= p.maxAttempts }

// Expired says that max_age is over since the first failure of a delivery.
func (p Policy) Expired(d Delivery, now time.Time) bool {
	return timeLeft(Facts{FirstFailed: d.FirstFailed}, p, now) <= 0
}

// Judge is what an answer says by itself, before the attempts and the age of a
// delivery are looked at, and the class of the failure. Hold: the target's
// fault.
func (p Policy) Judge(resp Response, now time.Time) (OutcomeKind, FailureClass) {
	v := judge(resp, p, now)
	return v.kind, v.failure.Class
}

func (r RetryPolicy) check() []Problem {
	var problems []Problem
	add := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: "retry." + path, Text: fmt.Sprintf(format, args...)})
	}
	if r.MaxAttempts < 1 {
		add("max_attempts", "must be 1 or more, got %d", r.MaxAttempts)
	}
	if r.MaxAge <= 0 || r.MaxAge > maxTimer {
		add("max_age", "must be above 0s and at most 2160h (Queen's timer horizon), got %s", FormatDuration(r.MaxAge))
	}
	if len(r.Backoff) == 0 {
		add("backoff", "must list at least one delay, such as [5s, 30s, 2m]")
	}
	for i, d := range r.Backoff {
		if d <= 0 || d > maxTimer {
			add(fmt.Sprintf("backoff[%d]", i), "must be above 0s and at most 2160h (Queen's timer horizon), got %s", FormatDuration(d))
		}
	}
	if !slices.Contains(jitters, r.Jitter) {
		add("jitter", "%s", oneOf(jitters, r.Jitter))
	}
	return problems
}

// list notes that the codes of one entry lead to kind; it returns what is
// wrong with the entry.
func (p *Policy) list(kind OutcomeKind, entry string) string {
	low, high, ok := parseCodes(entry)
	if !ok {
		return fmt.Sprintf(`must be a status code ("404"), a range ("500-599") or a class ("5xx"), got %q`, entry)
	}
	width := high - low + 1
	for code := low; code <= high; code++ {
		old, taken := p.listed[code]
		if taken && old.width == width && old.kind != kind {
			return fmt.Sprintf("status %d is also listed as %s: list it once", code, listName(old.kind))
		}
		if !taken || width < old.width {
			p.listed[code] = listing{kind, width}
		}
	}
	return ""
}

func listName(kind OutcomeKind) string {
	if kind == Delivered {
		return "success"
	}
	return string(kind)
}

// parseCodes reads "404", "500-599" or "5xx".
func parseCodes(entry string) (low, high int, ok bool) {
	if class, found := strings.CutSuffix(strings.ToLower(entry), "xx"); found {
		digit, ok := parseDigits(class, 1)
		return digit * 100, digit*100 + 99, ok && digit >= 1 && digit <= 5
	}
	from, to, isRange := strings.Cut(entry, "-")
	low, ok = parseDigits(from, 3)
	high = low
	if ok && isRange {
		high, ok = parseDigits(to, 3)
	}
	return low, high, ok && low >= 100 && high <= 599 && low <= high
}

// parseDigits reads exactly n decimal digits; no sign, unlike Atoi.
func parseDigits(s string, n int) (int, bool) {
	if len(s) != n || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	return v, err == nil
}

// delay is how long to wait after the attempt-th failure, jitter included.
func (p Policy) delay(attempt int, random func() float64) time.Duration {
	if len(p.backoff) == 0 {
		return 0
	}
	d := p.backoff[min(max(attempt, 1), len(p.backoff))-1]
	r := min(max(random(), 0), 1)
	switch p.jitter {
	case JitterFull:
		return time.Duration(float64(d) * r)
	case JitterEqual:
		return d/2 + time.Duration(float64(d-d/2)*r)
	}
	return d
}
