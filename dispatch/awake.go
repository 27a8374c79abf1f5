package dispatch

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// The far timer: Queen takes none beyond 90 days.
const (
	awakeDelay = 89 * 24 * time.Hour
	awakeRenew = 24 * time.Hour
)

// firesLate says that a broker fires timers up to 28 s late while it is idle,
// and shows them to queue-scoped pops up to 53 s late: 1.x before 1.5.2
// (measured 1.3.0). The cure is a timer that is always pending, and pops that
// ask the database.
func firesLate(h queen.Health) bool {
	return h.Engine == "segments-rust" && olderThan(h.Version, 1, 5, 2)
}

// olderThan compares a dotted version; what is no version is not older.
func olderThan(version string, than ...int) bool {
	parts := strings.Split(version, ".")
	for i, want := range than {
		if i >= len(parts) {
			return true
		}
		number, _, pre := strings.Cut(parts[i], "-")
		got, err := strconv.Atoi(number)
		switch {
		case err != nil:
			return false
		case got != want:
			return got < want
		case pre: // 1.5.2-beta.1 is older than 1.5.2
			return true
		}
	}
	return false
}

// keepAwake keeps one far timer pending until ctx ends.
func (d *Dispatcher) keepAwake(ctx context.Context) {
	for pause, told := (backoff{}), false; ; {
		timer := queen.Timer{
			Queue: bridge.AwakeQueue, Key: bridge.AwakeKey, Partition: bridge.AwakeKey, Delay: awakeDelay,
			TransactionID: bridge.AwakeKey + "/" + strconv.FormatInt(time.Now().Unix(), 10), Payload: []byte("{}"),
		}
		_, err := d.queen.Schedule(ctx, []queen.Timer{timer})
		wait := jitter(awakeRenew)
		if err != nil {
			if !told && ctx.Err() == nil {
				d.log.LogAttrs(ctx, slog.LevelWarn, "retries may come up to a minute late: the timer that keeps Queen awake is not set", slog.Any(keyError, err))
			}
			told, wait = true, pause.next(queen.RetryAfter(err))
		} else {
			told, pause = false, backoff{}
		}
		if sleep(ctx, wait) != nil {
			return
		}
	}
}
