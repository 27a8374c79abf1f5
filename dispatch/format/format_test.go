package format_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// bodies are JSON that decoding and encoding would change, other text, and
// bytes.
const (
	exactJSON = "{ \"b\":1, \"a\":12345678901234567890.10,\n\t\"a\":\"\\u00e9\\ud800\" }\r\n"
	text      = "a=1&b=\"x\"\n\x01\\é"
	binary    = "\x00\xff\xfe body"
)

// item is an event with a body, and its delivery.
func item(n int, body, contentType string) format.Item {
	o := bridge.Origin{
		Queue: "github-events", Partition: "octo/repo", PartitionID: "17", TransactionID: fmt.Sprint("github:", n),
		MessageID: fmt.Sprintf("019a0000-0000-7000-8000-%012d", n), CreatedAt: now.Add(-time.Minute),
	}
	d := bridge.NewDelivery("r", o, nil)
	return format.Item{
		Event: &bridge.Event{
			ID: o.TransactionID, Source: "github", Type: "push", Received: now.Add(-time.Minute), ContentType: contentType, Body: []byte(body),
			Headers:     []bridge.Header{{Name: "x-github-event", Value: "push"}, {Name: "ce-id", Value: "theirs"}},
			Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
		Delivery: &d,
	}
}

func items(bodies ...string) []format.Item {
	list := make([]format.Item, len(bodies))
	for i, body := range bodies {
		list[i] = item(i, body, "application/json")
	}
	return list
}

// encoder is the Encoder of a route; a Lambda payload makes it one of a Lambda
// target.
func encoder(form string, size int, payload string) *format.Encoder {
	r := bridge.Route{Format: form, Batch: bridge.RouteBatch{Size: size}}
	t := bridge.Target{HTTP: &bridge.HTTPTarget{}}
	if payload != "" {
		t = bridge.Target{Lambda: &bridge.LambdaTarget{Function: "arn:aws:lambda:eu-west-1:123456789012:function:thumb", Payload: payload}}
	}
	return format.New(r, t)
}

func TestOneEventIsItsBodyAndHeaders(t *testing.T) {
	t.Parallel()
	for _, body := range []string{exactJSON, text, binary, ""} {
		it := item(0, body, "text/weird")
		m := encoder("passthrough", 1, "").Encode([]format.Item{it}, now)
		if string(m.Body) != body || m.ContentType != "text/weird" {
			t.Errorf("body %q as %q, want %q as it came", m.Body, m.ContentType, body)
		}
		if diff := cmp.Diff(it.Event.Headers, m.Headers); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
	}
}

func TestBodiesOfABatch(t *testing.T) {
	t.Parallel()
	quoted, encoded := `"a=1&b=\"x\"\n\u0001\\é"`, `{"body_base64":"`+base64.StdEncoding.EncodeToString([]byte(binary))+`"}`
	oneLine := strings.NewReplacer("\n", " ", "\r", " ").Replace(exactJSON)
	for _, tt := range []struct {
		name, form, payload string
		size                int
		bodies              []string
		want, contentType   string
	}{
		{"array", "passthrough", "", 10, []string{exactJSON, text, binary, ""}, "[" + exactJSON + "," + quoted + "," + encoded + `,""]`, "application/json"},
		{"array of one", "", "", 10, []string{exactJSON}, "[" + exactJSON + "]", "application/json"},
		{"lines", "ndjson", "", 10, []string{exactJSON, text, binary}, oneLine + "\n" + quoted + "\n" + encoded + "\n", "application/x-ndjson"},
		{"one line", "ndjson", "", 1, []string{exactJSON}, oneLine + "\n", "application/x-ndjson"},
		{"raw for Lambda", "", "raw", 1, []string{exactJSON}, exactJSON, "application/json"},
		{"raw text for Lambda", "", "raw", 1, []string{text}, quoted, "application/json"},
		{"raw batch for Lambda", "", "raw", 2, []string{exactJSON, text}, "[" + exactJSON + "," + quoted + "]", "application/json"},
	} {
		m := encoder(tt.form, tt.size, tt.payload).Encode(items(tt.bodies...), now)
		if string(m.Body) != tt.want || m.ContentType != tt.contentType {
			t.Errorf("%s: %s as %s\nwant %s as %s", tt.name, m.Body, m.ContentType, tt.want, tt.contentType)
		}
		for _, h := range m.Headers {
			if h.Name != "queen-batch-size" || h.Value != fmt.Sprint(len(tt.bodies)) {
				t.Errorf("%s: header %v of an event on a body that is not its own", tt.name, h)
			}
		}
	}
}

func TestItemsAreNamedByTheIDTheFunctionSees(t *testing.T) {
	t.Parallel()
	const first, second = "019a0000-0000-7000-8000-000000000000", "019a0000-0000-7000-8000-000000000001"
	for _, tt := range []struct {
		form, payload string
		want          []string
	}{
		{"passthrough", "", []string{"0", "1"}},
		{"ndjson", "", []string{"0", "1"}},
		{"cloudevents-batch", "", []string{first, second}},
		{"sqs", "", []string{first, second}},
		{"", "sqs", []string{first, second}},
		{"", "raw", []string{"0", "1"}},
		{"", "cloudevents", []string{first, second}},
	} {
		m := encoder(tt.form, 2, tt.payload).Encode(items("1", "2"), now)
		if diff := cmp.Diff(tt.want, m.IDs); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.form, tt.payload, diff)
		}
	}
}

