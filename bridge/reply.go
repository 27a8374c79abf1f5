package bridge

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// The type of a reply event: filters and routes of the reply queue tell answers
// from failures by it.
const (
	ReplyType       = "reply"
	ReplyTypeFailed = "reply.failed"
)

// Headers that a reply event has besides those of the answer, so that whoever
// reads it knows what was answered, and how.
const (
	HeaderReplyStatus   = "queen-status"   // of the answer, such as 200
	HeaderReplyEvent    = "queen-event"    // the transaction id of the event that was answered
	HeaderReplyDelivery = "queen-delivery" // its webhook-id
)

// HasReply says that an answer holds something to reply with: not 202, not
// 204, and a body (dispatch.md §5, "Reply queue").
func (r Response) HasReply() bool {
	return r.Err == nil && r.Status != http.StatusAccepted && r.Status != http.StatusNoContent && len(r.Body) > 0
}

// ReplyEvent is the function's answer as an event of ours: its source is the
// route, its id ReplyTxn, its body and headers those of the answer. Headers of
// the hop, credentials and those that steered the delivery are dropped; three
// of ours say what was answered. d is the delivery that was called, cause its
// event, whose trace goes on. failed says that the answer ended the delivery as
// a dead letter.
func ReplyEvent(d *Delivery, cause *Event, resp *Response, failed bool, now time.Time) Event {
	kind := ReplyType
	if failed {
		kind = ReplyTypeFailed
	}
	return Event{
		ID: ReplyTxn(d.Lineage, d.Hop), Source: d.Route, Type: kind,
		Received: now.UTC().Truncate(time.Microsecond), Class: ClassNone,
		Headers: replyHeaders(d, resp), ContentType: contentTypeOf(resp.Header),
		Body: resp.Body, Traceparent: cause.Traceparent,
	}
}

func replyHeaders(d *Delivery, resp *Response) []Header {
	connection := resp.Header["Connection"]
	headers := make([]Header, 0, len(resp.Header)+3)
	for name, lines := range resp.Header {
		lower := strings.ToLower(name)
		if DeniedHeader(name) || HopByHop(connection, name) || oursInReply(lower) {
			continue
		}
		for _, line := range lines {
			headers = append(headers, Header{Name: lower, Value: line})
		}
	}
	headers = append(headers,
		Header{Name: HeaderReplyStatus, Value: strconv.Itoa(resp.Status)},
		Header{Name: HeaderReplyEvent, Value: d.Origin.TransactionID},
		Header{Name: HeaderReplyDelivery, Value: DeliveryID(d.Route, d.Origin)})
	SortHeaders(headers)
	return headers
}

// oursInReply names the headers of an answer that are none of the reply's: they
// steered the delivery, or would pass for ours.
func oursInReply(lower string) bool {
	switch lower {
	case HeaderReplyStatus, HeaderReplyEvent, HeaderReplyDelivery, "queen-outcome", "queen-retry-after":
		return true
	}
	return false
}

// ReplyPartition is the partition of a reply: the value of reply.partition in
// the answer; where it is not configured, or the answer has no such value, the
// partition of the event that was answered, so that replies keep its order.
func (r Reply) ReplyPartition(d *Delivery, resp *Response) string {
	if form, ok := ParseValueForm(r.Partition); ok {
		if v, found := form.in(resp); found && v != "" {
			return PartitionName(v)
		}
	}
	if d.Origin.Partition == "" { // 1.x keeps what was pushed so, a push of ours may not
		return DefaultPartition
	}
	return d.Origin.Partition
}

// DefaultPartition is where Queen puts what names no partition.
const DefaultPartition = "Default"

// in is the value of the form in an answer.
func (f ValueForm) in(resp *Response) (string, bool) {
	switch f.Kind {
	case FormLiteral:
		return f.Name, true
	case FormBody:
		return signing.NewValues(&signing.Request{Header: resp.Header, Body: resp.Body}).JSON(f.Name)
	case FormHeader:
		return signing.NewValues(&signing.Request{Header: resp.Header}).Header(f.Name)
	}
	return "", false
}
