package dispatch

import (
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// outageTold is how many feeds of one outage are told of as a warning: where
// Queen is away every feed of every route says the same.
const outageTold = 3

// outage counts the feeds of all routes that get no answer from Queen.
type outage struct {
	mu    sync.Mutex
	feeds int
	told  int
	since time.Time
}

// begins notes one more feed and says how loud it is told of.
func (o *outage) begins() slog.Level {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.feeds == 0 {
		o.since, o.told = time.Now(), 0
	}
	o.feeds++
	if o.told++; o.told <= outageTold {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// ends notes one less; over says that it was the last, and how long it took.
func (o *outage) ends() (over bool, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.feeds--
	return o.feeds == 0, time.Since(o.since)
}

// noAnswer says that a pop failed as it would for every other queue: Queen is
// away, or busy. Other errors are the queue's own, or an operator's matter.
func noAnswer(err error) bool { return queen.Temporary(err) }
