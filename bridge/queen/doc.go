// Package queen is a typed client of Queen MQ's HTTP API: push, pop, ack,
// lease, transaction, timers, KV, dead letters. It leaves every decision to
// its caller: it repeats nothing, buffers nothing and interprets no payload.
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
// # Promises
//
//   - A POST is on the wire at most once per call: no header and no GetBody
//     lets net/http send it again. Only where no connection was made does the
//     next node get it.
//   - Payload bytes are pushed and popped as they are.
//   - Errors and logs hold no token, no payload and no URL with a password.
package queen
