package dispatch

import "time"

const (
	// alertSpan is a day: a target that fails as long is told of at half of it
	// and at its end (dispatch.md §5, Auto-disable).
	alertSpan = 24 * time.Hour
	// quietSpan ends an episode: failures further apart are not one outage. It
	// is beyond the longest delay of the default retries (4h).
	quietSpan = 12 * time.Hour
)

// failing tells for how long a target has been failing without one success. It
// is pure: time is an argument.
type failing struct {
	disableAfter time.Duration // 0: never
	since        time.Time     // zero: it does not fail
	last         time.Time
	awaited      bool // what failed last comes again
	alerted      time.Duration
}

// ended takes the end of a call. alert is non-zero once per half of alertSpan
// that it has been failing; disable says that disable_after is reached.
func (f *failing) ended(c callEnd, now time.Time) (alert time.Duration, disable bool) {
	if c.delivered {
		f.since, f.alerted = time.Time{}, 0
		return 0, false
	}
	if f.since.IsZero() || now.Sub(f.last) > f.quiet() {
		f.since, f.alerted = now, 0
	}
	f.last, f.awaited = now, !c.final
	lasted := now.Sub(f.since)
	for _, span := range []time.Duration{alertSpan / 2, alertSpan} {
		if lasted >= span && f.alerted < span {
			alert, f.alerted = span, span
		}
	}
	return alert, f.disableAfter > 0 && lasted >= f.disableAfter
}

// quiet is the pause between two failures that makes them two outages. While
// something waits to be called again the pause is the bridge's own (a backoff,
// an open breaker) and says nothing of the target.
func (f *failing) quiet() time.Duration {
	if f.disableAfter > 0 && !f.awaited {
		return min(quietSpan, f.disableAfter/2)
	}
	return quietSpan
}
