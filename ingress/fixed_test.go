package ingress_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
)

// fixedCase is one signed request made by an independent signer.
type fixedCase struct {
	Case    string
	Preset  string
	Class   string
	Now     int64
	Source  fixedSource
	Request struct {
		Method     string
		PathSuffix string `json:"path_suffix"`
		Query      string
		Headers    [][2]string
		Body       []byte `json:"body_base64"`
	}
	Expect struct {
		Status      int
		Body        *string
		ContentType *string `json:"content_type"`
		Headers     map[string]string
		Items       []fixedItem
	}
}

type fixedSource struct {
	Scheme        string
	Secrets       []string
	PublicURL     string         `json:"public_url"`
	SchemeOptions map[string]any `json:"scheme_options"`
	TransactionID string         `json:"transaction_id"`
	EventType     string         `json:"event_type"`
}

type fixedItem struct {
	TransactionID string `json:"transaction_id"`
	EventType     string `json:"event_type"`
}

// fixedCases are the cases that package signing is tested with, too; see the
// README beside them.
func fixedCases(t testing.TB) []fixedCase {
	t.Helper()
	files, err := filepath.Glob("../signing/testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("vectors: %d files, %v", len(files), err)
	}
	var all []fixedCase
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var cases []fixedCase
		if err := json.Unmarshal(raw, &cases); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, cases...)
	}
	return all
}

// TestEverySchemeHasSignedRequests holds the list above to what there is.
// Scheme mtls has tests of its own: its proof is no part of the request.
func TestEverySchemeHasSignedRequests(t *testing.T) {
	t.Parallel()
	accepted, refused := map[string]int{"mtls": 1}, map[string]int{"mtls": 1, "none": 1}
	cases := fixedCases(t)
	for _, tc := range cases {
		if tc.Expect.Status < 300 {
			accepted[tc.Preset]++
		} else {
			refused[tc.Preset]++
		}
	}
	for _, p := range signing.Presets() {
		if accepted[p.Name] == 0 || refused[p.Name] == 0 {
			t.Errorf("%s: %d accepted and %d refused requests, want some of both", p.Name, accepted[p.Name], refused[p.Name])
		}
	}
	if len(cases) < 361 {
		t.Errorf("%d cases, want 361", len(cases))
	}
}

func (s fixedSource) source(name string) bridge.Source {
	out := bridge.Source{
		Name: name, Scheme: s.Scheme, PublicURL: s.PublicURL, SchemeOptions: s.SchemeOptions,
		TransactionID: s.TransactionID, EventType: s.EventType,
	}
	for _, secret := range s.Secrets {
		out.Secrets = append(out.Secrets, bridge.Secret(secret))
	}
	return out
}

// TestSignedRequestsOfEveryScheme sends requests of a foreign signer over the
// network, byte for byte, at the time they were made for.
func TestSignedRequestsOfEveryScheme(t *testing.T) {
	t.Parallel()
	for _, tc := range fixedCases(t) {
		t.Run(tc.Case, func(t *testing.T) {
			t.Parallel()
			c := sources(tc.Source.source("hook"))
			c.Now = func() time.Time { return time.Unix(tc.Now, 0) }
			w := serve(t, c)
			tc.check(t, w)
		})
	}
}

func (tc *fixedCase) check(t *testing.T, w *world) {
	t.Helper()
	res := w.raw(t, 1, tc.wire())[0]
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != tc.Expect.Status {
		t.Errorf("status = %d, want %d; log:\n%s", res.StatusCode, tc.Expect.Status, w.logs)
	}
	tc.checkAnswer(t, res.Header, body)
	var got []fixedItem
	events := storedEvents(t, w.queen)
	for _, e := range events {
		got = append(got, fixedItem{e.ID, e.Type})
		if len(events) == 1 && !batched(tc.Preset) && string(e.Body) != string(tc.Request.Body) {
			t.Errorf("body of the event differs from the bytes sent")
		}
	}
	if diff := cmp.Diff(tc.Expect.Items, got); diff != "" && len(tc.Expect.Items)+len(got) > 0 {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

// batched says that requests of a scheme are split, so that the body of an
// event is a part of the request's.
func batched(scheme string) bool {
	preset, _ := signing.Lookup(scheme)
	return preset.Split != ""
}

func (tc *fixedCase) checkAnswer(t *testing.T, h http.Header, body []byte) {
	t.Helper()
	if tc.Expect.Body != nil && string(body) != *tc.Expect.Body && !sameJSON(body, []byte(*tc.Expect.Body)) {
		t.Errorf("body = %q, want %q", body, *tc.Expect.Body)
	}
	if want := tc.Expect.ContentType; want != nil && !strings.HasPrefix(h.Get("Content-Type"), *want) {
		t.Errorf("content type = %q, want %q", h.Get("Content-Type"), *want)
	}
	for name, want := range tc.Expect.Headers {
		if h.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, h.Get(name), want)
		}
	}
	for name := range h {
		if name == "Location" || name == "Set-Cookie" {
			t.Errorf("the answer has %s", name)
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

// wire is the request as it goes over the network.
func (tc *fixedCase) wire() string {
	var out strings.Builder
	target := "/in/hook" + tc.Request.PathSuffix
	if tc.Request.Query != "" {
		target += "?" + tc.Request.Query
	}
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: hooks.example.com\r\n", tc.Request.Method, target)
	for _, h := range tc.Request.Headers {
		fmt.Fprintf(&out, "%s: %s\r\n", h[0], h[1])
	}
	fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n", len(tc.Request.Body))
	out.Write(tc.Request.Body)
	return out.String()
}
