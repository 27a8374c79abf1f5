package format_test

import (
	"crypto/md5" //nolint:gosec // what SQS has
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// sqsEvent is what a function in Go gets.
func sqsEvent(t *testing.T, body []byte) events.SQSEvent {
	t.Helper()
	var e events.SQSEvent
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return e
}

func TestSQSEventAsAFunctionReadsIt(t *testing.T) {
	t.Parallel()
	batch := items(exactJSON, text, binary, "")
	batch[1].Delivery.Attempt, batch[1].Delivery.FirstFailed = 2, now.Add(-1000)
	batch[1].Event.Headers = []bridge.Header{{Name: "x-twice", Value: "a"}, {Name: "x-twice", Value: "b"}, {Name: "x-raw", Value: "\xff"}, {Name: "x-none", Value: ""}}
	records := sqsEvent(t, encoder("", 4, "sqs").Encode(batch, now).Body).Records
	wantBodies := []string{exactJSON, text, base64.StdEncoding.EncodeToString([]byte(binary)), ""}
	if len(records) != len(wantBodies) {
		t.Fatalf("%d records", len(records))
	}
	handles := map[string]bool{}
	for i, r := range records {
		sum := md5.Sum([]byte(wantBodies[i])) //nolint:gosec // what SQS has
		if r.Body != wantBodies[i] || r.Md5OfBody != hex.EncodeToString(sum[:]) {
			t.Errorf("record %d: body %q, md5 %s", i, r.Body, r.Md5OfBody)
		}
		if r.EventSource != "aws:sqs" || r.EventSourceARN != "arn:aws:sqs:eu-west-1:123456789012:github-events" || r.AWSRegion != "eu-west-1" {
			t.Errorf("record %d: from %s %s %s", i, r.EventSource, r.EventSourceARN, r.AWSRegion)
		}
		handles[r.ReceiptHandle] = true
	}
	if len(handles) != len(records) {
		t.Errorf("receipt handles %v are not one each", handles)
	}
	want := map[string]string{
		"ApproximateReceiveCount": "3", "SentTimestamp": "1796039940000", "SenderId": "github", "ApproximateFirstReceiveTimestamp": "1796039999999",
	}
	if diff := cmp.Diff(want, records[1].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	stringValue := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{StringValue: &s, StringListValues: []string{}, BinaryListValues: [][]byte{}, DataType: "String"}
	}
	wantHeaders := map[string]events.SQSMessageAttribute{
		"x-twice": stringValue("a, b"), "traceparent": stringValue("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
		"x-raw": {BinaryValue: []byte{0xff}, StringListValues: []string{}, BinaryListValues: [][]byte{}, DataType: "Binary"},
	}
	if diff := cmp.Diff(wantHeaders, records[1].MessageAttributes); diff != "" {
		t.Errorf("message attributes (-want +got):\n%s", diff)
	}
	if got := records[2].MessageAttributes["queen-body-encoding"].StringValue; got == nil || *got != "base64" {
		t.Error("nothing says that a body is base64")
	}
}

// Batch processors for FIFO queues group by MessageGroupId and know the queue
// by .fifo.
func TestSQSEventOfAnOrderedRoute(t *testing.T) {
	t.Parallel()
	r := bridge.Route{Ordering: bridge.OrderingPartition, Batch: bridge.RouteBatch{Size: 3}}
	e := format.New(r, bridge.Target{Lambda: &bridge.LambdaTarget{Function: "thumb", Region: "eu-north-1"}})
	records := sqsEvent(t, e.Encode(items("1", "2", "3"), now).Body).Records
	last := new(big.Int)
	for i, r := range records {
		if r.EventSourceARN != "arn:aws:sqs:eu-north-1:000000000000:github-events.fifo" || r.Attributes["MessageGroupId"] != "octo/repo" ||
			r.Attributes["MessageDeduplicationId"] != items("1", "2", "3")[i].Event.ID {
			t.Errorf("record %d: %s %v", i, r.EventSourceARN, r.Attributes)
		}
		n, ok := new(big.Int).SetString(r.Attributes["SequenceNumber"], 10)
		if !ok || n.Cmp(last) <= 0 {
			t.Errorf("record %d: SequenceNumber %q after %s", i, r.Attributes["SequenceNumber"], last)
		}
		last = n
	}
}

func TestSQSFormatOverHTTPIsTheSameDocument(t *testing.T) {
	t.Parallel()
	m := encoder("sqs", 1, "").Encode(items(`{"a":1}`), now)
	if records := sqsEvent(t, m.Body).Records; len(records) != 1 || records[0].Body != `{"a":1}` || m.ContentType != "application/json" {
		t.Errorf("%s as %s", m.Body, m.ContentType)
	}
}
