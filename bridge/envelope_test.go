package bridge_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func sampleOrigin() bridge.Origin {
	return bridge.Origin{
		Queue: "github", Partition: "github.3", PartitionID: "p-1", TransactionID: "github:abc",
		MessageID: "0199-7", CreatedAt: time.Date(2026, 11, 30, 10, 9, 8, 123000000, time.UTC),
	}
}

func sampleDelivery() bridge.Delivery {
	d := bridge.NewDelivery("ci", sampleOrigin(), sampleEvent().AppendPayload(nil))
	d.Hop, d.Attempt = 3, 2
	d.FirstFailed = time.Date(2026, 11, 30, 10, 9, 9, 5000, time.UTC)
	d.LastFailed = time.Date(2026, 11, 30, 10, 9, 14, 0, time.UTC)
	d.Last = bridge.Failure{Class: bridge.FailureHTTP5xx, Status: 503, Error: "answered 503"}
	return d
}

func sampleReason() *bridge.DeadReason {
	return &bridge.DeadReason{
		Route: "ci", Class: bridge.FailureExhausted, Attempts: 12,
		First:  time.Date(2026, 11, 30, 10, 9, 9, 0, time.UTC),
		Last:   time.Date(2026, 11, 30, 12, 9, 9, 0, time.UTC),
		Status: 503, Error: "answered 503", Response: `{"error":"busy"}`,
	}
}

func TestEnvelopeIsGolden(t *testing.T) {
	t.Parallel()
	d := sampleDelivery()
	d.Payload = []byte(`{"a": "b"}`)
	d.Dead = sampleReason()
	const want = `{"queenbridge":1,"retry":{"route":"ci","origin":{"queue":"github","partition":"github.3","partitionId":"p-1",` +
		`"transactionId":"github:abc","messageId":"0199-7","createdAt":"2026-11-30T10:09:08.123Z"},` +
		`"lineage":"bb0f91403412fc29264881a16a6c6d42","hop":3,"attempt":2,"first_failed":"2026-11-30T10:09:09.000005Z",` +
		`"last_failed":"2026-11-30T10:09:14Z","last":{"class":"http_5xx","status":503,"error":"answered 503"}},` +
		`"dead":{"route":"ci","class":"exhausted","attempts":12,"first":"2026-11-30T10:09:09Z","last":"2026-11-30T12:09:09Z",` +
		`"status":503,"error":"answered 503","response":"{\"error\":\"busy\"}"},"payload":"{\"a\": \"b\"}"}`
	if diff := cmp.Diff(want, string(d.AppendEnvelope(nil))); diff != "" {
		t.Errorf("AppendEnvelope (-want +got):\n%s", diff)
	}
}

