package ingress_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
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

func fixedCases(t testing.TB) []fixedCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/fixed.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []fixedCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
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
	if tc.Expect.Body != nil && string(body) != *tc.Expect.Body {
		t.Errorf("body = %q, want %q", body, *tc.Expect.Body)
	}
	if want := tc.Expect.ContentType; want != nil && !strings.HasPrefix(res.Header.Get("Content-Type"), *want) {
		t.Errorf("content type = %q, want %q", res.Header.Get("Content-Type"), *want)
	}
	var got []fixedItem
	for _, e := range w.queen.events(t) {
		got = append(got, fixedItem{e.ID, e.Type})
		if string(e.Body) != string(tc.Request.Body) {
			t.Errorf("body of the event differs from the bytes sent")
		}
	}
	if diff := cmp.Diff(tc.Expect.Items, got); diff != "" && len(tc.Expect.Items)+len(got) > 0 {
		t.Errorf("items (-want +got):\n%s", diff)
	}
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
