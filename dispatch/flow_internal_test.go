package dispatch

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/queenbridge/queenbridge/bridge"
)

// flowStart is the beginning of the tests' time.
var flowStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func half() float64 { return 0.5 }

func TestAdaptiveLimitDoublesUntilTheFirstTrouble(t *testing.T) {
	t.Parallel()
	a := newAdaptive(50)
	if a.slots() != 4 {
		t.Fatalf("limit = %d at first, want 4", a.slots())
	}
	windows := 0
	for a.slots() < 50 {
		for range a.slots() {
			a.succeeded()
		}
		windows++
	}
	if windows > 4 {
		t.Errorf("%d windows to a ceiling of 50, want 4", windows)
	}
	a.overloaded(flowStart, flowStart.Add(time.Second))
	if a.slots() != 25 {
		t.Errorf("limit = %d after trouble, want half", a.slots())
	}
	for range a.slots() {
		a.succeeded()
	}
	if a.slots() != 25 && a.slots() != 26 || math.Abs(a.limit-26) > 0.1 {
		t.Errorf("limit = %v a window later, want one more", a.limit)
	}
}

func TestAdaptiveLimitIsHalvedOncePerWindow(t *testing.T) {
	t.Parallel()
	a := newAdaptive(64)
	a.limit = 64
	at := func(s int) time.Time { return flowStart.Add(time.Duration(s) * time.Second) }
	for range 64 { // all begun together, all refused
		a.overloaded(at(0), at(1))
	}
	if a.slots() != 32 {
		t.Errorf("limit = %d after one refused window, want 32", a.slots())
	}
	a.overloaded(at(2), at(3)) // begun after the cut
	if a.slots() != 16 {
		t.Errorf("limit = %d after the next, want 16", a.slots())
	}
}

// The limit stays between 1 and the ceiling whatever happens.
func TestAdaptiveLimitBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := newAdaptive(rapid.IntRange(1, 300).Draw(t, "ceiling"))
		now := flowStart
		t.Repeat(map[string]func(*rapid.T){
			"succeeded":  func(*rapid.T) { a.succeeded() },
			"overloaded": func(*rapid.T) { now = now.Add(time.Second); a.overloaded(now.Add(-time.Millisecond), now) },
			"restart":    func(*rapid.T) { now = now.Add(time.Second); a.restart(now) },
			"bound":      func(t *rapid.T) { a.bound(rapid.IntRange(1, 300).Draw(t, "n")) },
			"": func(t *rapid.T) {
				if a.slots() < 1 || a.slots() > a.ceiling {
					t.Fatalf("limit %d, ceiling %d", a.slots(), a.ceiling)
				}
			},
		})
	})
}

func testBreaker() breaker {
	return breaker{cfg: bridge.Breaker{Enabled: true, Failures: 10, Open: 10 * time.Second, MaxOpen: 5 * time.Minute}}
}

