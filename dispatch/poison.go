package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// rescues are the partitions being popped message by message.
type rescues struct {
	mu      sync.Mutex
	running map[string]bool
}

// unread deals with a pop whose answer cannot be read, because a payload that
// is not JSON stands in it or it is too large: its messages are leased, and
// the partition of the culprit would stop for ever. Pops ask for single
// messages until the culprit is alone; then its partition is popped pinned and
// read tolerantly.
func (f *feed) unread(ctx context.Context, err error) error {
	var bad *queen.BadBodyError
	if !errors.As(err, &bad) {
		return err
	}
	alone := time.Now().UnixNano() < f.suspect.Load()
	f.suspect.Store(time.Now().Add(suspectFor).UnixNano())
	f.r.log.LogAttrs(ctx, slog.LevelWarn, "a pop cannot be read, looking for the message at fault",
		slog.String(keyQueue, f.queue), slog.String(keyPartition, bad.Partition), slog.Any(keyError, err))
	f.release(ctx, bad)
	if !alone {
		return nil
	}
	if bad.Partition != "" && !bad.TooLarge {
		f.rescue(ctx, bad.Partition)
	}
	// What was given back may be had again at once: let the rescue have it.
	_ = sleep(ctx, jitter(time.Second))
	return nil
}

// release gives back what is known of an unread pop; what is not known runs
// out with its lease.
func (f *feed) release(ctx context.Context, bad *queen.BadBodyError) {
	if bad.Lease.ID == "" || bad.PartitionID == "" || bad.TransactionID == "" {
		return
	}
	_, _ = f.r.d.queen.Ack(ctx, queen.Ack{
		TransactionID: bad.TransactionID, PartitionID: bad.PartitionID, Lease: bad.Lease, Status: queen.AckRetry,
	})
}

// rescue pops the head of one partition tolerantly, in a goroutine of its own.
func (f *feed) rescue(ctx context.Context, partition string) {
	f.rescuing.mu.Lock()
	defer f.rescuing.mu.Unlock()
	if f.rescuing.running[partition] {
		return
	}
	if f.rescuing.running == nil {
		f.rescuing.running = make(map[string]bool)
	}
	f.rescuing.running[partition] = true
	f.r.spawnFeed(func() {
		f.pinned(ctx, partition)
		f.rescuing.mu.Lock()
		delete(f.rescuing.running, partition)
		f.rescuing.mu.Unlock()
	})
}

// pinned takes the head of a partition; its lease may have to run out first.
func (f *feed) pinned(ctx context.Context, partition string) {
	req := f.base
	req.Namespace, req.Task, req.Queue = "", "", f.queue
	req.Partition, req.Batch, req.Partitions, req.Tolerant = partition, 1, 1, true
	req.Wait = popWait
	for pause, tries := (backoff{}), 0; tries < 4 && ctx.Err() == nil; tries++ {
		popped, err := f.r.d.queen.Pop(ctx, req)
		switch {
		case err == nil && len(popped.Messages) > 0:
			f.take(ctx, popped)
			return
		case err != nil:
			f.failed(ctx, err)
			_ = sleep(ctx, pause.next(queen.RetryAfter(err)))
		}
	}
}
