package bridge_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/queenbridge/queenbridge/bridge"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// half is a fixed random source: with equal jitter 75 % of the delay.
func half() float64 { return 0.5 }

func testRoute() bridge.Route {
	return bridge.Route{Retry: bridge.RetryPolicy{
		MaxAttempts: 12, MaxAge: 24 * time.Hour, Jitter: "none",
		Backoff: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute,
			30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour},
	}}
}

func policy(t testing.TB, change func(*bridge.Route)) bridge.Policy {
	t.Helper()
	r := testRoute()
	if change != nil {
		change(&r)
	}
	p, problems := bridge.NewPolicy(r)
	if len(problems) > 0 {
		t.Fatalf("NewPolicy: %v", problems)
	}
	return p
}

func answer(status int, headers ...string) bridge.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return bridge.Response{Status: status, Header: h, Body: []byte("the answer"), Sent: true}
}

// Every code from 100 to 599 against the lists of dispatch.md §5, written out
// once more.
func TestDecideByStatus(t *testing.T) {
	t.Parallel()
	retry := codes("408,409,423,425")
	hold := codes("429,401,403,404,405,407")
	deadServer := codes("501,505")
	p := policy(t, nil)
	for status := 100; status <= 599; status++ {
		want, class := bridge.Dead, bridge.FailureHTTP4xx
		switch {
		case status >= 200 && status < 300:
			want, class = bridge.Delivered, ""
		case status >= 300 && status < 400:
			want, class = bridge.Hold, bridge.FailureRedirect
		case retry[status]:
			want = bridge.Retry
		case status == 429:
			want, class = bridge.Hold, bridge.FailureThrottled
		case hold[status]:
			want = bridge.Hold
		case deadServer[status]:
			class = bridge.FailureHTTP5xx
		case status < 200, status >= 500:
			want, class = bridge.Retry, bridge.FailureHTTP5xx
		}
		got := bridge.Decide(answer(status), bridge.Facts{Attempt: 1}, p, now, half)
		if got.Kind != want || got.Failure.Class != class {
			t.Errorf("Decide(%d) = %s %s, want %s %s", status, got.Kind, got.Failure.Class, want, class)
		}
		if got.DisableTarget != (status == 410) {
			t.Errorf("Decide(%d).DisableTarget = %v", status, got.DisableTarget)
		}
		if want != bridge.Delivered && (got.Failure.Status != status || got.Failure.Error != fmt.Sprintf("answered %d", status)) {
			t.Errorf("Decide(%d).Failure = %+v", status, got.Failure)
		}
		if (got.Response == "the answer") != (want == bridge.Dead) {
			t.Errorf("Decide(%d).Response = %q", status, got.Response)
		}
		if got.PauseTarget != 0 {
			t.Errorf("Decide(%d).PauseTarget = %s without Retry-After", status, got.PauseTarget)
		}
	}
}

func codes(list string) map[int]bool {
	set := map[int]bool{}
	for text := range strings.SplitSeq(list, ",") {
		n, _ := strconv.Atoi(text)
		set[n] = true
	}
	return set
}

// A success whose body is needed is one only with the whole of it.
func TestDecideByANeededBody(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	for _, tt := range []struct {
		name           string
		status         int
		truncated, cut bool
		needed         bool
		want           bridge.OutcomeKind
		class          bridge.FailureClass
	}{
		{"whole", 200, false, false, true, bridge.Delivered, ""},
		{"lost on the way", 200, false, true, true, bridge.Retry, bridge.FailureConnect},
		{"lost on the way behind the limit", 200, true, true, true, bridge.Retry, bridge.FailureConnect},
		{"larger than can be taken", 200, true, false, true, bridge.Dead, bridge.FailureTooLarge},
		{"lost, and not needed", 200, false, true, false, bridge.Delivered, ""},
		{"too large, and not needed", 200, true, false, false, bridge.Delivered, ""},
		{"a failure all the same", 500, true, true, true, bridge.Retry, bridge.FailureHTTP5xx},
	} {
		resp := answer(tt.status)
		resp.Truncated, resp.Cut = tt.truncated, tt.cut
		got := bridge.Decide(resp, bridge.Facts{Attempt: 1, NeedsBody: tt.needed}, p, now, half)
		if got.Kind != tt.want || got.Failure.Class != tt.class {
			t.Errorf("Decide(%s) = %s, %s; want %s, %s", tt.name, got.Kind, got.Failure.Class, tt.want, tt.class)
		}
	}
}

