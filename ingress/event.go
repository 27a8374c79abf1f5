package ingress

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
)

// maxItems bounds the events of one request (the largest batches providers
// send hold about 1,000).
const maxItems = 2000

// utf8BOM is no part of a JSON document (RFC 8259, 8.1).
var utf8BOM = []byte("\xef\xbb\xbf")

// envelope is what the events of one request have in common.
type envelope struct {
	source *source
	queue  string
	// apart marks what was not proven: it is kept whole, as an event, whatever
	// the source makes of its proven requests.
	apart  bool
	event  bridge.Event
	values *signing.Values
}

// newEnvelope describes a request that may be queued.
func (x *exchange) newEnvelope(class bridge.Class) envelope {
	s, req := x.source, &x.request
	x.headers = s.headers.appendTo(x.headers[:0], req.Header)
	s.verifier.Read(req, &x.values)
	return envelope{
		source: s, queue: s.queue, values: &x.values,
		event: bridge.Event{
			Source: s.name, Received: req.Now.UTC().Truncate(time.Microsecond), Class: class,
			Method: req.Method, Path: req.Path, Query: s.query.redact(req.RawQuery),
			Headers: x.headers, ContentType: contentType(req.Header), Traceparent: traceparent(req.Header),
		},
	}
}

func contentType(h http.Header) string {
	if v := h["Content-Type"]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// fill adds the events of a request to its bundle: one, or one per element of
// a batch. The reply is that of a request that cannot be queued.
func (x *exchange) fill(e *envelope) (reply, bool) {
	s := e.source
	if s.rawJSON && !e.apart && !validJSON(x.request.Body) {
		return refuse(http.StatusBadRequest, reasonNotJSON, "payload: json needs one JSON document as body"), false
	}
	items, split := e.items()
	if !split {
		x.add(e, facts{values: e.values, body: x.request.Body}, x.request.Body)
		return reply{}, true
	}
	if len(items) > maxItems {
		return refuse(http.StatusRequestEntityTooLarge, reasonTooManyItems, ""), false
	}
	for i := range items {
		raw := items[i].Raw()
		x.add(e, facts{values: e.values, body: x.request.Body, item: &items[i], raw: raw}, raw)
	}
	return reply{}, true
}

// items are the elements of a batch, false where the request is one event.
// What the scheme itself splits is no path for each scheme, so it is asked.
func (e *envelope) items() ([]signing.Item, bool) {
	s := e.source
	switch {
	case e.apart || s.split == bridge.SplitNone:
		return nil, false
	case s.split == "":
		return s.verifier.Items(e.values)
	}
	return e.values.Items(s.split)
}

// add appends one event to the bundle.
func (x *exchange) add(e *envelope, f facts, body []byte) {
	s := e.source
	id, missing := s.id.id(&f)
	if missing {
		s.metrics.keyMissing.WithLabelValues(s.name).Inc()
	}
	eventType, _, _ := s.eventType.value(&f)
	event := e.event
	event.ID, event.Type, event.Body = id, eventType, body
	item := x.bundle.Add()
	item.Queue, item.Partition, item.TransactionID = e.queue, s.partitionOf(&f, id), id
	item.Payload = e.appendPayload(item.Payload, event)
}

// appendPayload appends the event as it is pushed. It is a copy: the body's
// buffer is used again before the push is over.
func (e *envelope) appendPayload(dst []byte, event bridge.Event) json.RawMessage {
	if e.source.rawJSON && !e.apart {
		return append(dst, bytes.TrimPrefix(event.Body, utf8BOM)...)
	}
	return event.AppendPayload(dst)
}

// partitionOf is the source's own partition, or a lane by the transaction id.
func (s *source) partitionOf(f *facts, id string) string {
	if v, _, ok := s.partition.value(f); ok && v != "" {
		return bridge.PartitionName(v)
	}
	return s.lanes.Of(id)
}

// validJSON says that body is one JSON document in valid UTF-8, whatever its
// Content-Type says.
func validJSON(body []byte) bool {
	document := bytes.TrimPrefix(body, utf8BOM)
	return utf8.Valid(document) && json.Valid(document)
}
