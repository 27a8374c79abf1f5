package filter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// slow is longer than anything may take, on a busy machine with the race
// detector.
const slow = 20 * time.Second

// FuzzCompile proves that no text makes the compiler panic or hang, that what
// it says of one is a line, and that what compiles can be evaluated.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`event.type == "push"`, `event.body.a.?b[0].orValue(1) > 2u`, `has(event.body.x) && event.headers["a"] in ["b", 'c']`,
		`[1, 2].map(x, x * 2).exists(y, y == event.body)`, `{"a": b"\x00", 1: null}.a == event.query`, `event.tpye`, `event`, `.event.body`,
		`event.time - timestamp("2026-01-01T00:00:00Z") > duration("1h")`, `event.type.matches("(a+)+$")`, `((((((((`, `"""`, `r"\"`, `a.b.c(d)[e]{f: g}`,
		`1 ? 2 : 3`, `-9223372036854775808`, `event.body.event.all(event, event)`, `google.protobuf.Struct{}`, `optional.none().or(event.body)`, `[?event.body.?a]`,
		strings.Repeat("-", 500) + "1", strings.Repeat("!", 500) + "true", strings.Repeat("[", 300), strings.Repeat("a.", 300) + "b",
		"event.type == 'ö' &&\n\t event.tpye", "//", "event\x00", "`a`", strings.Repeat("[1].all(x, ", 30) + "true" + strings.Repeat(")", 30),
	} {
		f.Add(seed, `{"a":{"b":[1,"2",null]},"x":1e400}`)
	}
	f.Fuzz(func(t *testing.T, expression, body string) {
		begun := time.Now()
		compiled, err := filter.Compile(expression)
		if err != nil {
			if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") || len(text) > 4000 {
				t.Errorf("Compile(%q): %q is no line", expression, text)
			}
		} else if match, err := compiled.Match(t.Context(), push(body)); err != nil && match {
			t.Errorf("Match(%q, %q) = true, %v", expression, body, err)
		}
		if took := time.Since(begun); took > slow {
			t.Errorf("Compile(%q) and Match take %v", expression, took)
		}
	})
}

// FuzzMatch proves that no body makes an evaluation panic or hang, that a body
// is JSON exactly where encoding/json says so, whatever part of it is read, and
// that no error tells anything of it.
func FuzzMatch(f *testing.F) {
	for _, seed := range []string{
		pushBody, ``, `null`, ` [1,{"a":[]}] `, `{"a":1,"a":{"b":2}}`, `{"a":{"b":1}}x`, `{"a":"\ud800"}`, "\xff", `-`, `1e400`, `-0`, `18446744073709551616`,
		strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300), `{"a":{"b":"x"},"c":[1,2,3],"s":"unguessable"}`,
	} {
		f.Add([]byte(seed))
	}
	var filters []*filter.Filter
	for _, expression := range []string{
		`type(event.body) != string && type(event.body) != bytes`, // reads all
		`has(event.body.none) || type(event.body) != string && type(event.body) != bytes`,
		`event.body.a.b == 1 || event.body.c[0] == 2`,
		`event.body.s == "x" && event.body.s < 1`,
		`timestamp(event.body.s) < event.time || int(event.body.a) > 1`,
		`event.body.exists(x, x == event.body) || event.headers[event.body.s] == ""`,
		`event.body == event.body && event.type.matches(event.body.s)`,
		`event.body.?a[?"b"].hasValue() ? event.body.a.b : event.body.c`,
	} {
		compiled, err := filter.Compile(expression)
		if err != nil {
			f.Fatal(err)
		}
		filters = append(filters, compiled)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		begun := time.Now()
		for i, compiled := range filters {
			match, err := compiled.Match(t.Context(), push(string(body)))
			if i == 0 && err == nil && match != isJSON(body) {
				t.Errorf("body %q is JSON: %v", body, match)
			}
			if err != nil && strings.Contains(err.Error(), "unguessable") {
				t.Errorf("error tells of the body: %v", err)
			}
		}
		if took := time.Since(begun); took > slow {
			t.Errorf("%d bytes take %v", len(body), took)
		}
	})
}

// isJSON says that a body is JSON and not one string, which is a string either
// way.
func isJSON(body []byte) bool {
	var v any
	err := json.Unmarshal(body, &v)
	_, text := v.(string)
	return json.Valid(body) && (err != nil || !text)
}