func TestDecideByError(t *testing.T) {
	t.Parallel()
	failure := errors.New("broken")
	tests := []struct {
		class bridge.FailureClass
		sent  bool
		want  bridge.OutcomeKind
	}{
		{bridge.FailureConnect, false, bridge.Hold}, // refused, DNS
		{bridge.FailureTLS, false, bridge.Hold},
		{bridge.FailureTimeout, false, bridge.Hold}, // while connecting
		{bridge.FailureTimeout, true, bridge.Retry},
		{bridge.FailureConnect, true, bridge.Retry}, // reset after sending
		{bridge.FailureFunctionError, true, bridge.Retry},
		{bridge.FailureThrottled, true, bridge.Hold},
		{bridge.FailureRedirect, true, bridge.Hold},
		{bridge.FailureTooLarge, false, bridge.Dead},
		{bridge.FailureUndecodable, false, bridge.Dead},
		{bridge.FailureTransform, false, bridge.Dead},
		{"", false, bridge.Hold},
		{"", true, bridge.Retry},
	}
	p := policy(t, nil)
	for _, tt := range tests {
		resp := bridge.Response{Err: failure, Class: tt.class, Sent: tt.sent}
		got := bridge.Decide(resp, bridge.Facts{Attempt: 1}, p, now, half)
		if got.Kind != tt.want || got.Failure.Error != "broken" || got.Failure.Status != 0 || got.Failure.Class == "" {
			t.Errorf("Decide(%s, sent %v) = %+v, want %s", tt.class, tt.sent, got, tt.want)
		}
	}
}

func TestQueenOutcomeBeatsTheStatus(t *testing.T) {
	t.Parallel()
	p := policy(t, func(r *bridge.Route) { r.Outcomes.Dead = []string{"500"} })
	tests := []struct {
		status int
		word   string
		want   bridge.OutcomeKind
		class  bridge.FailureClass
	}{
		{400, "success", bridge.Delivered, ""},
		{302, "success", bridge.Delivered, ""},
		{410, "success", bridge.Delivered, ""},
		{200, "retry", bridge.Retry, bridge.FailureFunctionError},
		{400, "retry", bridge.Retry, bridge.FailureHTTP4xx},
		{429, " Retry ", bridge.Retry, bridge.FailureThrottled},
		{500, "retry", bridge.Retry, bridge.FailureHTTP5xx},
		{200, "dead", bridge.Dead, bridge.FailureDroppedByReply},
		{400, "dead", bridge.Dead, bridge.FailureDroppedByReply},
		{410, "DEAD", bridge.Dead, bridge.FailureDroppedByReply},
		{200, "maybe", bridge.Delivered, ""},
		{503, "", bridge.Retry, bridge.FailureHTTP5xx},
	}
	for _, tt := range tests {
		got := bridge.Decide(answer(tt.status, "Queen-Outcome", tt.word), bridge.Facts{Attempt: 1}, p, now, half)
		if got.Kind != tt.want || got.Failure.Class != tt.class || got.DisableTarget {
			t.Errorf("Decide(%d, Queen-Outcome: %s) = %+v, want %s %s", tt.status, tt.word, got, tt.want, tt.class)
		}
	}
}

func TestRouteListsBeatTheTable(t *testing.T) {
	t.Parallel()
	p := policy(t, func(r *bridge.Route) {
		r.Outcomes = bridge.Outcomes{
			Success: []string{"2xx", "409"},
			Retry:   []string{"202", "404", "500-599", "4XX", "301"},
			Dead:    []string{"503", "204", "410"},
		}
	})
	want := map[int]bridge.OutcomeKind{
		200: bridge.Delivered, 202: bridge.Retry, 204: bridge.Dead,
		301: bridge.Retry, 302: bridge.Hold,
		400: bridge.Retry, 401: bridge.Retry, 404: bridge.Retry, 409: bridge.Delivered, 410: bridge.Dead,
		500: bridge.Retry, 501: bridge.Retry, 503: bridge.Dead,
	}
	for status, kind := range want {
		got := bridge.Decide(answer(status, "Retry-After", "7"), bridge.Facts{Attempt: 1}, p, now, half)
		if got.Kind != kind {
			t.Errorf("Decide(%d) = %s, want %s", status, got.Kind, kind)
		}
		if got.DisableTarget {
			t.Errorf("Decide(%d) disables the target though its route lists the code", status)
		}
		if got.Kind == bridge.Retry && (got.Delay != 7*time.Second || got.PauseTarget != 7*time.Second) {
			t.Errorf("Decide(%d) = delay %s, pause %s, want Retry-After of 7s", status, got.Delay, got.PauseTarget)
		}
	}
}

