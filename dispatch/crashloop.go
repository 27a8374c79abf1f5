package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// An event that ends the process with every call comes again for ever: no
// attempt of it is ever counted. Where the broker tells how often a partition
// was delivered from the same event on (not 1.3.0), such an event is found
// alone and becomes a dead letter.
//
// The count alone proves nothing: what is given back because its target is held
// counts too. So only a process that is young looks at it, as those are that an
// event ends soon after it is popped.
const (
	crashSuspect = 10 // deliveries, beyond which an event is popped alone
	crashCap     = 20 // beyond which it is a dead letter
	crashSpan    = 10 * time.Minute
)

// young says that the process has not lived long enough to have proved that
// no event ends it.
func (d *Dispatcher) young() bool { return time.Since(d.since) < crashSpan }

// loops says that a message seems to end every process that takes it.
func (d *Dispatcher) loops(m *queen.Message) bool { return m.DeliveryAttempt > crashCap && d.young() }

// crashLoop is its outcome.
func crashLoop(m *queen.Message) bridge.Outcome {
	return bridge.Outcome{Kind: bridge.Dead, Failure: bridge.Failure{
		Class: bridge.FailureCrashLoop,
		Error: fmt.Sprintf("taken %d times and never settled: it may end the process that calls its function", m.DeliveryAttempt),
	}}
}

// isolate gives back the partitions whose first event may end the process,
// unless it is alone, and lets the feed pop single messages for a while: only
// alone can it be told from the events behind it, and from those of other
// partitions.
func (f *feed) isolate(ctx context.Context, p queen.Popped) queen.Popped {
	if len(p.Messages) < 2 || !f.r.d.young() {
		return p
	}
	keep := p.Messages[:0:0]
	for _, part := range group(p.Messages) {
		if part[0].DeliveryAttempt <= crashSuspect {
			keep = append(keep, part...)
			continue
		}
		f.suspect.Store(time.Now().Add(suspectFor).UnixNano())
		f.r.log.LogAttrs(ctx, slog.LevelWarn, "an event was taken again and again and never settled: it is taken alone",
			slog.String(keyQueue, f.queue), slog.String(keyPartition, part[0].Partition), slog.Int(keyCount, part[0].DeliveryAttempt))
		_, _ = f.r.d.queen.Ack(f.r.d.settling, queen.Ack{ // else its lease runs out
			TransactionID: part[0].TransactionID, PartitionID: part[0].PartitionID, Lease: p.Lease, Status: queen.AckRetry,
		})
	}
	p.Messages = keep
	return p
}
