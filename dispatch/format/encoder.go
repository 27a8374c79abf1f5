package format

import (
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// LimitHTTP bounds the body of one request of several events, in bytes; a single
// event above it is sent alone: the function's answer decides. It is our own:
// what function platforms and proxies commonly take (API Gateway 10 MB, Google
// Cloud Functions 10 MB, Lambda URLs 6 MB), with room, and small enough that 50
// calls at once fit in memory. A Lambda target has Lambda's bound.
const LimitHTTP = 4 << 20

const (
	headerSize    = "queen-batch-size"
	contentJSON   = "application/json"
	contentNDJSON = "application/x-ndjson"
)

// Item is one event of a request.
type Item struct {
	Event *bridge.Event
	// Delivery is the event's delivery before the call: the call is its
	// attempt number Attempt+1.
	Delivery *bridge.Delivery

	shape shape
}

// Message is a request's body and what describes it.
type Message struct {
	Body        []byte
	ContentType string
	Headers     []bridge.Header
	// IDs are the names by which the function may report each event as failed,
	// in the order of the items.
	IDs []string
}

// Encoder makes the requests of one route. It is immutable and safe for
// concurrent use.
type Encoder struct {
	form    string
	batched bool
	lambda  bool
	ordered bool
	limit   int
	queue   queueName
}

// New makes the Encoder of a valid route and its target. An empty format is
// passthrough, an empty payload sqs.
func New(r bridge.Route, t bridge.Target) *Encoder {
	e := &Encoder{
		form: r.Format, batched: r.Batch.Size > 1, ordered: r.Ordering == bridge.OrderingPartition,
		limit: LimitHTTP, queue: queueOf(t.Lambda),
	}
	if t.Lambda != nil {
		e.lambda, e.form, e.limit = true, e.lambdaForm(t.Lambda.Payload), t.Lambda.MaxPayload()
	}
	if e.form == "" {
		e.form = bridge.FormatPassthrough
	}
	return e
}

func (e *Encoder) lambdaForm(payload string) string {
	switch payload {
	case bridge.LambdaRaw:
		return bridge.FormatPassthrough
	case bridge.LambdaCloudEvents:
		if e.batched {
			return bridge.FormatCloudEventsBatch
		}
		return bridge.FormatCloudEventsStructured
	}
	return bridge.FormatSQS
}

// Plain says that a request is one event as it came, its body and its headers:
// there is nothing to encode.
func (e *Encoder) Plain() bool { return e.form == bridge.FormatPassthrough && !e.batched && !e.lambda }

// Indexed says that a function names an event by its position: nothing in a
// list of bodies tells which is which.
func (e *Encoder) Indexed() bool { return e.batched && e.nameless() }

// nameless says that no id of the event stands in the request.
func (e *Encoder) nameless() bool {
	return e.form == bridge.FormatPassthrough || e.form == bridge.FormatNDJSON
}

// Limit is how large a body of more than one event may be, in bytes.
func (e *Encoder) Limit() int { return e.limit }

// Encode makes one request of items, at least one; the now is what a record
// says of its first receipt. Without a batch it takes exactly one.
func (e *Encoder) Encode(items []Item, now time.Time) Message {
	var m Message
	switch {
	case e.Plain():
		it := items[0]
		m = Message{Body: it.Event.Body, ContentType: it.Event.ContentType, Headers: it.Event.Headers}
	case e.form == bridge.FormatCloudEventsBinary:
		m = binaryCloudEvent(items[0])
	default:
		m = Message{Body: e.body(items, now), ContentType: e.contentType()}
	}
	m.IDs = e.ids(items)
	if e.batched {
		m.Headers = append(m.Headers, bridge.Header{Name: headerSize, Value: strconv.Itoa(len(items))})
	}
	return m
}

// body joins the elements.
func (e *Encoder) body(items []Item, now time.Time) []byte {
	before, between, after := e.frame()
	n := len(before) + len(after)
	for i := range items {
		n += e.Size(&items[i])
	}
	dst := append(make([]byte, 0, n), before...)
	for i := range items {
		if i > 0 {
			dst = append(dst, between...)
		}
		dst = e.element(dst, &items[i], now)
	}
	return append(dst, after...)
}

// frame is what stands around and between the elements.
func (e *Encoder) frame() (before, between, after string) {
	switch {
	case e.form == bridge.FormatSQS:
		return `{"Records":[`, ",", "]}"
	case e.form == bridge.FormatNDJSON:
		return "", "\n", "\n"
	case e.form == bridge.FormatCloudEventsBatch, e.form == bridge.FormatPassthrough && e.batched:
		return "[", ",", "]"
	}
	return "", "", ""
}

func (e *Encoder) element(dst []byte, it *Item, now time.Time) []byte {
	switch e.form {
	case bridge.FormatSQS:
		return e.record(dst, it, now)
	case bridge.FormatNDJSON:
		return appendLine(dst, it)
	case bridge.FormatPassthrough:
		return appendValue(dst, it)
	}
	return structuredCloudEvent(dst, it)
}

// Size is how much an event adds to the body, in bytes, its separator
// included: never less than it really takes, and at most a few hundred bytes
// more.
func (e *Encoder) Size(it *Item) int {
	switch e.form {
	case bridge.FormatSQS:
		return recordSize(it, e.queue)
	case bridge.FormatPassthrough, bridge.FormatNDJSON:
		return valueSize(it) + 1
	case bridge.FormatCloudEventsBinary:
		return len(it.Event.Body)
	}
	return cloudEventSize(it) + 1
}

func (e *Encoder) contentType() string {
	switch e.form {
	case bridge.FormatNDJSON:
		return contentNDJSON
	case bridge.FormatCloudEventsStructured:
		return "application/cloudevents+json; charset=UTF-8"
	case bridge.FormatCloudEventsBatch:
		return "application/cloudevents-batch+json; charset=UTF-8"
	}
	return contentJSON
}

func (e *Encoder) ids(items []Item) []string {
	ids := make([]string, len(items))
	for i, it := range items {
		switch {
		case e.Indexed():
			ids[i] = strconv.Itoa(i)
		case e.nameless():
			ids[i] = bridge.DeliveryID(it.Delivery.Route, it.Delivery.Origin)
		default:
			ids[i] = it.id()
		}
	}
	return ids
}

// id is the event's own: the id of its message in the queue it came to first.
func (it *Item) id() string {
	if id := it.Delivery.Origin.MessageID; id != "" {
		return id
	}
	return it.Event.ID
}

// queueName is where an SQS record seems to come from.
type queueName struct{ partition, region, account string }

// queueOf takes the place from the function's ARN,
// arn:aws:lambda:REGION:ACCOUNT:function:NAME; handlers that read the ARN of a
// record must find one.
func queueOf(l *bridge.LambdaTarget) queueName {
	q := queueName{partition: "aws", region: "us-east-1", account: "000000000000"}
	if l == nil {
		return q
	}
	if parts := strings.Split(l.Function, ":"); len(parts) >= 7 && parts[0] == "arn" {
		q = queueName{partition: parts[1], region: parts[3], account: parts[4]}
	}
	if l.Region != "" {
		q.region = l.Region
	}
	return q
}
