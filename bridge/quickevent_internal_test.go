package bridge

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func quickSample(body string) Event {
	return Event{
		ID: "github:1", Source: "github", Type: "push", Received: time.UnixMicro(1764497348123456).UTC(), Class: ClassVerified,
		Method: "POST", Path: "/in/gîthub", Query: `a="b"`, ContentType: "application/json", Body: []byte(body),
		Headers:     []Header{{"x-a", "1"}, {"x-b", "back\\slash"}, {"x-a", "2"}},
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// What is written is read the quick way: the general one is for the rest.
func TestEventsAsWrittenAreReadQuickly(t *testing.T) {
	t.Parallel()
	empty := Event{ID: "a", Received: time.UnixMicro(0).UTC()}
	for _, e := range []Event{
		quickSample(`{"a":"b\n","c":[1.0,2e400]}`), quickSample(""), quickSample("é😀\u2028\t\x01\x7f"), quickSample(`\ud800 \u0000 \`), empty,
	} {
		payload := e.AppendPayload(nil)
		got, ok := quickEvent(payload)
		if diff := cmp.Diff(e, got, cmpopts.EquateEmpty()); !ok || diff != "" {
			t.Errorf("quickEvent(%s) = %v (-want +got):\n%s", payload, ok, diff)
		}
	}
}

// What differs is left to the general decoder, also where that takes it.
func TestOddEventsAreNotReadQuickly(t *testing.T) {
	t.Parallel()
	payload := string(quickSample("b").AppendPayload(nil))
	for _, change := range [][2]string{
		{`"queenbridge":1`, `"queenbridge":2`}, {`"queenbridge":1`, `"queenbridge": 1`}, {`"id":"github:1"`, `"id":""`},
		{`"source":"github"`, `"source":null`}, {`"source":"github",`, ``}, {`"source":"github"`, `"source":"git\x01hub"`},
		{`"source":"github"`, `"source":"git\xffhub"`}, {`"source":"github"`, `"source":"\ud83d\ude00"`}, {`"source":"github"`, `"source":"\x"`},
		{`.123456Z`, `.12345Z`}, {`.123456Z`, `.12+01:00`}, {`["x-a","1"]`, `["x-a","MQ==","base64"]`}, {`["x-a","1"]`, `["x-a"]`},
		{`["x-a","1"],`, `["x-a","1"],,`}, {`"body":"b"`, `"body_base64":"AA=="`}, {`"body":"b"`, `"body":"\ud800"`}, {`"body":"b"`, `"body":"\xc3"`},
		{`"body":"b"`, `"body":"\u00g0"`}, {`"body":"b"`, `"body":"b`}, {`"traceparent":`, `"new":1,"traceparent":`}, {`-01"}`, `-01"} `}, {`-01"}`, `-01"`},
	} {
		odd := strings.Replace(payload, change[0], change[1], 1)
		if odd == payload {
			t.Fatalf("no %s in %s", change[0], payload)
		}
		if e, ok := quickEvent([]byte(odd)); ok {
			t.Errorf("quickEvent with %q = %+v", change[1], e)
		}
	}
}

// FuzzQuickEvent: what is read quickly is what the general decoder reads.
func FuzzQuickEvent(f *testing.F) {
	f.Add(quickSample(`{"a":"b\n"}`).AppendPayload(nil))
	f.Add(Event{ID: "a"}.AppendPayload(nil))
	f.Add([]byte(`{"queenbridge":1,"id":"\u0061\/","body":"x"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		quick, ok := quickEvent(payload)
		if !ok {
			return
		}
		want, ours, err := decodeEvent(payload)
		if diff := cmp.Diff(want, quick, cmpopts.EquateEmpty()); err != nil || !ours || diff != "" {
			t.Errorf("quickEvent(%q): the general decoder says %v, %v (-want +got):\n%s", payload, ours, err, diff)
		}
	})
}
