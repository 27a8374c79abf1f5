package format_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// readCloudEvent reads a message as the CloudEvents SDK does when it comes
// over HTTP.
func readCloudEvent(t *testing.T, m format.Message) *event.Event {
	t.Helper()
	h := http.Header{"Content-Type": {m.ContentType}}
	for _, line := range m.Headers {
		h.Add(line.Name, line.Value)
	}
	e, err := binding.ToEvent(t.Context(), cehttp.NewMessage(h, io.NopCloser(bytes.NewReader(m.Body))))
	if err != nil {
		t.Fatalf("the SDK reads no event from %s: %v", m.Body, err)
	}
	if err := e.Validate(); err != nil {
		t.Errorf("the SDK finds %s not valid: %v", m.Body, err)
	}
	return e
}

// checkAttributes compares an event of the SDK with what item(0, …) is.
func checkAttributes(t *testing.T, e *event.Event) {
	t.Helper()
	got := map[string]any{
		"id": e.ID(), "source": e.Source(), "type": e.Type(), "time": e.Time().String(),
		"partitionkey": e.Extensions()["partitionkey"], "traceparent": e.Extensions()["traceparent"], "specversion": e.SpecVersion(),
	}
	want := map[string]any{
		"id": "019a0000-0000-7000-8000-000000000000", "source": "queen:///github-events", "type": "push", "time": "2026-11-30 11:59:00 +0000 UTC",
		"partitionkey": "octo/repo", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "specversion": "1.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestCloudEventsAsTheSDKReadsThem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, contentType string }{
		{"JSON", `{"b":1,"a":12345678901234567890.10,"é":"\u00e9"}`, "application/json"},
		{"JSON with a charset", `[1, 2]`, "application/json; charset=UTF-8"},
		{"JSON without a type", `{"a":1}`, ""},
		{"form", "a=1&b=%20\"x\"", "application/x-www-form-urlencoded"},
		{"text that looks like JSON", `{"a":1}`, "text/plain"},
		{"says JSON and is none", `{"a":`, "application/json"},
		{"bytes", binary, "application/octet-stream"},
		{"no media type", `{"a":1}`, "nonsense;;"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, form := range []string{"cloudevents-binary", "cloudevents-structured"} {
				e := readCloudEvent(t, encoder(form, 1, "").Encode([]format.Item{item(0, tt.body, tt.contentType)}, now))
				checkAttributes(t, e)
				if string(e.Data()) != tt.body {
					t.Errorf("%s: data %q, want %q", form, e.Data(), tt.body)
				}
			}
		})
	}
}

func TestCloudEventsBatchAsTheSDKReadsIt(t *testing.T) {
	t.Parallel()
	bodies := []string{`{"a":1}`, `[2]`, `"3"`}
	for _, e := range []*format.Encoder{encoder("cloudevents-batch", 5, ""), encoder("", 5, "cloudevents")} {
		m := e.Encode(items(bodies...), now)
		h := http.Header{"Content-Type": {m.ContentType}}
		batch, err := binding.ToEvents(t.Context(), cehttp.NewMessage(h, io.NopCloser(bytes.NewReader(m.Body))), bytes.NewReader(m.Body))
		if err != nil || len(batch) != len(bodies) {
			t.Fatalf("the SDK reads %d events, %v", len(batch), err)
		}
		checkAttributes(t, &batch[0])
		for i, e := range batch {
			if err := e.Validate(); err != nil || string(e.Data()) != bodies[i] || e.ID() != m.IDs[i] {
				t.Errorf("event %d: %s, id %s, %v", i, e.Data(), e.ID(), err)
			}
		}
	}
}

// The SDK keeps data as it is written; so do we.
func TestCloudEventsDataIsByteExact(t *testing.T) {
	t.Parallel()
	m := encoder("cloudevents-structured", 1, "").Encode([]format.Item{item(0, exactJSON, "application/vnd.github+json")}, now)
	if !bytes.Contains(m.Body, []byte(`"data":`+exactJSON+`}`)) {
		t.Errorf("body %s lacks the data as it came", m.Body)
	}
}

// An event without type, and with bytes no attribute may have, is valid all
// the same.
func TestCloudEventsOfOddEvents(t *testing.T) {
	t.Parallel()
	it := item(0, "", "")
	*it.Event = bridge.Event{ID: "x"}
	it.Delivery.Origin.Partition = "a\x01\u0085\xff"
	for _, form := range []string{"cloudevents-structured", "cloudevents-binary"} {
		e := readCloudEvent(t, encoder(form, 1, "").Encode([]format.Item{it}, now))
		if e.Type() != "queen.message" || len(e.Data()) != 0 {
			t.Errorf("%s: type %q, data %q", form, e.Type(), e.Data())
		}
	}
}

// In the binary mode attributes are percent-encoded (HTTP binding §3.1.3.2),
// and what the provider sent as ce- headers does not mix with ours.
func TestBinaryCloudEventHeaders(t *testing.T) {
	t.Parallel()
	it := item(0, exactJSON, "application/json")
	it.Delivery.Origin.Queue, it.Delivery.Origin.Partition = "git ü", `größe "1" %`
	m := encoder("cloudevents-binary", 1, "").Encode([]format.Item{it}, now)
	want := []bridge.Header{
		{Name: "x-github-event", Value: "push"},
		{Name: "ce-specversion", Value: "1.0"},
		{Name: "ce-id", Value: "019a0000-0000-7000-8000-000000000000"},
		{Name: "ce-source", Value: "queen:///git%2520%25C3%25BC"},
		{Name: "ce-type", Value: "push"},
		{Name: "ce-time", Value: "2026-11-30T11:59:00Z"},
		{Name: "ce-partitionkey", Value: "gr%C3%B6%C3%9Fe%20%221%22%20%25"},
		{Name: "ce-traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
	if diff := cmp.Diff(want, m.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if string(m.Body) != exactJSON {
		t.Errorf("body %q", m.Body)
	}
}
