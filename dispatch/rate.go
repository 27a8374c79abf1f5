package dispatch

import (
	"math"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// bucket is the token bucket of a target's rate limit: a call takes a token.
// It is pure: time is an argument.
type bucket struct {
	perSecond, burst float64
	tokens           float64
	at               time.Time // of tokens
}

// newBucket makes a full bucket. Without a burst a second's worth may pass at
// once, and always at least one call.
func newBucket(r bridge.TargetRate) *bucket {
	burst := float64(r.Burst)
	if burst < 1 {
		burst = max(1, math.Ceil(r.PerSecond))
	}
	return &bucket{perSecond: r.PerSecond, burst: burst, tokens: burst}
}

// refill adds what time brought; a clock set back refills nothing.
func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at); b.at.IsZero() || passed < 0 {
		b.at = now
	} else if passed > 0 {
		b.tokens = min(b.burst, b.tokens+passed.Seconds()*b.perSecond)
		b.at = now
	}
}

// available is how many calls may begin at now.
func (b *bucket) available(now time.Time) int {
	b.refill(now)
	return int(b.tokens + tokenDust)
}

// tokenDust makes up for what floating point loses: a wait for a token ends
// with one.
const tokenDust = 1e-6

// take takes a token; there is one.
func (b *bucket) take(now time.Time) {
	b.refill(now)
	b.tokens = max(0, b.tokens-1)
}

// giveBack returns a token that was not used.
func (b *bucket) giveBack(time.Time) { b.tokens = min(b.burst, b.tokens+1) }

// until is how long it takes until n calls may begin, one by one.
func (b *bucket) until(now time.Time, n int) time.Duration {
	b.refill(now)
	missing := float64(n) - b.tokens
	if missing <= tokenDust {
		return 0
	}
	return secondsUp(missing / b.perSecond)
}

func (b *bucket) roomIn(now time.Time, n int) time.Duration { return b.until(now, n) - rateAhead }

func (b *bucket) want(now time.Time) time.Duration { return b.until(now, 1) }

// soon is how many calls may begin within d of now, one by one.
func (b *bucket) soon(now time.Time, d time.Duration) int {
	b.refill(now)
	return int(min(b.tokens+d.Seconds()*b.perSecond, math.MaxInt32) + tokenDust)
}

// secondsUp is a duration of at least a microsecond and at most a day.
func secondsUp(s float64) time.Duration {
	return time.Duration(min(s, 86400)*float64(time.Second)) + time.Microsecond
}