// TestAJudgementBeatsTheStatus: what AWS Lambda says of a function does not
// stand in the status.
func TestAJudgementBeatsTheStatus(t *testing.T) {
	t.Parallel()
	failed := &bridge.Judgement{Kind: bridge.Retry, Class: bridge.FailureFunctionError, Error: "Err:\n  it  failed"}
	for _, tt := range []struct {
		name     string
		status   int
		judged   *bridge.Judgement
		outcomes bridge.Outcomes
		want     bridge.Outcome
	}{
		{"a failed function", 200, failed, bridge.Outcomes{}, bridge.Outcome{Kind: bridge.Retry, Failure: bridge.Failure{Class: bridge.FailureFunctionError, Status: 200, Error: "Err: it failed"}}},
		{"is no success because 2xx is listed", 200, failed, bridge.Outcomes{Success: []string{"2xx"}}, bridge.Outcome{Kind: bridge.Retry, Failure: bridge.Failure{Class: bridge.FailureFunctionError, Status: 200, Error: "Err: it failed"}}},
		{"410 that is no Gone", 410, &bridge.Judgement{Kind: bridge.Retry}, bridge.Outcomes{}, bridge.Outcome{Kind: bridge.Retry, Failure: bridge.Failure{Class: bridge.FailureHTTP4xx, Status: 410, Error: "answered 410"}}},
		{"a disabled key", 502, &bridge.Judgement{Kind: bridge.Hold, Error: "KMS"}, bridge.Outcomes{}, bridge.Outcome{Kind: bridge.Hold, Failure: bridge.Failure{Class: bridge.FailureHTTP5xx, Status: 502, Error: "KMS"}}},
		{"a list beats it elsewhere", 502, &bridge.Judgement{Kind: bridge.Hold, Error: "KMS"}, bridge.Outcomes{Dead: []string{"502"}}, bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{Class: bridge.FailureHTTP5xx, Status: 502, Error: "KMS"}}},
		{"a class alone", 413, &bridge.Judgement{Class: bridge.FailureTooLarge}, bridge.Outcomes{}, bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{Class: bridge.FailureTooLarge, Status: 413, Error: "answered 413"}}},
		{"no word", 200, &bridge.Judgement{}, bridge.Outcomes{}, bridge.Outcome{Kind: bridge.Delivered}},
	} {
		p := policy(t, func(r *bridge.Route) { r.Outcomes = tt.outcomes })
		got := bridge.Decide(bridge.Response{Status: tt.status, Judged: tt.judged}, bridge.Facts{Attempt: 1}, p, now, half)
		got.Delay = 0
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestAttemptsAndAgeEnd(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	day := now.Add(-24 * time.Hour)
	tests := []struct {
		name  string
		resp  bridge.Response
		facts bridge.Facts
		kind  bridge.OutcomeKind
		class bridge.FailureClass
		delay time.Duration
	}{
		{"one before the last", answer(500), bridge.Facts{Attempt: 11, FirstFailed: now.Add(-time.Hour)}, bridge.Retry, bridge.FailureHTTP5xx, 4 * time.Hour},
		{"the last", answer(500), bridge.Facts{Attempt: 12, FirstFailed: now.Add(-time.Hour)}, bridge.Dead, bridge.FailureExhausted, 0},
		{"the last is held", answer(404), bridge.Facts{Attempt: 12, FirstFailed: now.Add(-time.Hour)}, bridge.Hold, bridge.FailureHTTP4xx, 4 * time.Hour},
		{"the last succeeds", answer(200), bridge.Facts{Attempt: 12, FirstFailed: day}, bridge.Delivered, "", 0},
		{"too old", answer(500), bridge.Facts{Attempt: 3, FirstFailed: day}, bridge.Dead, bridge.FailureExpired, 0},
		{"too old and last", answer(500), bridge.Facts{Attempt: 12, FirstFailed: day}, bridge.Dead, bridge.FailureExhausted, 0},
		{"too old, held", answer(401), bridge.Facts{Attempt: 1, FirstFailed: day.Add(-time.Hour)}, bridge.Dead, bridge.FailureExpired, 0},
		{"too old, throttled", answer(429, "Retry-After", "60"), bridge.Facts{Attempt: 1, FirstFailed: day}, bridge.Dead, bridge.FailureExpired, 0},
		{"too old, refused", bridge.Response{Err: errors.New("connection refused"), Class: bridge.FailureConnect}, bridge.Facts{Attempt: 1, FirstFailed: day}, bridge.Dead, bridge.FailureExpired, 0},
		{"too old, dead anyway", answer(400), bridge.Facts{Attempt: 1, FirstFailed: day}, bridge.Dead, bridge.FailureHTTP4xx, 0},
		{"a minute left", answer(500), bridge.Facts{Attempt: 4, FirstFailed: day.Add(time.Minute)}, bridge.Retry, bridge.FailureHTTP5xx, time.Minute},
		{"clock ahead", answer(500), bridge.Facts{Attempt: 1, FirstFailed: now.Add(48 * time.Hour)}, bridge.Retry, bridge.FailureHTTP5xx, 5 * time.Second},
	}
	for _, tt := range tests {
		got := bridge.Decide(tt.resp, tt.facts, p, now, half)
		if got.Kind != tt.kind || got.Failure.Class != tt.class || got.Delay != tt.delay {
			t.Errorf("%s: Decide = %+v, want %s %s %s", tt.name, got, tt.kind, tt.class, tt.delay)
		}
		if got.Kind == bridge.Dead && got.Failure.Status != tt.resp.Status {
			t.Errorf("%s: the last status is lost: %+v", tt.name, got.Failure)
		}
		if got.Kind == bridge.Dead && got.Failure.Error == "" {
			t.Errorf("%s: the last error is lost: %+v", tt.name, got.Failure)
		}
	}
}

func TestThrottlePausesTheTarget(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	got := bridge.Decide(answer(503, "Retry-After", "90"), bridge.Facts{Attempt: 1}, p, now, half)
	if got.Kind != bridge.Hold || got.Delay != 90*time.Second || got.PauseTarget != 90*time.Second || got.Failure.Class != bridge.FailureThrottled {
		t.Errorf("503 with Retry-After: %+v", got)
	}
	if got = bridge.Decide(answer(429), bridge.Facts{Attempt: 1}, p, now, half); got.Delay != 30*time.Second {
		t.Errorf("429 without a header: delay %s, want 30s", got.Delay)
	}
	if got = bridge.Decide(answer(429, "Retry-After", "1"), bridge.Facts{Attempt: 1}, p, now, half); got.Delay != 5*time.Second || got.PauseTarget != time.Second {
		t.Errorf("429 with 1 s: %+v, want the backoff and a pause of 1 s", got)
	}
	if got = bridge.Decide(answer(500, "Retry-After", "90"), bridge.Facts{Attempt: 12}, p, now, half); got.Kind != bridge.Dead || got.PauseTarget != 90*time.Second {
		t.Errorf("last attempt with Retry-After: %+v, want dead and the target paused", got)
	}
	if got = bridge.Decide(answer(400, "Retry-After", "90"), bridge.Facts{Attempt: 1}, p, now, half); got.PauseTarget != 0 {
		t.Errorf("400 with Retry-After: %+v, want no pause: the answer is not retryable", got)
	}
}

func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  time.Duration // of a 503 whose backoff is 5 s; 0: no Retry-After at all
	}{
		{"7", 7 * time.Second}, {"0", 5 * time.Second}, {" 12 ", 12 * time.Second}, {"7.5", 7500 * time.Millisecond}, {"8.", 8 * time.Second},
		{"3600", time.Hour}, {"3601", time.Hour}, {"99999999999", time.Hour}, {"9223372036854775807", time.Hour},
		{"9223372036854775808", time.Hour}, {strings.Repeat("9", 500), time.Hour}, {"00000000000000000000007", 7 * time.Second},
		{"Mon, 30 Nov 2026 12:01:00 GMT", time.Minute}, {"Monday, 30-Nov-26 12:01:00 GMT", time.Minute}, {"Mon Nov 30 12:01:00 2026", time.Minute},
		{"Mon, 30 Nov 2026 11:00:00 GMT", 5 * time.Second}, {"Fri, 31 Dec 9999 23:59:59 GMT", time.Hour}, {"Mon, 01 Jan 0001 00:00:00 GMT", 5 * time.Second},
		{"", 0}, {"-5", 0}, {"+5", 0}, {"soon", 0}, {"1e3", 0}, {"Inf", 0}, {"NaN", 0}, {"0x10", 0}, {"1_000", 0}, {".", 0}, {"5.x", 0}, {"5,5", 0}, {"5 s", 0},
	}
	p := policy(t, nil)
	for _, tt := range tests {
		got := bridge.Decide(answer(503, "Retry-After", tt.value), bridge.Facts{Attempt: 1}, p, now, half)
		if tt.want == 0 {
			if got.Kind != bridge.Retry || got.Delay != 5*time.Second || got.PauseTarget != 0 {
				t.Errorf("Retry-After %q: %+v, want it ignored", tt.value, got)
			}
		} else if got.Kind != bridge.Hold || got.Delay != tt.want {
			t.Errorf("Retry-After %q: %+v, want hold of %s", tt.value, got, tt.want)
		}
	}
}