func TestBreakerOpensAtFailuresInARow(t *testing.T) {
	t.Parallel()
	fault, success := callEnd{fault: true}, callEnd{replied: true, delivered: true}
	eventFails := callEnd{replied: true} // a 500: the event's failure
	timedOut := callEnd{overloaded: true}
	broken := callEnd{replied: true, fault: true, broken: true}
	repeat := func(n int, c callEnd) (list []callEnd) {
		for range n {
			list = append(list, c)
		}
		return list
	}
	join := func(lists ...[]callEnd) (all []callEnd) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		calls []callEnd
		want  breakerState
	}{
		{"nine", repeat(9, fault), breakerClosed},
		{"ten", repeat(10, fault), breakerOpen},
		{"a success between", join(repeat(9, fault), repeat(1, success), repeat(9, fault)), breakerClosed},
		{"failures of events", repeat(1000, eventFails), breakerClosed},
		{"timeouts say nothing of the target", repeat(1000, timedOut), breakerClosed},
		{"a timeout does not prove that it is well", join(repeat(9, fault), repeat(1, timedOut), repeat(1, fault)), breakerOpen},
		{"half of twenty", join(repeat(9, fault), repeat(10, success), repeat(1, fault)), breakerOpen},
		{"one that is broken", repeat(1, broken), breakerOpen},
		{"less than half of twenty", join(repeat(9, fault), repeat(12, success), repeat(1, fault)), breakerClosed},
		{"half of nineteen", join(repeat(9, success), repeat(9, fault), repeat(1, success)), breakerClosed},
	} {
		b, now := testBreaker(), flowStart
		for _, c := range tt.calls {
			now = now.Add(time.Millisecond)
			c.begun = now
			b.ended(c, now, half)
		}
		if got := b.state(now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestBreakerForgetsOldCalls(t *testing.T) {
	t.Parallel()
	b, now := testBreaker(), flowStart
	for i := range 9 {
		b.ended(callEnd{begun: now, fault: true}, now, half)
		b.ended(callEnd{begun: now, replied: true}, now, half)
		now = now.Add(time.Duration(i) * time.Millisecond)
	}
	now = now.Add(ratioWindow + 3*time.Second)
	b.ended(callEnd{begun: now, replied: true}, now, half)
	for range 2 {
		b.ended(callEnd{begun: now, fault: true}, now, half)
	}
	if got := b.state(now); got != breakerClosed {
		t.Errorf("%s: failures of half a minute ago count", got)
	}
}

// fail opens a breaker.
func (b *breaker) fail(now time.Time, random func() float64) {
	for range b.cfg.Failures {
		b.ended(callEnd{begun: now, fault: true}, now, random)
	}
}

func TestBreakerProbesWithOneCall(t *testing.T) {
	t.Parallel()
	b, now := testBreaker(), flowStart
	b.fail(now, half)
	if b.state(now) != breakerOpen || !b.until.Equal(now.Add(10*time.Second)) {
		t.Fatalf("%s until %s, want open for 10s", b.state(now), b.until)
	}
	b.ended(callEnd{begun: now, replied: true, delivered: true}, now, half) // of before
	if b.state(now) != breakerOpen {
		t.Error("a call of before closed it")
	}
	now = b.until
	if b.state(now) != breakerHalfOpen || !b.begin(now) {
		t.Fatal("no probe once the time is up")
	}
	if b.begin(now) {
		t.Error("a second probe beside the first")
	}
	b.abandon()
	if !b.begin(now) {
		t.Error("a probe that was not made leaves no room for another")
	}
	if tr := b.ended(callEnd{begun: now, probe: true, fault: true}, now, half); tr != opened {
		t.Errorf("a failed probe = %d, want it open again", tr)
	}
	if got := b.until.Sub(now); got != 20*time.Second {
		t.Errorf("open for %s the second time, want 20s", got)
	}
}

func TestAnyAnswerToTheProbeClosesTheBreaker(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		probe callEnd
		want  breakerState
		then  time.Duration // the next opening
	}{
		{"200", callEnd{replied: true, delivered: true}, breakerClosed, 10 * time.Second},
		{"500", callEnd{replied: true}, breakerClosed, 10 * time.Second},
		{"401", callEnd{replied: true, fault: true}, breakerClosed, 20 * time.Second},
		{"refused", callEnd{fault: true}, breakerOpen, 0},
		{"broken", callEnd{replied: true, fault: true, broken: true}, breakerOpen, 0},
		{"timeout", callEnd{overloaded: true}, breakerOpen, 0},
	} {
		b := testBreaker()
		b.fail(flowStart, half)
		now := b.until
		tt.probe.begun, tt.probe.probe = now, b.begin(now)
		b.ended(tt.probe, now, half)
		if got := b.state(now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			continue
		}
		if tt.want == breakerOpen {
			continue
		}
		b.fail(now.Add(time.Second), half)
		if got := b.until.Sub(now.Add(time.Second)); got != tt.then {
			t.Errorf("%s: open for %s the next time, want %s", tt.name, got, tt.then)
		}
	}
}

// The reopening is spread by a fifth each way, so replicas that saw the same
// failures do not probe together, and doubles up to max_open.
func TestBreakerReopeningIsJittered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := testBreaker(), flowStart
		want := b.cfg.Open
		for range rapid.IntRange(1, 12).Draw(t, "openings") {
			r := rapid.Float64Range(0, 0.999).Draw(t, "random")
			random := func() float64 { return r }
			if b.open {
				b.ended(callEnd{begun: now, probe: b.begin(now)}, now, random)
			} else {
				b.fail(now, random)
			}
			got := b.until.Sub(now)
			if exact := time.Duration(float64(want) * (0.8 + 0.4*r)); (got - exact).Abs() > time.Microsecond {
				t.Fatalf("open for %s with chance %v, want %s", got, r, exact)
			}
			want, now = min(2*want, b.cfg.MaxOpen), b.until
		}
	})
}

func TestDisabledBreakerStaysClosed(t *testing.T) {
	t.Parallel()
	b := testBreaker()
	b.cfg.Enabled = false
	b.fail(flowStart, half)
	b.fail(flowStart, half)
	if b.state(flowStart) != breakerClosed {
		t.Error("a breaker that is off opened")
	}
}

