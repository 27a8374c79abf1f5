package signing

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// unit is how a timestamp is written.
type unit string

const (
	unitSeconds unit = "s"
	unitMillis  unit = "ms"
	unitRFC3339 unit = "rfc3339"
	unitIMF     unit = "imf" // Tue, 14 Nov 2023 22:13:20 GMT
)

var units = []string{"s", "ms", "rfc3339", "imf"}

// lastSecond is the end of year 9999: later stamps are judged as this one,
// so that no arithmetic overflows.
const lastSecond = 253402300799

// parse reads a timestamp strictly: numbers are 1 to 20 ASCII digits, no sign,
// no space, no fraction. The grain is the unit the sender's clock counted in.
func (u unit) parse(text string) (at time.Time, grain time.Duration, ok bool) {
	switch u {
	case unitSeconds:
		n, ok := digits(text)
		return time.Unix(min(n, lastSecond), 0), time.Second, ok
	case unitMillis:
		n, ok := digits(text)
		return time.UnixMilli(min(n, lastSecond*1000)), time.Millisecond, ok
	case unitRFC3339:
		at, err := time.Parse(time.RFC3339Nano, text)
		if at.Nanosecond() == 0 {
			return at, time.Second, err == nil
		}
		return at, time.Nanosecond, err == nil
	}
	at, err := time.Parse(http.TimeFormat, text)
	return at, time.Second, err == nil
}

// format is the inverse of parse.
func (u unit) format(at time.Time) string {
	switch u {
	case unitSeconds:
		return strconv.FormatInt(at.Unix(), 10)
	case unitMillis:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case unitRFC3339:
		return at.UTC().Format(time.RFC3339)
	}
	return at.UTC().Format(http.TimeFormat)
}

// digits reads ^[0-9]{1,20}$, saturating.
func digits(text string) (int64, bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		d := int64(text[i]) - '0'
		if d < 0 || d > 9 {
			return 0, false
		}
		if n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64
			continue
		}
		n = n*10 + d
	}
	return n, true
}

// window judges a timestamp against the time of receipt, both ways and with
// inclusive bounds. The time of receipt is cut to the grain of the stamp, so
// that a stamp of whole seconds is judged in whole seconds.
func window(at, now time.Time, grain, tolerance time.Duration) *Rejection {
	skew := now.Truncate(grain).Sub(at)
	if tolerance == 0 || skew.Abs() <= tolerance {
		return nil
	}
	if skew > 0 {
		return outside(now.Sub(at), "signed %d s ago, allowed are %g s", seconds(skew), tolerance.Seconds())
	}
	return outside(now.Sub(at), "signed %d s ahead of our clock, allowed are %g s", seconds(skew), tolerance.Seconds())
}

// seconds rounds away from zero: what is outside a window of whole seconds
// never reads as if it were inside.
func seconds(skew time.Duration) int64 { return int64(math.Ceil(skew.Abs().Seconds())) }

// outside is the rejection of a time that is too far from ours.
func outside(skew time.Duration, format string, args ...any) *Rejection {
	rej := reject(ReasonTimestampWindow, format, args...)
	rej.Skew = skew
	return rej
}