func TestQueenRetryAfterBeatsRetryAfter(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	for queen, want := range map[string]time.Duration{"60": time.Minute, "nonsense": 90 * time.Second, "": 90 * time.Second, "0": 5 * time.Second} {
		got := bridge.Decide(answer(503, "Retry-After", "90", "Queen-Retry-After", queen), bridge.Facts{Attempt: 1}, p, now, half)
		if got.Delay != want {
			t.Errorf("Queen-Retry-After %q: delay %s, want %s", queen, got.Delay, want)
		}
	}
}

// Retry-After caps at an hour, also what the backoff alone would have made.
func TestRetryAfterIsClamped(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	if got := bridge.Decide(answer(503, "Retry-After", "10"), bridge.Facts{Attempt: 8}, p, now, half); got.Delay != time.Hour {
		t.Errorf("delay %s, want 1h", got.Delay)
	}
	f := bridge.Facts{Attempt: 1, FirstFailed: now.Add(-24*time.Hour + 20*time.Second)}
	if got := bridge.Decide(answer(503, "Retry-After", "600"), f, p, now, half); got.Delay != 20*time.Second || got.PauseTarget != 10*time.Minute {
		t.Errorf("%+v, want the 20 s left of max_age and a pause of 10m", got)
	}
}

func TestErrorTextsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	inner := errors.New(`dial tcp: lookup "x": no such host`)
	tests := []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Post", URL: "https://h/p?token=s3cret", Err: inner}, `dial tcp: lookup "x": no such host`},
		{fmt.Errorf("call ci: %w", &url.Error{Op: "Post", URL: "https://u:s3cret@h/p", Err: inner}), `call ci: dial tcp: lookup "x": no such host`},
		{errors.New(`get "https://u:s3cret@h/p?token=s3cret": refused`), `get "https://h/p": refused`},
		{errors.New("two\n\tlines\x00\xff"), "two lines\ufffd\ufffd"},
		{errors.New(strings.Repeat("é", 300)), strings.Repeat("é", 128)},
	}
	p := policy(t, nil)
	for _, tt := range tests {
		got := bridge.Decide(bridge.Response{Err: tt.err, Class: bridge.FailureConnect}, bridge.Facts{Attempt: 1}, p, now, half)
		if got.Failure.Error != tt.want {
			t.Errorf("error text of %q = %q, want %q", tt.err, got.Failure.Error, tt.want)
		}
	}
}

