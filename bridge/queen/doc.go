// Package queen is a typed client of Queen MQ's HTTP API: push, pop, ack,
// lease, transaction, timers, KV, dead letters, and a Buffer that pushes in
// batches. It leaves to its caller what an answer means for a message, and
// interprets no payload.
//
// It is written for Queen 1.3.0 and newer (MinVersion), knows what 1.x and 2.x
// spell differently, and refuses what they would take without a fence or lose.
//
// # Reading an error
//
// Every answer is read to the item. A nil error means that the broker
// answered and that the answer fits what was asked; the verdicts still count.
//
//   - *CallError: no answer. Sent tells whether the broker may have seen it.
//   - *StatusError: an HTTP status that is no success, with Queen's code.
//   - *RollbackError: a transaction (or a required KV operation) was refused;
//     nothing of it was done.
//   - *BadBodyError, *AnswerError: accepted, but the answer is not JSON, or
//     does not fit.
//   - *TimersIgnoredError: committed without its timers.
//   - *UnsupportedError: the broker lacks timers or KV (Probe).
//   - anything else: refused here, nothing was sent.
//
// Uncertain tells whether the call may have taken effect, Temporary whether
// to send the identical call again, Denied whether only an operator can help,
// RetryAfter how long the broker asked to wait.
//
// # Several nodes
//
// A Strategy chooses the node; calls about a lease go to the node that granted
// it. A node that cannot be reached, answers 5xx, not at all, or with what is
// no JSON is passed over for 5 seconds. The call itself goes on to the next
// node where
//
//   - no connection was made: every call;
//   - the node may have seen it: pops, reads, configure, extend and pushes
//     (their ids make a repeat a duplicate: queen-contract.md §8.4). A pop
//     that was lost leaves its messages leased until the lease ends.
//
// Acks, transactions, timers and KV writes are then their caller's: Uncertain.
// With one node nothing of this is repeated. A poll whose time is over is not
// repeated either.
//
// # 429 and 401
//
// A call that was answered 429 was not begun. It is sent again to the same
// node after Retry-After, else 500 ms doubling to 30 s, ± 20 %: ten times in
// all, a long poll without end. Given back at once are a wait that the
// context's deadline, for an extend a third of the lease, or a minute would
// not outlast, and every 429 of a transaction: whoever settles holds leases
// and resends the identical body himself.
//
// A 401 is tried once more where TokenFile or TokenSource has another token.
// A 403 is never tried again (Denied).
//
// # Buffer
//
// A Buffer pushes what many callers hand over in few calls. Add returns once
// the item is taken and stores it in the background, as the official clients'
// buffers do: 100 items or 1 second, four batches at most, 250 ms after a
// failure. Submit waits for the verdicts, with a deadline: with Linger negative
// it is the group commit in front of which webhooks are answered.
//
// # Where a real 1.3.0 surprises
//
// Each is a case of the conformance suite (queentest), which a real 1.3.0 and
// the embedded broker pass.
//
//   - A plain ack that names every distinct id of the leased batch completes
//     the whole batch by position: [x, y, x] by x and y, [x, x] by one x. A
//     transaction decides by id: there the last x stays, and the lease with it.
//   - Below U+0020 a push refuses names with 400; DEL and C1 controls pass. A
//     transaction push and a timer take any character. This client refuses
//     what a push would.
//   - subscriptionFrom takes what PostgreSQL reads as a time, such as
//     yesterday. What it cannot read skips everything old, in silence: this
//     client sends RFC 3339 only.
//   - A body over the limit is answered 413 before it is read, and the
//     connection dropped: a client may see a broken pipe instead of the 413.
//   - Completed retention keeps what any group has yet to consume, also a
//     group that first popped after the others were done.
//   - leaseReleased and dlq of an ack prove nothing, and neither does success
//     of an ack in a transaction: a nack below the cursor has it too.
//   - A dlq ack ends the batch: what follows comes again. In a transaction one
//     that PostgreSQL cannot store is answered success, and nothing is filed.
//   - A 429 of a transaction has no Retry-After; that of KV and timers has.
//   - Pushes are checked before acks: a settle with a push, sent again, is
//     duplicate and not ack_rejected.
//   - An idle broker fires timers up to 28 s late, and a queue-scoped pop may
//     see them 25 s later still: keep a far timer pending and pop pinned or by
//     namespace. The far timer keeps the sweeper awake but does not wake it: up
//     to 30 s pass until it takes effect.
//   - 204 may mean that PostgreSQL is away; an ack then is 200 with success
//     false ("pool" or "ack flush failed": AckVerdict.Temporary).
//
// # Promises
//
//   - A POST is on the wire once, and again only as told above: no header and
//     no GetBody lets net/http send it by itself.
//   - No compression is asked for; a compressed answer is an error.
//   - Payload bytes are pushed and popped as they are.
//   - A Buffer stores the items of a partition in the order in which they came,
//     drops none in silence, and has one push under way per partition.
//   - Errors and logs hold no token, no payload and no URL with a password.
package queen
