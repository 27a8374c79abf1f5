package ingress

import (
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// store waits until the bundle is durable, or cannot be known to be in time.
func (x *exchange) store(buffer *queen.Buffer) reply {
	s, g := x.source, x.bundle
	if s.spooled && x.server.spooler.full(g) {
		return x.notStored(g, queen.BundleRefused, reasonSpoolFull)
	}
	deadline := s.deadline(x.start, time.Now(), x.server.enqueueTimeout)
	if end, ok := x.context.Request().Context().Deadline(); ok && end.Before(deadline) {
		deadline = end // of whoever runs the handler: a function has so long to live
	}
	result := buffer.Submit(g, deadline)
	durable := result == queen.BundleStored || result == queen.BundleSpooled && s.spooled // in our own spool
	if !durable && (result != queen.BundleSpooled || !x.server.acceptBuffered) {
		cause := ""
		if s.spooled && x.server.spooler.full(g) {
			cause = reasonSpoolFull // it filled up meanwhile
		}
		return x.notStored(g, result, cause)
	}
	duplicates := g.Count(queen.PushDuplicate)
	s.metrics.stored(g, duplicates)
	if durable && s.recent != nil && buffer == s.buffer {
		s.recent.add(g, x.start)
	}
	return x.accepted(g.Len(), duplicates == g.Len())
}

// notStored asks the sender to send again: the ids are the same then, so what
// was stored all the same is a duplicate.
func (x *exchange) notStored(g *queen.Bundle, r queen.BundleResult, cause string) reply {
	verdict, reason := verdictTimeout, reasonTimeout
	switch r {
	case queen.BundleSpooled:
		verdict, reason = verdictBuffered, reasonBuffered
	case queen.BundleRefused:
		verdict, reason = verdictRefused, reasonRefused
	case queen.BundleStopped:
		verdict, reason = verdictStopped, reasonDraining
	}
	if cause != "" {
		verdict, reason = verdictSpoolFull, cause
	}
	n := g.Len()
	if r == queen.BundleExpired || r == queen.BundleStopped {
		x.bundle = nil // a push may still hold its payloads
	}
	x.source.metrics.events.WithLabelValues(x.source.name, verdict).Add(float64(n))
	p := busy(http.StatusServiceUnavailable, reason, retryAfterStored)
	p.items = n
	return p
}

// accepted is the answer the provider wants, the same for a duplicate: it is
// to forget the event either way.
func (x *exchange) accepted(items int, duplicate bool) reply {
	s := x.source
	a := &s.answer
	if !s.ownAnswer {
		if own, ok := s.verifier.Answer(&x.request); ok {
			made := newAnswer(own)
			a = &made
		}
	}
	return reply{
		status: a.status, body: a.body, contentType: a.contentType, contentLength: a.contentLength,
		header: a.header, duplicate: duplicate, items: items,
	}
}
