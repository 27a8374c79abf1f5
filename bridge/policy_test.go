package bridge_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestNewPolicyReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, problems := bridge.NewPolicy(bridge.Route{
		Retry: bridge.RetryPolicy{MaxAge: -time.Second, Backoff: []time.Duration{time.Second, 0, 3000 * time.Hour}, Jitter: "some"},
		Outcomes: bridge.Outcomes{
			Success: []string{"2xx", "404", "6xx", "99", "+44", "299-200", "400-", "xx", ""},
			Retry:   []string{"404", "5xx"},
			Dead:    []string{"500-599", "500"},
		},
	})
	const horizon = "must be above 0s and at most 2160h (Queen's timer horizon), got "
	const form = `must be a status code ("404"), a range ("500-599") or a class ("5xx"), got `
	want := []string{
		"retry.max_attempts: must be 1 or more, got 0",
		"retry.max_age: " + horizon + "-1s",
		"retry.backoff[1]: " + horizon + "0s",
		"retry.backoff[2]: " + horizon + "3000h",
		`retry.jitter: must be equal, full or none, got "some"`,
		"outcomes.success[2]: " + form + `"6xx"`,
		"outcomes.success[3]: " + form + `"99"`,
		"outcomes.success[4]: " + form + `"+44"`,
		"outcomes.success[5]: " + form + `"299-200"`,
		"outcomes.success[6]: " + form + `"400-"`,
		"outcomes.success[7]: " + form + `"xx"`,
		"outcomes.success[8]: " + form + `""`,
		"outcomes.retry[0]: status 404 is also listed as success: list it once",
		"outcomes.dead[0]: status 500 is also listed as retry: list it once",
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NewPolicy (-want +got):\n%s", diff)
	}
}

func TestPolicyUsedUp(t *testing.T) {
	t.Parallel()
	p := policy(t, nil)
	for attempt, want := range map[int]bool{0: false, 11: false, 12: true, 13: true} {
		if got := p.UsedUp(bridge.Delivery{Attempt: attempt}); got != want {
			t.Errorf("UsedUp after %d calls = %v", attempt, got)
		}
	}
	if p.MaxAttempts() != 12 || p.MaxAge() != 24*time.Hour {
		t.Errorf("bounds = %d, %s", p.MaxAttempts(), p.MaxAge())
	}
}

func TestPolicyKeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	r := testRoute()
	p, _ := bridge.NewPolicy(r)
	r.Retry.Backoff[0] = time.Hour
	if got := bridge.Decide(answer(500), bridge.Facts{Attempt: 1}, p, now, half); got.Delay != 5*time.Second {
		t.Errorf("a change of the route reached the policy: delay %s", got.Delay)
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 30 * time.Second: "30s", time.Minute: "1m", 90 * time.Second: "1m30s", 168 * time.Hour: "168h",
		90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 10*time.Hour + 20*time.Second: "10h0m20s",
		100 * time.Minute: "1h40m", 1500 * time.Millisecond: "1.5s", -time.Hour: "-1h", 20 * time.Minute: "20m", 10 * time.Second: "10s",
	} {
		got := bridge.FormatDuration(d)
		if back, err := time.ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("FormatDuration(%d) = %s (%s, %v), want %s", d, got, back, err, want)
		}
	}
}
