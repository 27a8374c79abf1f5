package bridge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/queenbridge/queenbridge/bridge"
)

// unstorable finds what a reader who does not parse would take for an escaped
// NUL or surrogate.
var unstorable = regexp.MustCompile(`\\u(0000|[dD][89a-fA-F])`)

// sameEvent makes comparisons treat nil and empty bodies alike.
var sameEvent = cmp.Options{cmpopts.EquateEmpty()}

func sampleEvent() bridge.Event {
	return bridge.Event{
		ID: "github:72d3162e-cc78-11e3-81ab-4c9367dc0958", Source: "github", Type: "push",
		Received: time.Date(2026, 11, 30, 10, 9, 8, 123456000, time.UTC),
		Class:    bridge.ClassVerified, Method: "POST", Path: "/in/github", Query: "a=1&b=2",
		Headers: []bridge.Header{
			{Name: "x-github-event", Value: "push"},
			{Name: "x-twice", Value: "one"}, {Name: "x-twice", Value: "two"},
			{Name: "x-latin", Value: "caf\xe9"},
		},
		ContentType: "application/json",
		Body:        []byte("{\"ref\": \"refs/heads/main\",\n\t\"n\": 9007199254740993}"),
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
}

func TestEventPayloadIsGolden(t *testing.T) {
	t.Parallel()
	const want = `{"queenbridge":1,"id":"github:72d3162e-cc78-11e3-81ab-4c9367dc0958","source":"github","type":"push",` +
		`"received":"2026-11-30T10:09:08.123456Z","class":"verified","method":"POST","path":"/in/github","query":"a=1&b=2",` +
		`"headers":[["x-github-event","push"],["x-twice","one"],["x-twice","two"],["x-latin","Y2Fm6Q==","base64"]],` +
		`"content_type":"application/json","body":"{\"ref\": \"refs/heads/main\",\n\t\"n\": 9007199254740993}",` +
		`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`
	got := string(sampleEvent().AppendPayload(nil))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("AppendPayload (-want +got):\n%s", diff)
	}
	if got := string(sampleEvent().AppendPayload([]byte("kept"))); got != "kept"+want {
		t.Errorf("AppendPayload does not append: %s", got)
	}
}

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"empty":            "",
		"json":             `{"a":"b\\c\u0041"}`,
		"nul":              "a\x00b",
		"nul escape":       `{"a":"\u0000"}`,
		"many backslashes": `\\\\u0000\u0000\`,
		"surrogate text":   `"\ud800"`,
		"not utf-8":        "\xff\xfe",
		"utf-8 surrogate":  "\xed\xa0\x80",
		"overlong nul":     "\xc0\x80",
		"controls":         "\x01\x08\x0c\x1f\x7f\r\n\t",
		"separators":       "\u2028\u2029\ufffe\U0001f600\ufffd",
		"html":             "<&>",
		"bom":              "\ufeff{}",
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := sampleEvent()
			want.Body = []byte(body)
			want.Headers = append(want.Headers, bridge.Header{Name: "x-body", Value: body})
			checkRoundTrip(t, want)
		})
	}
}

// checkRoundTrip writes and reads e, as written and as a broker may hand it
// back: keys sorted, strings escaped its own way.
func checkRoundTrip(t *testing.T, want bridge.Event) {
	t.Helper()
	payload := want.AppendPayload(nil)
	checkStorable(t, payload)
	for _, form := range [][]byte{payload, reencode(t, payload)} {
		got, ours, err := bridge.DecodeEvent(form)
		if err != nil || !ours {
			t.Fatalf("DecodeEvent(%q) = ours %v, %v", form, ours, err)
		}
		if diff := cmp.Diff(want, got, sameEvent); diff != "" {
			t.Errorf("round trip of %q (-want +got):\n%s", form, diff)
		}
	}
}

// checkStorable fails where payload holds what a broker or PostgreSQL refuses.
func checkStorable(t *testing.T, payload []byte) {
	t.Helper()
	if !utf8.Valid(payload) || !json.Valid(payload) {
		t.Fatalf("payload is no valid JSON in UTF-8: %q", payload)
	}
	if unstorable.Match(payload) {
		t.Errorf("payload seems to hold a NUL or surrogate escape: %q", payload)
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	for tok, err := dec.Token(); err == nil; tok, err = dec.Token() {
		if s, ok := tok.(string); ok && strings.ContainsRune(s, 0) {
			t.Errorf("payload holds NUL in %q", s)
		}
	}
}

// reencode does what Queen 1.x does to a transaction push.
func reencode(t *testing.T, payload []byte) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(payload, &doc); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return sorted
}

func TestEventTextIsSanitised(t *testing.T) {
	t.Parallel()
	e := sampleEvent()
	e.ID, e.Type, e.Method, e.Source = "i\x00d", "t\xffype", "\xc3", "\xed\xa0\x80"
	e.Path, e.Query, e.ContentType = "/in/\xe9\x00/é", "q=\xff%20", "text/\xe9"
	payload := e.AppendPayload(nil)
	checkStorable(t, payload)
	got, _, err := bridge.DecodeEvent(payload)
	if err != nil {
		t.Fatal(err)
	}
	want := e
	want.ID, want.Type, want.Method, want.Source = "i\ufffdd", "t\ufffdype", "\ufffd", "\ufffd"
	want.Path, want.Query, want.ContentType = "/in/%E9%00/é", "q=%FF%20", "text/\ufffd"
	if diff := cmp.Diff(want, got, sameEvent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeEventTellsOursFromForeign(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, payload string
		ours, fails   bool
	}{
		{"array", `[1]`, false, false},
		{"string", `"queenbridge"`, false, false},
		{"null", `null`, false, false},
		{"number", `1`, false, false},
		{"no JSON", `{"queenbridge":`, false, false},
		{"nothing", ``, false, false},
		{"object", `{"id":5,"body":{}}`, false, false},
		{"duplicate keys", `{"a":1,"a":2,"x":"queenbridge"}`, false, false},
		{"lone surrogate", `{"a":"\ud800","x":"queenbridge"}`, false, false},
		{"other case", `{"QueenBridge":1,"x":"queenbridge","id":"a"}`, false, false},
		{"nested", `{"x":{"queenbridge":1,"id":"a"}}`, false, false},
		{"string one", `{"queenbridge":"1","id":"a"}`, false, false},
		{"true", `{"queenbridge":true,"id":"a"}`, false, false},
		{"null version", `{"queenbridge":null,"id":"a"}`, false, false},
		{"zero", `{"queenbridge":0,"id":"a"}`, false, false},
		{"negative", `{"queenbridge":-1,"id":"a"}`, false, false},
		{"fraction", `{"queenbridge":1.5,"id":"a"}`, false, false},
		{"huge", `{"queenbridge":1e400,"id":"a"}`, false, false},
		{"envelope", `{"queenbridge":1,"retry":{}}`, false, false},
		{"sorted envelope", `{"payload":"","queenbridge":1,"retry":{}}`, false, false},
		{"least", `{"queenbridge":1,"id":"a"}`, true, false},
		{"last key", `{"id":"a","queenbridge":1}`, true, false},
		{"spaces", ` { "queenbridge" : 1 , "id" : "a" } `, true, false},
		{"float", `{"id":"a","queenbridge":1.0}`, true, false},
		{"future member", `{"queenbridge":1,"id":"a","shiny":{"deep":[1]}}`, true, false},
		{"no id", `{"queenbridge":1}`, true, true},
		{"wrong type", `{"queenbridge":1,"id":"a","method":5}`, true, true},
		{"two ids", `{"queenbridge":1,"id":"a","id":"b"}`, true, true},
		{"two bodies", `{"queenbridge":1,"id":"a","body":"","body_base64":""}`, true, true},
		{"body number", `{"queenbridge":1,"id":"a","body":1}`, true, true},
		{"bad base64", `{"queenbridge":1,"id":"a","body_base64":"*"}`, true, true},
		{"bad header", `{"queenbridge":1,"id":"a","headers":[["a"]]}`, true, true},
		{"bad triple", `{"queenbridge":1,"id":"a","headers":[["a","b","hex"]]}`, true, true},
		{"bad triple text", `{"queenbridge":1,"id":"a","headers":[["a","*","base64"]]}`, true, true},
		{"bad time", `{"queenbridge":1,"id":"a","received":"yesterday"}`, true, true},
		{"cut", `{"queenbridge":1,"id":"a"`, true, true},
		{"surrogate", `{"queenbridge":1,"id":"a","body":"\ud800"}`, true, true},
		{"next version", `{"queenbridge":2,"new":true}`, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, ours, err := bridge.DecodeEvent([]byte(tt.payload))
			if ours != tt.ours || (err != nil) != tt.fails {
				t.Errorf("DecodeEvent(%s) = ours %v, err %v; want ours %v, fails %v", tt.payload, ours, err, tt.ours, tt.fails)
			}
		})
	}
}

func TestHigherVersionIsNamed(t *testing.T) {
	t.Parallel()
	_, _, err := bridge.DecodeEvent([]byte(`{"id":"a","queenbridge":2}`))
	if !errors.Is(err, bridge.ErrVersion) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("DecodeEvent = %v, want ErrVersion naming version 2", err)
	}
	_, ours, err := bridge.DecodeDelivery([]byte(`{"queenbridge":7,"retry":{}}`))
	if !ours || !errors.Is(err, bridge.ErrVersion) {
		t.Errorf("DecodeDelivery = ours %v, %v, want ours and ErrVersion", ours, err)
	}
}

// Bodies are never logged, so no error may quote one.
func TestDecodeErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"queenbridge":1,"id":"a","received":"tops3cret"}`,
		`{"queenbridge":1,"id":"a","body_base64":"tops3cret*"}`,
		`{"queenbridge":1,"id":"a","headers":"tops3cret"}`,
		`{"queenbridge":1,"id":"a","headers":[["tops3cret"]]}`,
		`{"queenbridge":1,"id":"a","body":"tops3cret`,
		`{"queenbridge":1,"retry":{"hop":"tops3cret"}}`,
	} {
		_, _, err := bridge.DecodeEvent([]byte(payload))
		if err == nil {
			_, _, err = bridge.DecodeDelivery([]byte(payload))
		}
		if err == nil || strings.Contains(err.Error(), "tops3cret") {
			t.Errorf("decode %s: %v", payload, err)
		}
	}
}