func TestResponseHeadIsCut(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	for name, tt := range map[string]struct{ body, want string }{
		"short":     {"ok\x00\xff", "ok\ufffd\ufffd"},
		"on a rune": {strings.Repeat("x", 1023) + "€" + "more", strings.Repeat("x", 1023)},
		"long":      {strings.Repeat("€", 5000), strings.Repeat("€", 341)},
		"binary":    {strings.Repeat("\x00", 5000), strings.Repeat("\ufffd", 341)},
	} {
		resp := answer(400)
		resp.Body = []byte(tt.body)
		if got := bridge.Decide(resp, bridge.Facts{Attempt: 1}, p, now, half); got.Response != tt.want {
			t.Errorf("%s: response of %d bytes, want %d", name, len(got.Response), len(tt.want))
		}
	}
}

// Whatever is answered, a delay lies between its bounds.
func TestDelayBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := testRoute()
		r.Retry.Jitter = rapid.SampledFrom([]string{"equal", "full", "none"}).Draw(t, "jitter")
		r.Retry.MaxAge = time.Duration(rapid.Int64Range(1, int64(90*24*time.Hour)).Draw(t, "max_age"))
		for i := range r.Retry.Backoff {
			r.Retry.Backoff[i] = time.Duration(rapid.Int64Range(1, int64(90*24*time.Hour)).Draw(t, "backoff"))
		}
		p, problems := bridge.NewPolicy(r)
		if len(problems) > 0 {
			t.Fatalf("NewPolicy: %v", problems)
		}
		attempt := rapid.IntRange(1, 20).Draw(t, "attempt")
		resp := answer(rapid.IntRange(0, 700).Draw(t, "status"))
		after := rapid.SampledFrom([]string{"", "0", "1", "100", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"}).Draw(t, "after")
		resp.Header.Set("Retry-After", after)
		f := bridge.Facts{Attempt: attempt}
		left := r.Retry.MaxAge
		if rapid.Bool().Draw(t, "failed before") {
			age := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(100*24*time.Hour)).Draw(t, "age"))
			f.FirstFailed = now.Add(-age)
			left -= max(age, 0)
		}
		random := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		got := bridge.Decide(resp, f, p, now, func() float64 { return random })
		checkDelay(t, got, r.Retry, attempt, left, after)
	})
}

