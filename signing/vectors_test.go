package signing_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/signing"
)

// vector is one case of testdata/vectors (see its README).
type vector struct {
	Case   string `json:"case"`
	Preset string `json:"preset"`
	Source struct {
		Scheme        string         `json:"scheme"`
		Secrets       []string       `json:"secrets"`
		PublicURL     string         `json:"public_url"`
		TransactionID string         `json:"transaction_id"`
		SchemeOptions map[string]any `json:"scheme_options"`
	} `json:"source"`
	Request struct {
		Method     string      `json:"method"`
		PathSuffix string      `json:"path_suffix"`
		Query      string      `json:"query"`
		Headers    [][2]string `json:"headers"`
		Body       string      `json:"body_base64"`
	} `json:"request"`
	Expect struct {
		Status      int               `json:"status"`
		Body        string            `json:"body"`
		ContentType string            `json:"content_type"`
		Headers     map[string]string `json:"headers"`
		Items       []vectorEvent     `json:"items"`
	} `json:"expect"`
	Now int64 `json:"now"`
}

type vectorEvent struct {
	ID   string `json:"transaction_id"`
	Type string `json:"event_type"`
}

func (v *vector) options() signing.Options {
	return signing.Options{
		Scheme: v.Source.Scheme, Secrets: v.Source.Secrets,
		SchemeOptions: v.Source.SchemeOptions, PublicURL: v.Source.PublicURL,
	}
}

func (v *vector) request(t *testing.T) *signing.Request {
	t.Helper()
	body, err := base64.StdEncoding.DecodeString(v.Request.Body)
	if err != nil {
		t.Fatalf("%s: body: %v", v.Case, err)
	}
	h := http.Header{}
	for _, pair := range v.Request.Headers {
		h.Add(pair[0], pair[1])
	}
	return &signing.Request{
		Method: v.Request.Method, Path: "/in/test" + v.Request.PathSuffix, RawQuery: v.Request.Query,
		Header: h, Body: body, Now: time.Unix(v.Now, 0),
	}
}

// loadVectors reads every file of testdata/vectors.
func loadVectors(t *testing.T) []vector {
	t.Helper()
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %v, %v", files, err)
	}
	var all []vector
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var cases []vector
		if err := json.Unmarshal(raw, &cases); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range cases {
			if c.Preset != strings.TrimSuffix(filepath.Base(name), ".json") {
				t.Errorf("%s holds a case of %s", name, c.Preset)
			}
		}
		all = append(all, cases...)
	}
	return all
}

// TestVectors judges requests that another implementation signed.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, c := range loadVectors(t) {
		t.Run(c.Case, func(t *testing.T) {
			t.Parallel()
			v, problems := signing.New(c.options())
			if len(problems) > 0 {
				t.Fatalf("New: %v", problems)
			}
			proof, err := v.Verify(c.request(t))
			if (err == nil) != (c.Expect.Status < 300) {
				t.Errorf("Verify = %+v, %v, want status %d", proof, err, c.Expect.Status)
			}
			if err == nil {
				c.checkEvents(t, v)
				c.checkAnswer(t, v)
			} else {
				c.checkRefusal(t, err)
			}
		})
	}
}

// checkEvents compares the ids and types the preset's expressions give. A
// source's own expressions are not this package's.
func (v *vector) checkEvents(t *testing.T, verifier *signing.Verifier) {
	t.Helper()
	r := v.request(t)
	values := verifier.Values(r)
	preset, _ := signing.Lookup(v.Source.Scheme)
	if preset.Generic {
		return
	}
	items, split := verifier.Items(values)
	all := make([]*signing.Item, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	if !split {
		all = []*signing.Item{nil}
	}
	var got []vectorEvent
	for _, item := range all {
		f := facts{values: values, body: r.Body, item: item}
		kind, _, _ := f.eval(preset.EventType)
		got = append(got, vectorEvent{ID: f.transactionID(preset.Name, preset.TransactionID), Type: kind})
	}
	if diff := cmp.Diff(v.Expect.Items, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func (v *vector) checkAnswer(t *testing.T, verifier *signing.Verifier) {
	t.Helper()
	preset, _ := signing.Lookup(v.Source.Scheme)
	answer, ok := verifier.Answer(v.request(t))
	if !ok {
		answer = preset.Answer
	}
	if answer.Status == 0 {
		answer.Status = http.StatusOK
	}
	if answer.Status != v.Expect.Status || answer.Body != v.Expect.Body || v.Expect.ContentType != "" && answer.ContentType != v.Expect.ContentType {
		t.Errorf("answer = %+v, want %d %q %q", answer, v.Expect.Status, v.Expect.ContentType, v.Expect.Body)
	}
	for name, want := range v.Expect.Headers {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("answer header %s = %q, want %q", name, got, want)
		}
	}
}

func (v *vector) checkRefusal(t *testing.T, err error) {
	t.Helper()
	var rejection *signing.Rejection
	if !errors.As(err, &rejection) {
		t.Errorf("Verify = %v, want a rejection", err)
	}
	preset, _ := signing.Lookup(v.Source.Scheme)
	if status := cmpOr(preset.Refusal.Status, http.StatusUnauthorized); status != v.Expect.Status {
		t.Errorf("refusal = %d, want %d", status, v.Expect.Status)
	}
}

func cmpOr(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}