// No interval lets more calls pass than burst and rate allow, and whoever
// waits as long as told gets one.
func TestBucketKeepsItsRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := bridge.TargetRate{
			PerSecond: rapid.Float64Range(0.01, 500).Draw(t, "per_second"), Burst: rapid.IntRange(0, 50).Draw(t, "burst"),
		}
		b, now, taken := newBucket(rate), flowStart, 0
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			if b.available(now) < 1 {
				now = now.Add(b.until(now, 1))
				if b.available(now) < 1 {
					t.Fatalf("no token after the wait for one: %+v", b)
				}
			}
			b.take(now)
			taken++
			if allowed := b.burst + rate.PerSecond*now.Sub(flowStart).Seconds(); float64(taken) > allowed+0.01 {
				t.Fatalf("%d calls after %s, want at most %v", taken, now.Sub(flowStart), allowed)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

func TestBucketWithoutABurst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate bridge.TargetRate
		want int
	}{
		{bridge.TargetRate{PerSecond: 5}, 5}, {bridge.TargetRate{PerSecond: 0.1}, 1},
		{bridge.TargetRate{PerSecond: 2.5}, 3}, {bridge.TargetRate{PerSecond: 5, Burst: 20}, 20},
	} {
		if got := newBucket(tt.rate).available(flowStart); got != tt.want {
			t.Errorf("%+v: %d at once, want %d", tt.rate, got, tt.want)
		}
	}
}

func TestFailingTargetIsToldOfAndDisabled(t *testing.T) {
	t.Parallel()
	f := failing{disableAfter: 30 * time.Hour}
	var alerts []time.Duration
	for at := time.Duration(0); at <= 30*time.Hour; at += 10 * time.Minute {
		alert, disable := f.ended(callEnd{}, flowStart.Add(at))
		if alert > 0 {
			alerts = append(alerts, at)
		}
		if disable != (at == 30*time.Hour) {
			t.Fatalf("disable = %v after %s", disable, at)
		}
	}
	if len(alerts) != 2 || alerts[0] != 12*time.Hour || alerts[1] != 24*time.Hour {
		t.Errorf("told after %v, want 12h and 24h", alerts)
	}
}

func TestFailingEndsWithASuccess(t *testing.T) {
	t.Parallel()
	f := failing{disableAfter: time.Hour}
	for at := time.Duration(0); at < 10*time.Hour; at += 10 * time.Minute {
		if _, disable := f.ended(callEnd{delivered: at%(50*time.Minute) == 0}, flowStart.Add(at)); disable {
			t.Fatalf("disabled after %s although calls succeed", at)
		}
	}
}

func TestFailuresFarApartAreNoOutage(t *testing.T) {
	t.Parallel()
	f := failing{}
	for day := range 30 {
		if alert, _ := f.ended(callEnd{}, flowStart.AddDate(0, 0, day)); alert > 0 {
			t.Fatalf("told of an outage of %s on day %d: one event a day failed", alert, day)
		}
	}
}

// The bridge itself keeps calls from a target that fails: that must not look
// like quiet times between outages, or disable_after would never be reached.
func TestTargetIsDisabledThoughItsBreakerKeepsCallsAway(t *testing.T) {
	t.Parallel()
	const after = 5 * time.Minute
	for _, end := range []callEnd{{fault: true}, {fault: true, replied: true}} {
		l := newLimiter(8, nil)
		s := l.newShare(8, bridge.Target{
			Name: "t", DisableAfter: after, Breaker: bridge.Breaker{Enabled: true, Failures: 10, Open: 10 * time.Second, MaxOpen: 5 * time.Minute},
		})
		now, disabled := flowStart, false
		for !disabled && now.Sub(flowStart) < 24*time.Hour {
			if until := s.blockedUntil(); until.After(now) {
				now = until
			}
			c := end
			c.begun, c.probe = now, s.begin(now)
			disabled = s.ended(c, now).disable
			now = now.Add(time.Second)
		}
		if lasted := now.Sub(flowStart); !disabled || lasted > after+6*time.Minute+time.Second {
			t.Errorf("%+v: disabled = %v after %s, want within one wait of the breaker after %s", end, disabled, lasted, after)
		}
	}
}

// An event refused for its own sake now and then is no outage of its target.
func TestRefusedEventsFarApartDisableNothing(t *testing.T) {
	t.Parallel()
	f := failing{disableAfter: time.Hour}
	for hour := range 48 {
		if _, disable := f.ended(callEnd{replied: true, final: true}, flowStart.Add(time.Duration(hour)*time.Hour)); disable {
			t.Fatalf("disabled in hour %d: one event an hour was refused", hour)
		}
	}
}
