// Package ingress receives signed webhooks over HTTP, proves them, gives each
// an idempotent transaction id and pushes them to Queen in batches; it answers
// 2xx only when every event of a request is stored.
//
// It leaves the proof itself to package signing, the shape of an event to
// package bridge, and everything that happens after Queen has the event to the
// consumers of the queue.
//
// One request goes this way (design.md, "Ingress, one request"):
//
//	limits → find source → handshake → verify → event → transaction id →
//	batcher → durable → answer
//
// Promises:
//   - A 2xx means that Queen holds the event. Whatever else happens, the answer
//     says so: 503 with Retry-After when that is not known in time.
//   - The body is read once and travels as the bytes that were received.
//   - Events of one partition are stored in the order in which they arrived.
//   - An id is judged only after its request was proven.
//   - Secrets, bodies, header values and queries are never logged.
//
// What follows from net/http: the headers of an event are sorted by name, as
// the order of different names is not kept (that of equal ones is). Over TLS
// only HTTP/1.1 is spoken. What is no HTTP, or has a header block over 64 KiB,
// is refused by net/http itself, with a short text of its own.
//
// A source with spool: true is answered 2xx while Queen is away, too: what
// Queen does not take within two seconds (or half of what the provider allows)
// is written to the local spool, synced, and replayed in order with the same
// ids. While the spool holds events of a queue, new ones of that queue join it,
// so partitions keep their order. Sources of one queue of which only some spool
// have no order among each other during an outage. A full spool is 503.
//
// Update exchanges the sources without a restart: requests under way end on
// those they began with, and what did not change keeps its limits and memory.
//
// In a split batch, body: of a source's transaction_id reads the item alone;
// event_type and partition read the item, then the document. An id that is
// the same for all items (a header, say) is joined with the item's hash.
package ingress
