package format

import (
	"crypto/md5" //nolint:gosec // md5OfBody is part of the document; nothing is protected by it
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge"
)

// This file writes what Lambda hands to a function for a queue of SQS
// (https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html), so that
// handlers and batch processors made for it work unmodified.

// defaultSender is the SenderId of an event without a source.
const defaultSender = "queenbridge"

// record appends one record.
func (e *Encoder) record(dst []byte, it *Item, now time.Time) []byte {
	dst = append(dst, `{"messageId":`...)
	dst = appendString(dst, it.id())
	dst = append(dst, `,"receiptHandle":`...)
	dst = appendString(dst, it.Delivery.Lineage+"/"+strconv.Itoa(it.Delivery.Hop)+"/"+strconv.Itoa(it.Delivery.Attempt+1))
	dst = append(dst, `,"body":`...)
	var sum [md5.Size]byte
	dst, sum = appendRecordBody(dst, it)
	dst = append(dst, `,"attributes":{`...)
	for i, a := range e.recordAttributes(it, now) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(appendMember(dst, a.name), a.value)
	}
	dst = append(dst, `},"messageAttributes":{`...)
	dst = appendMessageAttributes(dst, it)
	dst = append(dst, `},"md5OfBody":"`...)
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, `","eventSource":"aws:sqs","eventSourceARN":`...)
	dst = appendString(dst, e.queue.arn(it.Delivery.Origin.Queue, e.ordered))
	dst = append(dst, `,"awsRegion":`...)
	dst = appendString(dst, e.queue.region)
	return append(dst, '}')
}

// appendRecordBody appends the body as a string, and returns the MD5 of that
// string.
func appendRecordBody(dst []byte, it *Item) ([]byte, [md5.Size]byte) {
	body := it.Event.Body
	if it.shapeOf() == isBinary {
		encoded := base64.StdEncoding.AppendEncode(nil, body)
		dst = append(append(append(dst, '"'), encoded...), '"')
		return dst, md5.Sum(encoded) //nolint:gosec // see the import
	}
	return appendString(dst, body), md5.Sum(body) //nolint:gosec // see the import
}

// recordAttributes are the system attributes.
func (e *Encoder) recordAttributes(it *Item, now time.Time) []attribute {
	d := it.Delivery
	sent, first, sender := d.Origin.CreatedAt, d.FirstFailed, it.Event.Source
	if sent.IsZero() {
		sent = it.Event.Received
	}
	if first.IsZero() {
		first = now
	}
	if sender == "" {
		sender = defaultSender
	}
	list := append(make([]attribute, 0, 7),
		attribute{"ApproximateReceiveCount", strconv.Itoa(d.Attempt + 1)},
		attribute{"SentTimestamp", millis(sent)},
		attribute{"SenderId", sender},
		attribute{"ApproximateFirstReceiveTimestamp", millis(first)})
	if e.ordered {
		list = append(list,
			attribute{"SequenceNumber", sequence(d.Origin)},
			attribute{"MessageGroupId", d.Origin.Partition},
			attribute{"MessageDeduplicationId", d.Origin.TransactionID})
	}
	return list
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// sequence is a number that grows with the messages of a partition, of 128
// bits as SQS has it: the message's id, which is a UUID of version 7. Where it
// is none, it is the time of the message in nanoseconds.
func sequence(o bridge.Origin) string {
	id, err := hex.DecodeString(strings.ReplaceAll(o.MessageID, "-", ""))
	if err != nil || len(id) != 16 {
		return strconv.FormatInt(o.CreatedAt.UnixNano(), 10)
	}
	return new(big.Int).SetBytes(id).String()
}

// messageAttributes are the event's headers, repeated ones joined; its trace;
// and whether its body is base64.
func messageAttributes(it *Item) []attribute {
	list := make([]attribute, 0, len(it.Event.Headers)+3)
	set := func(name, value string) {
		for i := range list {
			if list[i].name == name {
				list[i].value += ", " + value // RFC 9110 §5.3
				return
			}
		}
		list = append(list, attribute{name, value})
	}
	for _, h := range it.Event.Headers {
		if h.Value != "" && !ours(h.Name) { // an empty attribute is not valid in SQS
			set(h.Name, h.Value)
		}
	}
	if it.Event.Traceparent != "" {
		set("traceparent", it.Event.Traceparent)
	}
	if it.shapeOf() == isBinary {
		set(bodyEncoding, "base64")
	}
	return list
}

const bodyEncoding = "queen-body-encoding"

// ours says that an attribute is set by us, whatever the provider sent.
func ours(name string) bool { return name == "traceparent" || name == bodyEncoding }

func appendMessageAttributes(dst []byte, it *Item) []byte {
	for i, a := range messageAttributes(it) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, a.name), ':')
		if utf8.ValidString(a.value) {
			dst = append(dst, `{"stringValue":`...)
			dst = appendString(dst, a.value)
			dst = append(dst, `,"stringListValues":[],"binaryListValues":[],"dataType":"String"}`...)
			continue
		}
		dst = append(dst, `{"binaryValue":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(a.value))
		dst = append(dst, `","stringListValues":[],"binaryListValues":[],"dataType":"Binary"}`...)
	}
	return dst
}

// arn is the ARN of the queue; handlers know a queue with an order by .fifo.
func (q queueName) arn(queue string, ordered bool) string {
	arn := "arn:" + q.partition + ":sqs:" + q.region + ":" + q.account + ":" + queue
	if ordered {
		arn += ".fifo"
	}
	return arn
}

// recordSize is how long a record is, at most.
func recordSize(it *Item, q queueName) int {
	const fixed = 700 // names, numbers, MD5 and the attributes of a fixed length
	e, d := it.Event, it.Delivery
	n := fixed + textSize(it.id()) + len(d.Lineage) + textSize(e.Source) + textSize(d.Origin.Queue) +
		textSize(d.Origin.Partition) + textSize(d.Origin.TransactionID) + textSize(q.region) + textSize(q.account) + len(q.partition)
	for _, h := range e.Headers {
		n += textSize(h.Name) + max(textSize(h.Value), base64.StdEncoding.EncodedLen(len(h.Value)+2)) + 90
	}
	n += 2 * textSize(e.Traceparent)
	if it.shapeOf() == isBinary {
		return n + base64.StdEncoding.EncodedLen(len(e.Body)) + 120
	}
	return n + quotedSize(e.Body)
}
