// Package dispatch takes events from Queen queues through consumer groups and
// calls functions with them: it settles every outcome in Queen, lets failed
// deliveries come back by durable timers, and ends hopeless ones as dead
// letters with a reason. How a function is called is left to a Sender
// (dispatch/httptarget), which events a route wants to package bridge/filter,
// which outcome an answer has to bridge.Policy, and how Queen is spoken to
// package bridge/queen.
//
// # One batch
//
// pop → decode → filter → attempt → decide → settle. A pop leases the messages of some
// partitions. With ordering none the messages of a partition are called in
// parallel and settled together once all are decided: a plain ack if all were
// delivered, else one transaction that acks them all and holds a timer for
// each retry and a push for each dead letter. With ordering partition they are
// called one after the other, and a failing one waits in front of its
// partition: on the local clock while the delay fits the lease, else by a
// lease that lasts as long as the delay, so no process needs to remember it.
//
// An event that the route's filter does not want is acked and counted, never
// called; one about which the filter fails becomes a dead letter. The filter is
// asked once: a retry has passed it, also where the filter was changed since.
// What the function gets is the transform's work, then the format's (package
// dispatch/format).
//
// # Batches
//
// With batch.size above 1 a call has several events. With ordering none they
// are gathered over all partitions of the route's pops, up to the size, the
// bytes of a call, or batch.window after the first one; each keeps its lease,
// gets its own outcome and settles with its own partition. With ordering
// partition a call has a prefix of what is leased of one partition, and the
// first failure is where the partition waits: what the function handled behind
// it comes again.
//
// A route with report_item_failures reads from the answer which events failed.
// Any other failed batch is called again at once in halves until its culprit is
// alone, each call counted; where both halves fail like a function in trouble
// (and not like an event that is refused) their events wait for their retries.
// A retry goes in a batch half as large with each attempt, the last attempt
// alone, so nothing ends as a dead letter for the fault of another. What is the
// target's fault holds the batch as it is.
//
// # Replies
//
// Where the route has a reply queue, the answer to a call becomes an event of
// it: type reply, the route as its source, body and headers those of the
// answer, and queen-event, queen-delivery and queen-status to tell which event
// was answered and how. It rides in the transaction that acks the event, into
// the event's partition unless the route says otherwise. 202, 204 and an empty
// body are no reply. With on_failure the answer that ended a delivery as a dead
// letter is one, too: type reply.failed; a failure without an answer, such as a
// timeout, is not. Of an answer that came in part nothing is pushed: a success
// cut off on its way is called again, one larger than 24 MiB becomes a dead
// letter. The queue is left as it is unless the configuration lists it.
//
// # Control
//
// Routes and targets are replaced while the dispatcher runs (Update): what did
// not change is not touched, and a changed or removed route settles all it took
// before its successor begins. What is paused (Pauses) is kept in Queen's KV:
// it survives every process, and each follows it within about 3 seconds; until
// a new process knows what is paused it takes nothing. A target that answers
// 410 is paused that way, until an operator resumes it. A route that is being
// deleted (Drain) takes nothing new while its retries and dead letters run on;
// what a route left behind is listed (Orphans). TestFire tries a route without
// touching a queue.
//
// # One target
//
// How many calls of a target run at once is learned: doubled from 4 up to its
// concurrency while all goes well, halved by 429, 503 and timeouts. A rate
// limit lets calls begin by tokens; a shared one takes them in blocks from a
// counter in Queen's KV. Failures that are the target's own open its breaker,
// one that somebody must mend (a Lambda function that is missing, forbidden or
// broken) at once: then nothing is popped for it until, after a time that
// doubles, one event probes it. Nothing of this sleeps in a slot, and one of
// several targets gets at most half the pool. See Dispatcher.Targets.
//
// # Traces
//
// With a TracerProvider each call is a span of kind client, the root of a trace
// of its own, linked to the spans that the traceparents of its events name; a
// call of several events has up to 128 links. It is named "attempt" and the
// queue, its attributes are those of OpenTelemetry's semantic conventions for
// messaging, with queenbridge.route, .target, .attempt and .outcome; error.type
// is the class of a failure, and all that is said of it. The function gets the
// span's traceparent, and the event's tracestate as it is. What stands in a body
// for its trace (formats cloudevents and sqs) and in a reply stays the event's.
//
// # Large payloads
//
// Queen takes 1 MiB in a timer and 64 MiB in a request. A payload over 512 KiB,
// or one with which a settle would exceed 32 MiB, is pushed to the route's large
// queue before the settle, whose envelope refers to it (bridge.Claim). What
// cannot be stored a second time at all (about 38 MiB) ends as a dead letter
// too_large that names where the event lies.
//
// # By hand
//
// An Operator lists, redrives and deletes dead letters and hastens pending
// retries, with no dispatcher running. RetryNow also ends what keeps the target
// of a route from being called, in this process.
//
// # Idle routes
//
// A route waits for its events in a long poll. Up to 50 routes wait for their
// retries and dead letters as well; more do so only while they expect some, and
// otherwise look for what another process left, each 5 seconds to a minute the
// more routes there are. A process knows when what it scheduled itself is due.
//
// # Promises
//
//   - An event is delivered or in Queen (queue, timer, dead letter) whatever
//     dies when: no ack without its retry, no retry without its ack.
//   - A settle whose answer was lost is sent again, byte for byte, until Queen
//     answers; the function is not called again for it.
//   - Only the holder of a lease moves a delivery; what a lost lease covered
//     is neither called further nor settled.
//   - A delivery keeps its id over all attempts; calls are at most the
//     policy's attempts, and one more per death or lost lease.
//   - A failing or hanging target takes nothing from another route, a failing
//     event nothing from another partition, and with ordering none nothing
//     from its own.
package dispatch