func TestEnvelopeRoundTrip(t *testing.T) {
	t.Parallel()
	fresh := bridge.NewDelivery("ci", sampleOrigin(), []byte("[]"))
	dead, raw, empty := sampleDelivery(), sampleDelivery(), sampleDelivery()
	dead.Dead = sampleReason()
	raw.Payload = []byte("\x00\xff")
	empty.Payload = []byte{}
	for name, want := range map[string]bridge.Delivery{
		"fresh": fresh, "retry": sampleDelivery(), "dead": dead, "raw bytes": raw, "empty": empty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload := want.AppendEnvelope(nil)
			checkStorable(t, payload)
			for _, form := range [][]byte{payload, reencode(t, payload)} {
				got, ours, err := bridge.DecodeDelivery(form)
				if err != nil || !ours {
					t.Fatalf("DecodeDelivery(%q) = ours %v, %v", form, ours, err)
				}
				if diff := cmp.Diff(want, got, sameEvent); diff != "" {
					t.Errorf("round trip (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestDecodeDeliveryRefuses(t *testing.T) {
	t.Parallel()
	const origin = `"retry":{"route":"r","lineage":"l"}`
	tests := []struct {
		name, payload string
		ours, fails   bool
	}{
		{"foreign", `{"retry":{"route":"r"}}`, false, false},
		{"event", `{"queenbridge":1,"id":"a"}`, false, false},
		{"no JSON", `{`, false, false},
		{"least", `{"queenbridge":1,` + origin + `,"payload":""}`, true, false},
		{"sorted", `{"payload":"","queenbridge":1,` + origin + `,"zzz":[]}`, true, false},
		{"no payload", `{"queenbridge":1,` + origin + `}`, true, true},
		{"null payload", `{"queenbridge":1,` + origin + `,"payload":null}`, true, true},
		{"object payload", `{"queenbridge":1,` + origin + `,"payload":{}}`, true, true},
		{"two payloads", `{"queenbridge":1,` + origin + `,"payload":"","payload_base64":""}`, true, true},
		{"no lineage", `{"queenbridge":1,"retry":{"route":"r"},"payload":""}`, true, true},
		{"negative hop", `{"queenbridge":1,"retry":{"route":"r","lineage":"l","hop":-1},"payload":""}`, true, true},
		{"wrong retry", `{"queenbridge":1,"retry":5,"payload":""}`, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, ours, err := bridge.DecodeDelivery([]byte(tt.payload))
			if ours != tt.ours || (err != nil) != tt.fails {
				t.Errorf("DecodeDelivery(%s) = ours %v, err %v; want ours %v, fails %v", tt.payload, ours, err, tt.ours, tt.fails)
			}
		})
	}
}

func TestDeliveryEvent(t *testing.T) {
	t.Parallel()
	got, err := bridge.NewDelivery("r", sampleOrigin(), sampleEvent().AppendPayload(nil)).Event()
	if err != nil || !cmp.Equal(got, sampleEvent()) {
		t.Errorf("Event of ours = %+v, %v", got, err)
	}
	const foreign = ` {"order": 9007199254740993, "a":1, "a":2} `
	want := bridge.Event{
		ID: "github:abc", Received: sampleOrigin().CreatedAt,
		ContentType: "application/json", Body: []byte(foreign),
	}
	got, err = bridge.NewDelivery("r", sampleOrigin(), []byte(foreign)).Event()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("foreign event: %v (-want +got):\n%s", err, diff)
	}
	if _, err = bridge.NewDelivery("r", sampleOrigin(), []byte(`{"queenbridge":3}`)).Event(); err == nil {
		t.Error("an event of a higher version was read")
	}
}

func TestReasonIsCutAndClean(t *testing.T) {
	t.Parallel()
	r := *sampleReason()
	r.Response = strings.Repeat("x", 1022) + "€uro"
	r.Error = "a\x00b\xffc\xed\xa0\x80"
	r.First = time.Time{}
	compact := r.Compact()
	checkStorable(t, []byte(compact))
	var got bridge.DeadReason
	if err := json.Unmarshal([]byte(compact), &got); err != nil {
		t.Fatal(err)
	}
	if got.Response != strings.Repeat("x", 1022) || got.Error != "a\ufffdb\ufffdc\ufffd" || !got.First.IsZero() {
		t.Errorf("Compact = %s", compact)
	}
	if strings.ContainsAny(compact, "\n\t") || !strings.HasPrefix(compact, `{"route":"ci","class":"exhausted","attempts":12,"first":null,"last":"2026`) {
		t.Errorf("Compact = %s", compact)
	}
}

func FuzzEnvelopeRoundTrip(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "error", "response", 1, 2)
	f.Add([]byte("\x00"), "\xff", "\x00", 0, 0)
	f.Fuzz(func(t *testing.T, payload []byte, text, response string, hop, attempt int) {
		d := sampleDelivery()
		d.Payload, d.Hop, d.Attempt, d.Last.Error = payload, hop, attempt, text
		d.Dead = sampleReason()
		d.Dead.Error, d.Dead.Response = text, response
		envelope := d.AppendEnvelope(nil)
		checkStorable(t, envelope)
		got, ours, err := bridge.DecodeDelivery(envelope)
		if hop < 0 || attempt < 0 {
			if err == nil {
				t.Fatal("a negative count was read")
			}
			return
		}
		if err != nil || !ours {
			t.Fatalf("DecodeDelivery(%q) = ours %v, %v", envelope, ours, err)
		}
		if !bytes.Equal(got.Payload, payload) || got.Hop != hop || got.Attempt != attempt {
			t.Errorf("round trip changed payload or counts: %q", envelope)
		}
		if len(got.Dead.Response) > 1024 || !utf8.ValidString(got.Dead.Response) {
			t.Errorf("response of %d bytes", len(got.Dead.Response))
		}
	})
}

func FuzzDecodeDelivery(f *testing.F) {
	f.Add(sampleDelivery().AppendEnvelope(nil))
	f.Add([]byte(`{"queenbridge":1,"retry":{"route":"r","lineage":"l"},"payload_base64":"AA=="}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		d, ours, err := bridge.DecodeDelivery(payload)
		if err != nil || !ours {
			return
		}
		got, _, err := bridge.DecodeDelivery(d.AppendEnvelope(nil))
		if err != nil || !bytes.Equal(got.Payload, d.Payload) || got.Hop != d.Hop {
			t.Errorf("read %+v, after a round trip %+v, %v", d, got, err)
		}
	})
}
