package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// A replay moves the group of a route back in its queue. Queen's seek takes
// every lease, and the settles of what was leased are refused: what had failed
// of it comes again with the rest. It would not be lost, but with ordering
// partition its holder might call on beside its successor. So the route is
// paused first, and nobody may hold anything: Queen says so for every process.
//
// A seek may also move forward, over what was never delivered. So no partition
// is moved behind its oldest pending event; what is taken between the look and
// the seek only moves the position on.

// ErrReplayRefused matches (errors.Is) the error of a replay that the state of
// the route forbids; its text says what to do.
var ErrReplayRefused = errors.New("the route cannot be replayed now")

const (
	// pauseKnown is how long after a pause every process follows it.
	pauseKnown = 5 * time.Second
	// quietWait is how long a replay waits for what is leased, looking every
	// quietLook.
	quietWait = 10 * time.Second
	quietLook = 500 * time.Millisecond
	// clockSlack is how far the clocks of the bridge and of Queen may be apart;
	// also what Queen's whole seconds may be wrong by is within it.
	clockSlack = time.Minute
	// seeksAtOnce bounds the seeks under way.
	seeksAtOnce = 8
	// countsAtOnce is how many counts are deleted in one call; Queen takes 256.
	countsAtOnce = 200
)

// ReplayResult is what a replay came to.
type ReplayResult struct {
	// Partitions that were moved, or need not be: they had not come so far.
	Partitions int
	// Pending events are to be delivered once the route is resumed.
	Pending int
}

// Replay lets a route deliver again what its queue still holds from since on,
// in order; zero is the beginning of the queue. Deliveries keep their
// webhook-id and begin their retry policy anew; what was filtered is asked
// again. Retries that wait, and dead letters, stay as they are. A partition
// that is behind since already stays where it is.
//
// The route must be paused and nobody may hold events of it, else the error
// matches ErrReplayRefused; calls under way are waited for, up to 10 seconds.
// Where it breaks off, some partitions are moved: repeat it.
func (o *Operator) Replay(ctx context.Context, r bridge.Route, since time.Time) (ReplayResult, error) {
	result, err := o.replay(ctx, r, since)
	if err != nil {
		return result, fmt.Errorf("replay route %s: %w", r.Name, err)
	}
	o.log.LogAttrs(ctx, slog.LevelInfo, "route is replayed", slog.String(keyRoute, r.Name), slog.Time("since", since),
		slog.Int("partitions", result.Partitions), slog.Int("pending", result.Pending))
	return result, nil
}

func (o *Operator) replay(ctx context.Context, r bridge.Route, since time.Time) (ReplayResult, error) {
	if since.Before(time.Unix(0, 0)) {
		since = time.Unix(0, 0)
	}
	if err := o.accepts(ctx, r.Name); err != nil {
		return ReplayResult{}, fmt.Errorf("%w: %w", ErrReplayRefused, err)
	}
	partitions, err := o.quiet(ctx, r)
	if err != nil {
		return ReplayResult{}, err
	}
	ids, err := o.queen.Partitions(ctx, r.Queue)
	if errors.Is(err, queen.ErrNotFound) {
		return ReplayResult{}, nil // nobody ever pushed
	}
	if err != nil {
		return ReplayResult{}, err
	}
	if r.Ordering == bridge.OrderingPartition {
		if err := o.forgetCounts(ctx, r.Name, ids); err != nil {
			return ReplayResult{}, err
		}
	}
	if err := o.seek(ctx, r, seeks(partitions, since, time.Now()), since, len(ids)); err != nil {
		return ReplayResult{}, err
	}
	result := ReplayResult{Partitions: len(partitions)}
	result.Pending, err = o.queen.Depth(ctx, r.Queue, groupOf(r))
	return result, err
}

// quiet waits until nobody can hold an event of a paused route, and returns how
// far its group is.
func (o *Operator) quiet(ctx context.Context, r bridge.Route) ([]queen.GroupPartition, error) {
	wait, err := o.pausedFor(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, wait); err != nil {
		return nil, err
	}
	for end := time.Now().Add(quietWait); ; {
		partitions, err := o.queen.GroupPartitions(ctx, groupOf(r), r.Queue)
		if err != nil {
			return nil, err
		}
		held := 0
		for _, p := range partitions {
			if p.Leased {
				held++
			}
		}
		switch {
		case held == 0:
			return partitions, nil
		case time.Now().After(end):
			return nil, fmt.Errorf("%w: events of %d partitions are under way, or wait there for their next attempt: repeat it when they have ended", ErrReplayRefused, held)
		}
		if err := sleep(ctx, quietLook); err != nil {
			return nil, err
		}
	}
}

// pausedFor says how long it may take until every process knows that a route is
// paused. The error says that it is not.
func (o *Operator) pausedFor(ctx context.Context, r bridge.Route) (wait time.Duration, err error) {
	stored, err := NewPauses(o.queen).List(ctx)
	if err != nil {
		return 0, err
	}
	info, paused := stored.Routes[r.Name]
	switch {
	case paused:
		return min(max(0, pauseKnown-time.Since(info.Since)), pauseKnown), nil
	case r.Paused:
		return pauseKnown, nil
	}
	return 0, fmt.Errorf("%w: pause it first, and resume it afterwards", ErrReplayRefused)
}

// seeks says where to move to in each partition that is to be moved. One whose
// oldest pending event is surely older than since delivers all that is wanted
// in any case. Where that is in doubt the group moves to before that event, too:
// a little more comes again.
func seeks(partitions []queen.GroupPartition, since, now time.Time) map[string]time.Time {
	to := make(map[string]time.Time, len(partitions))
	for _, p := range partitions {
		oldest := now.Add(-p.Behind)
		switch {
		case p.Pending == 0, oldest.After(since.Add(clockSlack)):
			to[p.Partition] = since
		case oldest.Before(since.Add(-clockSlack)):
		default:
			to[p.Partition] = oldest.Add(-clockSlack)
		}
	}
	return to
}

// seek carries out seeks, with one call where every one of a queue's partitions
// moves to since. A partition that comes meanwhile begins later than that.
func (o *Operator) seek(ctx context.Context, r bridge.Route, to map[string]time.Time, since time.Time, partitions int) error {
	request := queen.SeekRequest{Queue: r.Queue, Group: groupOf(r), At: since}
	plain := len(to) == partitions
	for _, at := range to {
		plain = plain && at.Equal(since)
	}
	if plain && partitions > 0 {
		return o.queen.Seek(ctx, request)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(seeksAtOnce)
	for partition, at := range to {
		one := request
		one.Partition, one.At = partition, at
		all.Go(func() error {
			err := o.queen.Seek(ctx, one)
			if errors.Is(err, queen.ErrNotFound) {
				return nil // retention has emptied it meanwhile
			}
			return err
		})
	}
	return all.Wait()
}

// forgetCounts lets events of ordering partition begin their attempts anew: the
// count of a partition is that of the event that failed there last, and may be
// of one that comes again.
func (o *Operator) forgetCounts(ctx context.Context, route string, partitions map[string]string) error {
	var ops []queen.KVOp
	flush := func() error {
		_, err := o.queen.KV(ctx, ops)
		ops = ops[:0]
		return err
	}
	for _, id := range partitions {
		ops = append(ops, queen.KVOp{Op: "delete", Namespace: bridge.KVNamespace, Key: bridge.AttemptKey(route, id)})
		if len(ops) == countsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