// A body below the cap of its source, all quotes or control characters, must
// fit into the 64 MiB that Queen takes.
func TestABodyOfEscapesStaysBelowQueensLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		n     int
		field string
	}{
		{"\x01", 11 << 20, "body_base64"}, {`"`, 1 << 20, "body"},
	} {
		e := sampleEvent()
		e.Body = bytes.Repeat([]byte(tt.text), tt.n/len(tt.text))
		payload := e.AppendPayload(nil)
		if len(payload) > 63<<20 || !bytes.Contains(payload, []byte(`,"`+tt.field+`":"`)) {
			t.Errorf("%d times %q: a payload of %d bytes, want %s and at most 63 MiB", tt.n, tt.text, len(payload), tt.field)
		}
		got, _, err := bridge.DecodeEvent(payload)
		if err != nil || !bytes.Equal(got.Body, e.Body) {
			t.Errorf("%d times %q: the body changed (%v)", tt.n, tt.text, err)
		}
	}
}

func FuzzEventRoundTrip(f *testing.F) {
	f.Add([]byte("body"), "x-name", "value", "github:1", "/in/a", "q=1", int64(1764497348123456))
	f.Add([]byte("\x00\xff"), "x", "\xe9", "", "\xff", "\x00", int64(0))
	f.Add([]byte(`\uDD`), "x", `\uD8`, `\ud8`, `\uDf0`, `\u000`, int64(0)) // cut off
	f.Add([]byte(`\u0000\\u0000`), "x", `\u0000`, `\`, `"`, "\u2028", int64(-1))
	f.Fuzz(func(t *testing.T, body []byte, name, value, id, path, query string, micros int64) {
		e := sampleEvent()
		e.Body = body
		e.Headers = []bridge.Header{{Name: name, Value: value}, {Name: name, Value: value}}
		e.ID, e.Path, e.Query = id, path, query
		e.Received = time.UnixMicro(micros % (1 << 54)).UTC()
		payload := e.AppendPayload(nil)
		checkStorable(t, payload)
		got, ours, err := bridge.DecodeEvent(payload)
		if id == "" {
			if err == nil {
				t.Fatal("an event without id was read")
			}
			return
		}
		if err != nil || !ours {
			t.Fatalf("DecodeEvent(%q) = ours %v, %v", payload, ours, err)
		}
		if !bytes.Equal(got.Body, body) || got.Headers[0].Value != value || got.Headers[1].Value != value || !got.Received.Equal(e.Received) {
			t.Errorf("round trip changed body, header or time: %q", payload)
		}
		for _, text := range [][2]string{{got.ID, id}, {got.Path, path}, {got.Query, query}, {got.Headers[0].Name, name}} {
			if utf8.ValidString(text[1]) && !strings.ContainsRune(text[1], 0) && text[0] != text[1] {
				t.Errorf("round trip of %q = %q", text[1], text[0])
			}
		}
		if again, _, err := bridge.DecodeEvent(got.AppendPayload(nil)); err != nil || !cmp.Equal(again, got, sameEvent) {
			t.Errorf("second round trip differs: %v", cmp.Diff(got, again, sameEvent))
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(`{"queenbridge":1,"id":"a","headers":[["a","b"],["c","ZA==","base64"]],"body_base64":"AA=="}`))
	f.Add([]byte(`{"queenbridge":2}`))
	f.Add([]byte(`{"body":"\ud83d\ude00","queenbridge":1.0,"id":"x"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, ours, err := bridge.DecodeEvent(payload)
		if err != nil || !ours {
			return
		}
		got, _, err := bridge.DecodeEvent(e.AppendPayload(nil))
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if !bytes.Equal(got.Body, e.Body) || !cmp.Equal(got.Headers, e.Headers, sameEvent) {
			t.Errorf("read %+v, after a round trip %+v", e, got)
		}
	})
}

func benchmarkEvent() bridge.Event {
	e := sampleEvent()
	e.Headers = e.Headers[:3]
	e.Body = []byte(`{"action":"opened","list":[` + strings.Repeat(`{"id":123456,"name":"a name","url":"https://example.com/x"},`, 100) + `{}]}`)
	return e
}

func BenchmarkAppendPayload(b *testing.B) {
	e := benchmarkEvent()
	buf := e.AppendPayload(nil)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = e.AppendPayload(buf[:0])
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	payload := benchmarkEvent().AppendPayload(nil)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := bridge.DecodeEvent(payload); err != nil {
			b.Fatal(err)
		}
	}
}
