package signing_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		Status int `json:"status"`
	} `json:"expect"`
	Now int64 `json:"now"`
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
		})
	}
}