func checkDelay(t *rapid.T, got bridge.Outcome, r bridge.RetryPolicy, attempt int, left time.Duration, after string) {
	if got.Kind == bridge.Dead || got.Kind == bridge.Delivered {
		if got.Delay != 0 {
			t.Fatalf("%+v has a delay", got)
		}
		return
	}
	if got.Kind == bridge.Retry && attempt >= r.MaxAttempts {
		t.Fatalf("%+v after attempt %d of %d", got, attempt, r.MaxAttempts)
	}
	step := r.Backoff[min(attempt, len(r.Backoff))-1]
	low := map[string]time.Duration{"none": step, "equal": step / 2, "full": 0}[r.Jitter]
	if got.Delay < 0 || got.Delay < min(low, left, time.Hour) || got.Delay > left {
		t.Fatalf("delay %s out of bounds: backoff %s (%s), %s left", got.Delay, step, r.Jitter, left)
	}
	if after == "" && got.Delay > max(step, 30*time.Second) {
		t.Fatalf("delay %s above the backoff %s", got.Delay, step)
	}
	if len(after) > 1 && got.Delay > time.Hour || got.PauseTarget > time.Hour || got.PauseTarget < 0 {
		t.Fatalf("delay %s, pause %s above an hour", got.Delay, got.PauseTarget)
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		jitter    string
		random    float64
		wantDelay time.Duration
	}{
		{"none", 0.3, 5 * time.Second}, {"equal", 0, 2500 * time.Millisecond}, {"equal", 0.5, 3750 * time.Millisecond},
		{"equal", 1, 5 * time.Second}, {"full", 0, 0}, {"full", 0.5, 2500 * time.Millisecond}, {"full", -3, 0}, {"full", 7, 5 * time.Second},
	} {
		p := policy(t, func(r *bridge.Route) { r.Retry.Jitter = tt.jitter })
		got := bridge.Decide(answer(500), bridge.Facts{Attempt: 1}, p, now, func() float64 { return tt.random })
		if got.Delay != tt.wantDelay {
			t.Errorf("%s jitter at %v = %s, want %s", tt.jitter, tt.random, got.Delay, tt.wantDelay)
		}
	}
}

func FuzzDecideHeaders(f *testing.F) {
	f.Add(503, "120", "retry", "")
	f.Add(429, "Mon, 30 Nov 2026 12:01:00 GMT", "", "9999999999999999999")
	p := policy(f, nil)
	f.Fuzz(func(t *testing.T, status int, after, outcome, queenAfter string) {
		resp := answer(status, "Retry-After", after, "Queen-Outcome", outcome, "Queen-Retry-After", queenAfter)
		got := bridge.Decide(resp, bridge.Facts{Attempt: 1}, p, now, half)
		if got.Delay < 0 || got.Delay > time.Hour || got.PauseTarget < 0 || got.PauseTarget > time.Hour {
			t.Errorf("Decide = %+v", got)
		}
		if got.Kind == bridge.Retry && got.Delay < 5*time.Second || got.Kind == bridge.Hold && got.Delay < 5*time.Second {
			t.Errorf("Decide = %+v, below the backoff", got)
		}
	})
}
