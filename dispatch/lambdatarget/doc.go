// Package lambdatarget calls AWS Lambda functions: one Invoke per attempt,
// never repeated by the SDK, with every answer of Lambda and every way to get
// none classified. What the payload is, what becomes of an answer, and when to
// call again, is left to package dispatch and its formats.
//
// # What a function sees besides its payload
//
// A synchronous call carries a client context (lambdacontext.ClientContext in
// Go, context.client_context in Python, context.clientContext in Node.js) whose
// custom map holds webhook-id, queen-attempt, queen-queue, queen-partition and,
// where there is one, traceparent.
//
// # What an answer means
//
// The HTTP status of Lambda says nothing of the function (dispatch.md §2): an
// answer with X-Amz-Function-Error is a failed attempt, whatever it says. A
// throttle holds the target, for as long as Lambda asks. What only an operator
// can mend (a missing function or permission, a disabled key, a broken
// package, a recursive loop) holds it too, and counts no attempt: a backlog
// must not become dead letters because of one expired permission. A payload
// that Lambda cannot take is dead. What may pass by itself (an initialising
// network, a file system that times out, an update under way) is retried and
// counts, as the call was made.
//
// A call without an answer counts once it may have reached Lambda: the
// function may run on, so the deadline of a call should exceed the function's
// own timeout (lambda.timeout, up to 905 s for functions of 900 s).
//
// # Hand-off
//
// With invoke: event Lambda queues the payload itself, answers 202, calls the
// function up to three times, and may lose it: delivered then means handed
// over, and the function's answer is never seen.
package lambdatarget
