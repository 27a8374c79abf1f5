package signing

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzGrammar parses any header value in every format.
func FuzzGrammar(f *testing.F) {
	for _, seed := range []string{"t=1,v1=aa", "v1,aa v1a,bb", "sha256=aa", "1,aa,bb", "t=1, v1=a b;v0=c", ",,==  ,", "t=1 t=2"} {
		f.Add(seed, ",", "v1", "t")
	}
	f.Fuzz(func(t *testing.T, value, delimiter, tag, stampKey string) {
		if delimiter == "" {
			return
		}
		for _, name := range formats {
			g := grammar{format: format(name), delimiter: delimiter, prefix: tag, stampKey: stampKey}
			var found candidates
			rej := g.parse(value, func(s string) bool { return s == tag }, &found)
			if rej != nil && rej.Reason != ReasonTooManySignatures && rej.Reason != ReasonMalformedTimestamp {
				t.Errorf("parse(%s, %q) = %v", name, value, rej)
			}
			for _, c := range found.all() {
				if c.text == "" || !strings.Contains(value, c.text) {
					t.Errorf("parse(%s, %q): candidate %q", name, value, c.text)
				}
			}
		}
	})
}

// What write makes, parse reads.
func TestGrammarRoundTrip(t *testing.T) {
	t.Parallel()
	for _, name := range formats {
		g := grammar{format: format(name), delimiter: ",", stampKey: "t"}
		tag := "v1"
		if name == "plain" || name == "list" || name == "positional" {
			tag = ""
		}
		var found candidates
		value := g.write(tag, "17", "c2ln")
		rej := g.parse(value, func(s string) bool { return s == tag }, &found)
		if rej != nil || !slices.Equal(found.all(), []candidate{{tag: tag, text: "c2ln"}}) {
			t.Errorf("parse(%s, %q) = %v, %v", name, value, found.all(), rej)
		}
		if stamped := name == "pairs" || name == "groups" || name == "positional"; stamped && found.stamp != "17" {
			t.Errorf("parse(%s, %q): timestamp %q, want 17", name, value, found.stamp)
		}
	}
}

// render writes a template back.
func (t template) render() string {
	var b strings.Builder
	escape := strings.NewReplacer("{", "{{", "}", "}}", "[", "[[", "]", "]]")
	for _, s := range t {
		if s.optional {
			b.WriteByte('[')
		}
		for _, p := range s.parts {
			text := p.String()
			switch {
			case p.kind == partLiteral:
				text = escape.Replace(p.text)
			case p.lower:
				text = strings.TrimSuffix(text, "}") + "|lower}"
			}
			b.WriteString(text)
		}
		if s.optional {
			b.WriteByte(']')
		}
	}
	return b.String()
}

// FuzzTemplate: a template that parses means what its rendering means.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{body}", "{timestamp}.{body}", "[id:{query:data.id|lower};]ts:{timestamp};", "{{}}[[]]{json:a\\.b}", "{method}\n{path}", "[{header:X-A}]]]", "{a", "}", "[["} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseTemplate(text)
		if err != nil {
			return
		}
		again, err := parseTemplate(first.render())
		if err != nil {
			t.Fatalf("parseTemplate(%q) of %q: %v", first.render(), text, err)
		}
		if first.render() != again.render() {
			t.Errorf("%q: %q became %q", text, first.render(), again.render())
		}
		r := &Request{Method: "POST", Body: []byte(text)}
		if _, rej := first.resolve(&input{request: r}, nil); rej != nil && rej.Reason != ReasonMissingPart {
			t.Errorf("resolve(%q) = %v", text, rej)
		}
	})
}

