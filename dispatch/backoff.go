package dispatch

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// backoff is the pause before a call to Queen is sent again: 100 ms, doubled
// up to 5 s.
type backoff struct {
	last time.Duration
	n    int // pauses so far
}

// next is the next pause, at least what the broker asked for.
func (b *backoff) next(asked time.Duration) time.Duration {
	b.n++
	b.last = min(max(2*b.last, 100*time.Millisecond), 5*time.Second)
	return max(jitter(b.last), min(asked, time.Minute))
}

// level is Warn before the first pause and then about once a minute: the same
// trouble is not told every few seconds.
func (b *backoff) level() slog.Level {
	if b.n%16 == 0 {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// tell calls stuck once the trouble has lasted for more than a second.
func (b *backoff) tell(stuck func()) {
	if b.n >= 4 {
		stuck()
	}
}

// jitter spreads a duration over its upper half.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}
