package filter_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// bodyOf is a GitHub push of about a kilobyte, or as many times that as there
// are commits.
func bodyOf(commits int) string {
	commit := `{"id":"b2a4f7c1d9e0b6a1f378c214d9e0b6a1f37a1b2c","message":"fix: the thing that was broken","timestamp":"2026-11-20T08:30:15Z",
		"author":{"name":"Octo Cat","email":"octo@example.com","username":"octo"},"added":["a.go","b.go"],"removed":[],"modified":["README.md"],
		"distinct":true,"url":"https://github.com/octo/hello/commit/b2a4f7c1d9e0b6a1f378c214d9e0b6a1f37a1b2c"}`
	return `{"ref":"refs/heads/main","before":"0000000000000000000000000000000000000000","after":"b2a4f7c1d9e0b6a1f378c214d9e0b6a1f37a1b2c",
		"repository":{"id":123456789,"full_name":"octo/hello","private":false,"owner":{"login":"octo","id":1},"topics":["go","queue"]},
		"pusher":{"name":"octo","email":"octo@example.com"},"forced":false,"commits":[` + strings.TrimSuffix(strings.Repeat(commit+",", commits), ",") + `]}`
}

// BenchmarkMatch is beside a bare decoding of the same body.
func BenchmarkMatch(b *testing.B) {
	for _, size := range []struct {
		name    string
		commits int
	}{{"1KB", 1}, {"25KB", 50}} {
		body := bodyOf(size.commits)
		b.Run(size.name+"/decode=encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				var v any
				if err := json.Unmarshal([]byte(body), &v); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, tt := range []struct{ name, expression string }{
			{"type", `event.type == "push"`},
			{"header", `event.headers["x-github-event"] == "push"`},
			{"member", `event.body.ref == "refs/heads/main"`},
			{"type-and-two-members", `event.type == "push" && event.body.ref == "refs/heads/main" && event.body.repository.full_name.startsWith("octo/")`},
			{"other-type", `event.type == "ping" && event.body.ref == "refs/heads/main"`},
			{"list", `event.body.commits.exists(c, c.message.startsWith("feat:")) || true`},
			{"whole", `event.body != null`},
		} {
			b.Run(size.name+"/filter="+tt.name, func(b *testing.B) {
				f, err := filter.Compile(tt.expression)
				if err != nil {
					b.Fatal(err)
				}
				e := push(body)
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					if _, err := f.Match(b.Context(), e); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPattern is each question as a pattern and as an expression.
func BenchmarkPattern(b *testing.B) {
	for _, tt := range []struct{ name, pattern, expression string }{
		{"type", `{"type":["push"]}`, `event.type == "push"`},
		{"header", `{"headers":{"x-github-event":["push"]}}`, `event.headers["x-github-event"] == "push"`},
		{"member", `{"body":{"ref":["refs/heads/main"]}}`, `event.body.ref == "refs/heads/main"`},
		{"two-members", `{"type":["push"],"body":{"ref":["refs/heads/main"],"repository":{"full_name":[{"prefix":"octo/"}]}}}`,
			`event.type == "push" && event.body.ref == "refs/heads/main" && event.body.repository.full_name.startsWith("octo/")`},
		{"number", `{"body":{"repository":{"id":[{"numeric":[">",100,"<=",123456789]}]}}}`, `event.body.repository.id > 100 && event.body.repository.id <= 123456789`},
		{"list", `{"body":{"commits":{"message":[{"prefix":"fix:"}]}}}`, `event.body.commits.exists(c, c.message.startsWith("fix:"))`},
		{"other-type", `{"type":["ping"],"body":{"ref":["refs/heads/main"]}}`, `event.type == "ping" && event.body.ref == "refs/heads/main"`},
	} {
		pattern, err := filter.CompilePattern(decoded(b, tt.pattern))
		if err != nil {
			b.Fatal(err)
		}
		expression, err := filter.Compile(tt.expression)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []struct {
			name  string
			match func(context.Context, *bridge.Event) (bool, error)
		}{{"pattern", pattern.Match}, {"expression", expression.Match}} {
			b.Run(tt.name+"/as="+way.name, func(b *testing.B) {
				e := push(bodyOf(1))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := way.match(b.Context(), e); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkTransform(b *testing.B) {
	for _, tt := range []struct {
		name      string
		transform bridge.Transform
	}{
		{"nothing", bridge.Transform{}},
		{"header", bridge.Transform{Headers: map[string]string{"x-ref": `event.body.ref`}}},
		{"message", bridge.Transform{Body: `{"text": "New push to " + event.body.repository.full_name, "ref": event.body.ref}`}},
		{"part", bridge.Transform{Body: `event.body.repository`}},
		{"whole", bridge.Transform{Body: `event.body`}},
		{"list", bridge.Transform{Body: `event.body.commits.map(c, {"sha": c.id, "title": c.message})`}},
	} {
		tr, err := filter.CompileTransform(tt.transform)
		if err != nil {
			b.Fatal(err)
		}
		for _, size := range []struct {
			name    string
			commits int
		}{{"1KB", 1}, {"25KB", 50}} {
			b.Run(size.name+"/"+tt.name, func(b *testing.B) {
				e := push(bodyOf(size.commits))
				b.ReportAllocs()
				b.SetBytes(int64(len(e.Body)))
				for b.Loop() {
					if _, err := tr.Apply(b.Context(), e); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := filter.Compile(`event.type == "push" && event.body.ref == "refs/heads/main"`); err != nil {
			b.Fatal(err)
		}
	}
}