// FuzzPattern proves that no pattern makes the compiler panic or hang, that
// what it says of one is a line, and that what compiles matches within bounds:
// a body that is no JSON has no members, and a value that is equal is found.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{
		`{"type":["push"]}`, `{"body":{"a":[1,"x",null,true,{"prefix":"x"},{"suffix":{"equals-ignore-case":"Y"}}]}}`, `{"body":[{"wildcard":"a*b\\*c*"}]}`,
		`{"body":{"a":{"b":[{"anything-but":["x","y"]},{"exists":false}]}}}`, `{"$or":[{"type":["a"]},{"body":{"$or":[{"a":[1]},{"b":[1]}]}}]}`,
		`{"body":{"a":[{"numeric":[">",1e-400,"<=",123456789012345678901234567890]}]}}`, `{"body":{"a":[{"cidr":"10.0.0.0/8"},{"cidr":"::/0"}]}}`, `{"headers":{"X":1},"tpye":[]}`,
		`{"body":{"a":[1e99999999999999999999,-0.0,0e5]}}`, `[]`, `5`, `{"body":[{"anything-but":{"wildcard":["*"]}}]}`,
	} {
		f.Add(seed, []byte(`{"a":{"b":[1,"2",null]},"x":1e400}`))
		f.Add(seed, []byte(`{"a":[1.0,"x","10.1.2.3",{"b":"y"}]}`))
	}
	f.Fuzz(func(t *testing.T, pattern string, body []byte) {
		d := json.NewDecoder(strings.NewReader(pattern))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			t.Skip()
		}
		begun := time.Now()
		p, err := filter.CompilePattern(v)
		if err != nil {
			if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") {
				t.Errorf("CompilePattern(%q): %q is no line", pattern, text)
			}
			return
		}
		if _, err := p.Match(t.Context(), push(string(body))); err != nil && !errors.Is(err, filter.ErrTooCostly) {
			t.Errorf("Match(%q) of %q: %v", pattern, body, err)
		}
		if took := time.Since(begun); took > slow {
			t.Errorf("%q takes %v", pattern, took)
		}
	})
}

// FuzzPatternValue proves that any single JSON value is found by a pattern that
// asks for it, and by none that asks for anything but it.
func FuzzPatternValue(f *testing.F) {
	for _, seed := range []string{`1`, `-0`, `1e400`, `0.10`, `12345678901234567890123`, `"x"`, `"\ud83d\ude00"`, `null`, `true`, `""`, `1E+2`, `1e99999999999999999999`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) || d.Decode(&v) != nil {
			t.Skip()
		}
		matches := func(alternative any) bool {
			p, err := filter.CompilePattern(map[string]any{"body": map[string]any{"a": []any{alternative}}})
			if err != nil {
				t.Skip()
			}
			match, err := p.Match(t.Context(), push(`{"a":[`+text+`]}`))
			if err != nil {
				t.Fatal(err)
			}
			return match
		}
		if !matches(v) {
			t.Errorf("%s is not found", text)
		}
		if matches(map[string]any{"anything-but": v}) {
			t.Errorf("%s is anything but itself", text)
		}
	})
}

// FuzzTransform proves that whatever an expression makes of a body is bounded,
// the same each time, and JSON where it says so, and that no error tells of the
// body.
func FuzzTransform(f *testing.F) {
	for _, seed := range []string{
		`event.body`, `{"a": event.body, "b": [event.time, b"\xff", 1u, 0.5, null]}`, `json.encode(event.body)`, `json.parse(event.body.s).orValue(event.body)`,
		`event.body.l.map(x, string(x)).join(",").replace("1", "22", 3)`, `event.body.s.indexOf("g", 1) + event.body.s.lastIndexOf("g")`, `{?"a": event.body.?s, 1: 2, true: 3}`,
		`cel.bind(x, event.body, [x, x, x])`, `math.greatest(event.body.l)`, `base64.encode(bytes(event.body.s))`, `"a".replace("", event.body.s)`, `event.headers`,
	} {
		f.Add(seed, []byte(`{"s":"unguessable","l":[1,2.50,1e400,12345678901234567890123]}`))
		f.Add(seed, []byte(`[1,{"a":"\ud800"}]`))
		f.Add(seed, []byte("\xff"))
	}
	f.Fuzz(func(t *testing.T, expression string, body []byte) {
		begun := time.Now()
		tr, err := filter.CompileTransform(bridge.Transform{Body: expression, Headers: map[string]string{"x-a": expression}})
		if err != nil {
			tr, err = filter.CompileTransform(bridge.Transform{Body: expression})
		}
		if err != nil {
			if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") {
				t.Errorf("CompileTransform(%q): %q is no line", expression, text)
			}
			return
		}
		e := push(string(body))
		e.ContentType = "text/plain"
		made, err := tr.Apply(t.Context(), e)
		again, errAgain := tr.Apply(t.Context(), e)
		switch {
		case err != nil && !strings.Contains(expression, "unguessable") && strings.Contains(err.Error(), "unguessable"):
			t.Errorf("error tells of the body: %v", err)
		case (err == nil) != (errAgain == nil), err == nil && !bytes.Equal(made.Body, again.Body):
			t.Errorf("Apply(%q) is not the same twice: %v, %v", expression, err, errAgain)
		case err == nil && made.ContentType == "application/json" && !json.Valid(made.Body):
			t.Errorf("Apply(%q) of %q makes %q", expression, body, made.Body)
		case err == nil && len(made.Body) > 10<<20:
			t.Errorf("Apply(%q) makes %d bytes", expression, len(made.Body))
		}
		if took := time.Since(begun); took > slow {
			t.Errorf("%q takes %v", expression, took)
		}
	})
}