// FuzzForm compares the form parser with net/url.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{"a=1&b=2", "a=%41+b&a=", "=x&&y", "a=1;b=2", "a=%zz", "%", "a=%C3%A9&a=%E9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := url.Values{}
		fields, err := parseForm([]byte(text))
		for _, field := range fields {
			got.Add(field.name, field.value)
		}
		want, wantErr := url.ParseQuery(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("parseForm(%q) = %v, want %v", text, err, wantErr)
		}
		if err == nil && !cmp.Equal(got, want) {
			t.Errorf("parseForm(%q) = %v, want %v", text, got, want)
		}
		if sorted, err := sortedForm([]byte(text)); err == nil && len(sorted) > len(text) {
			t.Errorf("sortedForm(%q) is longer than the form", text)
		}
	})
}

// TestJSONCutInAnEscape: a text that ends behind a backslash is malformed like
// any other that is cut, wherever the end falls in its memory.
func TestJSONCutInAnEscape(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`["t\`, `"t\`, `{"a":"\`, `{"\`, `[["\`, `["t\u`, `["t\u0`, `[1,"\`} {
		if _, ok := parseDocument(slices.Clip([]byte(text))); ok {
			t.Errorf("parseDocument(%s) takes it", text)
		}
	}
}

// FuzzJSON compares the walker with encoding/json: what it accepts, and the
// text of every outermost value.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":{"c":[1,2,{"d":null}]}}`, `[1,"x",true,[],{}]`, ` "s" `, "\ufeff{}", `{"a":"\ud83d\ude00\u00e9\n"}`, `{"a":"\ud83d"}`,
		`{"a":1}{}`, `[1,]`, `{"a":01}`, "{\"a\":\"\x01\"}", "\"\xff\"", `{"a":1e5,"b":-0.5E+10,"a":1e5}`, `{"\u0061":1,"a":2}`, `tru`, `-`, `["t\`, `[[[[[]]]]]`, `{"a.b":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, ok := parseDocument(text)
		plain := bytes.TrimPrefix(text, byteOrderMark)
		if want := json.Valid(plain) && utf8.Valid(plain); ok != want && len(plain) < 5000 {
			t.Fatalf("parseDocument(%q) = %t, want %t", text, ok, want)
		}
		if !ok {
			return
		}
		var members map[string]json.RawMessage
		if doc.raw[0] == '{' && json.Unmarshal(plain, &members) == nil {
			for key, raw := range members {
				checkMember(t, doc, key, raw)
			}
		}
		values := NewValues(&Request{Body: text})
		for _, path := range []string{"a", "b.c.2.d", "0", wholeDocument, `a\.b`} {
			if text, ok := values.JSON(path); ok && !utf8.ValidString(text) {
				t.Errorf("JSON(%q) of %q is not UTF-8", path, plain)
			}
		}
	})
}

// checkMember: a member found is the last of its name for encoding/json; it
// may be absent where the name stands twice or has no text.
func checkMember(t *testing.T, doc document, key string, raw json.RawMessage) {
	t.Helper()
	if key == wholeDocument || key == "" || strings.ContainsRune(key, utf8.RuneError) {
		return
	}
	got, ok := doc.at(strings.ReplaceAll(key, ".", `\.`))
	if ok && !equalValues(got, raw) {
		t.Errorf("%q: value of %q = %q, want %q", doc.raw, key, got, raw)
	}
	if !ok && bytes.Count(doc.raw, []byte(":")) == 1 && !strings.Contains(key, `\`) {
		t.Errorf("%q: no value of %q", doc.raw, key)
	}
	if ok && got[0] == '"' {
		var want string
		text, valid := decodeString(got)
		if json.Unmarshal(got, &want) == nil && valid && text != want {
			t.Errorf("decodeString(%q) = %q, want %q", got, text, want)
		}
	}
}

func TestPathErrors(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"a": true, "@this": true, "": false, strings.Repeat("a.", 63) + "a": true, strings.Repeat("a.", 64) + "a": false} {
		if _, err := parsePath(path); (err == nil) != want {
			t.Errorf("parsePath(%q) = %v, want ok %t", path, err, want)
		}
	}
}
