// Package devbroker is a Queen broker in one process: an http.Handler that
// speaks Queen's HTTP API with the semantics of Queen 1.3.0, over a durable
// store in one directory or in memory. It leaves replication, more than one
// machine, streams, ephemeral queues, encryption, tenants and JWT roles to a
// real Queen; no code of the bridge differs between the two.
//
// The broker shares no wire structs with the client in bridge/queen, so the
// two cannot share one mistake. What it answers was pinned to exchanges
// recorded on a real 1.3.0 (testdata); where the real broker and its
// documentation differ, the broker wins.
//
// # How it works
//
// All state that decides lives in memory under one mutex: queues, partitions,
// cursors and leases, timers, KV rows, and an index of transaction ids.
// Message bytes live there too while they are recent; older ones are read back
// from the store. Every change goes into the pending batch; one writer commits
// whatever has gathered (group commit), and a handler answers only after the
// batch it depends on, even for state it merely saw, is on disk. When a commit
// fails, every answer is 503 until the store works again and the state has
// been read back from it: nothing is ever acknowledged that is not durable.
//
// On disk a commit is one SQLite transaction, with one journal row for each
// queue it pushed to, whatever the number of partitions; the bytes of a large
// one go to a file of their queue first, and are written once. A commit that
// only pushes to one queue that has such a file is one record there, with one
// sync, and the next transaction lists it. The journal is folded, off the commit path, into runs by partition. Retention deletes rows
// at once, and a file when nothing in it is wanted any more.
//
// # Where it differs from 1.3.0 on purpose
//
//   - A timer fires within milliseconds and wakes parked pops (the real one
//     may be 28 s late on an idle broker, and a queue-scoped pop later still).
//   - Pops carry offset and deliveryAttempt, as later versions do.
//   - Ids of messages that some group has not consumed are never forgotten,
//     unless Config.ForgetAfter asks for the real behaviour.
//   - A cancel is never too_late: a fire is one step.
//   - Push is never buffered for want of a database: it is stored or refused
//     with 503. Names that 1.3.0 loses (an empty queue, or one longer than
//     255 characters) are answered buffered and dropped, with a log line.
//   - Counts for dashboards are of now, not of the last refresh; the time
//     series of processes are not kept, and are empty.
//   - A lease of a client in the broker's own process ends with that process,
//     unless it was extended: its messages come again at once.
//   - A zstd payload of a timer that unpacks to more than 64 MiB fires as null,
//     like one that is none.
//   - windowBuffer, minPopWaitTime, priority, ttl, maxSize and retryDelay are
//     stored and echoed only.
//
// # Generation 2
//
// With Config.Generation 2, for tests, the answers are those of Queen 2.x where
// its documentation says that they differ from 1.3.0's and a client must
// notice: decimal partition ids; any word but failed, retry and dlq completes;
// acks above a dead letter count; the same ack again succeeds; rejected_ack,
// and acks checked before pushes, keys and timers; one lease named in a bundle
// fences all of its acks; riders are not rate limited; a fire is deduplicated;
// no push is buffered; "" is the default partition; a pop claims 64 partitions
// at most, and a discovery does not wait; health names the engine raft. None of
// this was measured. Not imitated: positions, offsets in push verdicts, configure
// that merges, atomic replays, purges, the limits of names, the dropped limits
// of riders, the errors of a cluster (Config.Intercept gives those).
//
// Promises, each with a test: an answer that acknowledges is sent after its
// commit is on disk; a leased partition is never given to two consumers of a
// group; a transaction happens whole or not at all; a timer fires once, and
// its message and its removal are one commit; payloads of push and timers come
// back byte for byte.
package devbroker
