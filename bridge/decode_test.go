package bridge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestDecodeReportsForm(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, doc string
		want      []string
	}{
		{"nothing", `{}`, nil},
		{"null is left out", `{"stop_timeout": null, "queen": null, "sources": null}`, nil},
		{"zero is not left out", `{"ingress": {"batch": {"linger": 0, "max_bytes": 0}}}`, nil},
		{"unknown", `{"sourcez": [], "xyzzy": 1}`, []string{`sourcez: is unknown (did you mean "sources"?)`, `xyzzy: is unknown`}},
		{"twice", `{"log": {"level": "info", "level": "debug"}}`, []string{`log.level: is set twice`}},
		{"no map", `{"queen": "http://queen:6632"}`, []string{`queen: must be a map of fields, got "http://queen:6632"`}},
		{"no list", `{"queen": {"urls": "http://queen:6632"}}`, []string{`queen.urls: must be a list, got "http://queen:6632"`}},
		{"list of nothing", `{"queen": {"urls": [null]}}`, []string{`queen.urls[0]: must not be empty`}},
		{"duration", `{"stop_timeout": "5"}`, []string{`stop_timeout: must be a duration such as 30s, got "5"`}},
		{"duration number", `{"stop_timeout": 5}`, []string{`stop_timeout: must be a duration such as 30s, got 5`}},
		{"duration list", `{"stop_timeout": []}`, []string{`stop_timeout: must be a duration such as 30s, got a list`}},
		{"size", `{"ingress": {"batch": {"max_bytes": "4MB"}}}`, []string{`ingress.batch.max_bytes: must be a size such as 10MiB or 512KiB, got "4MB"`}},
		{"integer", `{"dispatch": {"max_in_flight": "many"}}`, []string{`dispatch.max_in_flight: must be a whole number, got "many"`}},
		{"integer in quotes", `{"dispatch": {"max_in_flight": "5"}}`, []string{`dispatch.max_in_flight: must be a whole number, got "5"`}},
		{"fraction", `{"dispatch": {"max_in_flight": 1.5}}`, []string{`dispatch.max_in_flight: must be a whole number, got 1.5`}},
		{"too large", `{"dispatch": {"max_in_flight": 99999999999999999999}}`, []string{`dispatch.max_in_flight: must be a whole number, got 99999999999999999999`}},
		{"boolean", `{"admin": {"console": "yes"}}`, []string{`admin.console: must be true or false, got "yes"`}},
		{"boolean number", `{"admin": {"console": 1}}`, []string{`admin.console: must be true or false, got 1`}},
		{"text", `{"log": {"level": true}}`, []string{`log.level: must be text, got true: put it in quotes`}},
		{"text map", `{"log": {"level": {"a": 1}}}`, []string{`log.level: must be text, got a map`}},
		{"secret", `{"queen": {"token": 12345}}`, []string{`queen.token: must be text: put it in quotes`}},
		{"literal secret", `{"queen": {"token": "abc"}}`, []string{`warning: queen.token: is a literal secret: better write ${env:NAME} or ${file:PATH}`}},
		{"float", `{"sources": [{"rate": {"per_second": "fast"}}]}`, []string{`sources[0].rate.per_second: must be a number, got "fast"`}},
		{"no struct in a list", `{"sources": ["github"]}`, []string{`sources[0]: must be a map of fields, got "github"`}},
		{"map of text", `{"targets": [{"http": {"headers": {"X-A": 1, "X-B": "b"}}}]}`, []string{`targets[0].http.headers.X-A: must be text, got 1: put it in quotes`}},
		{"no map of text", `{"targets": [{"http": {"headers": ["X-A"]}}]}`, []string{`targets[0].http.headers: must be a map, got a list`}},
		{"twice in options", `{"sources": [{"scheme_options": {"a": 1, "b": {"c": 1, "c": 2}}}]}`, []string{`sources[0].scheme_options.b.c: is set twice`}},
		{"long text", `{"stop_timeout": "` + strings.Repeat("x", 200) + `"}`, []string{`stop_timeout: must be a duration such as 30s, got "` + strings.Repeat("x", 100) + `"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, problems := bridge.Decode(document(t, tt.doc))
			if diff := cmp.Diff(tt.want, texts(problems)); diff != "" {
				t.Errorf("Decode(%s) (-want +got):\n%s", tt.doc, diff)
			}
		})
	}
}

func TestDecodeDefaults(t *testing.T) {
	t.Parallel()
	c, problems := bridge.Decode(document(t, `{
		"queen": {"embedded": "memory"},
		"sources": [{"name": "github", "scheme": "github"}, {"name": "b", "queue": "shared"}],
		"targets": [{"name": "ci", "http": {"url": "http://x/"}}, {"name": "fn", "lambda": {"function": "f"}}],
		"routes": [{"name": "loose"}, {"name": "strict", "ordering": "partition"},
			{"name": "own", "ordering": "partition", "retry": {"max_attempts": 3, "backoff": ["7s"]}}]}`))
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	strict := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute}
	checks := []struct {
		name      string
		got, want any
	}{
		{"no URLs beside embedded", len(c.Queen.URLs), 0},
		{"queue", c.Sources[0].Queue, "github"},
		{"own queue", c.Sources[1].Queue, "shared"},
		{"http timeout", c.Targets[0].HTTP.Timeout, 30 * time.Second},
		{"lambda timeout", c.Targets[1].Lambda.Timeout, time.Minute},
		{"group", c.Routes[0].Group, "loose"},
		{"loose attempts", c.Routes[0].Retry.MaxAttempts, 12},
		{"loose age", c.Routes[0].Retry.MaxAge, 24 * time.Hour},
		{"loose backoff", c.Routes[0].Retry.Backoff, testRoute().Retry.Backoff},
		{"strict attempts", c.Routes[1].Retry.MaxAttempts, 100},
		{"strict age", c.Routes[1].Retry.MaxAge, time.Hour},
		{"strict backoff", c.Routes[1].Retry.Backoff, strict},
		{"own attempts", c.Routes[2].Retry.MaxAttempts, 3},
		{"own backoff", c.Routes[2].Retry.Backoff, []time.Duration{7 * time.Second}},
		{"rest of own retry", c.Routes[2].Retry.MaxAge, time.Hour},
		{"default URL", bridge.Defaults().Queen.URLs, []string{"http://127.0.0.1:6632"}},
	}
	for _, check := range checks {
		if diff := cmp.Diff(check.want, check.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", check.name, diff)
		}
	}
}

// Texts from a reference or the environment have no types of their own, and
// what a reference holds is never shown.
func TestTextsFromOutside(t *testing.T) {
	t.Parallel()
	outside := bridge.Node{Kind: bridge.NodeString, Text: "404", Reference: "${env:X}"}
	var doc bridge.Node
	for _, path := range []string{"queen.token", "dispatch.max_in_flight", "log.level", "stop_timeout", "admin.console"} {
		doc.Set(path, outside)
	}
	c, problems := bridge.Decode(doc)
	want := []string{
		"stop_timeout: must be a duration such as 30s, got what ${env:X} holds",
		"admin.console: must be true or false, got what ${env:X} holds",
	}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Queen.Token.Reveal() != "404" || c.Dispatch.MaxInFlight != 404 || c.Log.Level != "404" {
		t.Errorf("texts did not arrive: %+v", c)
	}
}

func TestNodeThatCannotBeMade(t *testing.T) {
	t.Parallel()
	var doc bridge.Node
	broken := bridge.Node{Kind: bridge.NodeString, Err: "environment variable X is not set"}
	doc.Set("queen.token", broken)
	doc.Set("queen.urls", bridge.Node{Kind: bridge.NodeList, Items: []bridge.Node{broken}})
	c, problems := bridge.Decode(doc)
	want := []string{"queen.urls[0]: environment variable X is not set", "queen.token: environment variable X is not set"}
	if diff := cmp.Diff(want, texts(c.Check(problems))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bridge.Size{
		"0": 0, "0B": 0, "100": 100, "100B": 100, "1KiB": 1024, "512KiB": 512 << 10, "10MiB": 10 << 20, "1GiB": 1 << 30, "8388607TiB": 8388607 << 40,
	} {
		got, err := bridge.ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%s) = %d, %v, want %d", text, got, err, want)
		}
		if back, err := bridge.ParseSize(got.String()); err != nil || back != want {
			t.Errorf("ParseSize(%s) = %d, %v, want %d", got, back, err, want)
		}
	}
	for _, text := range []string{"", "B", "KiB", "10MB", "10 MiB", "1.5MiB", "-1", "+1", "10mib", "8388608TiB", "99999999999999999999", "0x10"} {
		if got, err := bridge.ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestNodePaths(t *testing.T) {
	t.Parallel()
	doc := document(t, `{"a": {"b.c": {"d": 1}, "b": {"c": 2}}, "l": [[5], {"x": 6}]}`)
	for path, want := range map[string]string{"a.b.c.d": "1", "a.b.x": "", "l[0][0]": "5", "l[1].x": "6", "l[2]": "", "l[-1]": "", "l[x]": "", "zz": ""} {
		got, found := doc.At(path)
		if found != (want != "") || found && got.Text != want {
			t.Errorf("At(%s) = %q, %v, want %q", path, got.Text, found, want)
		}
	}
	doc.Set("a.new.deep", bridge.Node{Kind: bridge.NodeNumber, Text: "9"})
	doc.Remove("l")
	doc.Remove("a.b.c.none")
	if got, _ := doc.At("a.new.deep"); got.Text != "9" || len(doc.Members) != 1 {
		t.Errorf("after Set and Remove: %+v", doc)
	}
	var paths []string
	doc = document(t, `{"a": [{"b": 1}], "c": null}`)
	doc.Walk("", func(path string, _ *bridge.Node) { paths = append(paths, path) })
	if diff := cmp.Diff([]string{"", "a", "a[0]", "a[0].b", "c"}, paths); diff != "" {
		t.Errorf("Walk (-want +got):\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(wholeDocument)
	f.Add(`{"sources": [{"name": 5, "secrets": {"a": []}, "rate": null}], "x": {"x": "x"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var doc bridge.Node
		doc.Set("sources", bridge.Node{Kind: bridge.NodeList, Items: []bridge.Node{{Kind: bridge.NodeMap}}})
		for line := range strings.Lines(text) {
			path, value, _ := strings.Cut(line, "=")
			kind := bridge.NodeKind(len(value) % 7)
			doc.Set(path, bridge.Node{Kind: kind, Text: value})
		}
		c, problems := bridge.Decode(doc)
		for _, p := range c.Check(problems) {
			if p.Text == "" {
				t.Errorf("a problem without text at %q", p.Path)
			}
		}
		c.Effective()
	})
}