func TestOneEventIsNamedByItsDelivery(t *testing.T) {
	t.Parallel()
	it := item(0, "1", "")
	for form, want := range map[string]string{
		"passthrough": bridge.DeliveryID("r", it.Delivery.Origin), "ndjson": bridge.DeliveryID("r", it.Delivery.Origin),
		"cloudevents-binary": it.Delivery.Origin.MessageID, "cloudevents-structured": it.Delivery.Origin.MessageID, "sqs": it.Delivery.Origin.MessageID,
	} {
		e := encoder(form, 1, "")
		if got := e.Encode([]format.Item{it}, now).IDs; len(got) != 1 || got[0] != want || e.Indexed() {
			t.Errorf("%s: ids %v, want %s", form, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	event := bridge.Target{Lambda: &bridge.LambdaTarget{Invoke: "event"}}
	for _, tt := range []struct {
		e    *format.Encoder
		want int
	}{
		{encoder("", 2, ""), 4 << 20},
		{encoder("", 2, "sqs"), 6 << 20},
		{format.New(bridge.Route{}, event), 1 << 20},
	} {
		if got := tt.e.Limit(); got != tt.want {
			t.Errorf("Limit = %d, want %d", got, tt.want)
		}
	}
}

// A batch is packed by Size: too little would overfill a call.
func TestSizeIsAnUpperBound(t *testing.T) {
	t.Parallel()
	forms := []struct{ form, payload string }{
		{"passthrough", ""}, {"ndjson", ""}, {"cloudevents-batch", ""}, {"sqs", ""}, {"", "raw"}, {"", "cloudevents"},
	}
	contentTypes := []string{"", "application/json", "text/plain; charset=UTF-8", "application/vnd.x+json", "nonsense;;"}
	bytes := rapid.Custom(func(t *rapid.T) string {
		return rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("\"\\\n\x01é")), 0, 60, -1),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 60), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"{}", `{"a": "\"\\"}`, "[1]", `"x"`})).Draw(t, "bytes")
	})
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(forms).Draw(t, "form")
		e := encoder(f.form, 4, f.payload)
		batch := make([]format.Item, rapid.IntRange(1, 4).Draw(t, "n"))
		total := len(`{"Records":[]}`)
		for i := range batch {
			batch[i] = item(i, bytes.Draw(t, "body"), rapid.SampledFrom(contentTypes).Draw(t, "type"))
			ev, d := batch[i].Event, batch[i].Delivery
			ev.Type, ev.Source, d.Origin.Partition = bytes.Draw(t, "type"), bytes.Draw(t, "source"), bytes.Draw(t, "partition")
			ev.Headers = append(ev.Headers, bridge.Header{Name: "x-a", Value: bytes.Draw(t, "value")})
			total += e.Size(&batch[i])
		}
		got := len(e.Encode(batch, now).Body)
		if got > total || f.payload != "sqs" && f.form != "sqs" && total-got > 400*len(batch)+2000 {
			t.Fatalf("%v: %d bytes, Size said %d", f, got, total)
		}
		if body := e.Encode(batch, now).Body; f.form != "ndjson" && !json.Valid(body) {
			t.Fatalf("%v: no JSON: %q", f, body)
		}
	})
}
