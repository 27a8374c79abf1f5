package bridge_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func parseJSON(t *testing.T, text string) bridge.Node {
	t.Helper()
	n, err := bridge.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("ParseJSON(%s): %v", text, err)
	}
	return n
}

func TestJSONDocumentsKeepTheirTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"b":1.10,"a":12345678901234567890123,"c":1e3,"d":-0}`, `[true,false,null,"",{}]`, `"é \" \\ \u0001 </script>"`, `{"a":{"b":[{"c":null}]}}`,
	} {
		if got := string(parseJSON(t, text).AppendJSON(nil)); got != text {
			t.Errorf("ParseJSON(%s) = %s", text, got)
		}
	}
}

func TestWhatIsNoJSONDocumentIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "{", `{"a":1}x`, `{"a":1}{}`, "{\"a\":\"\xff\"}", `"\ud800"`, `"a\u0000b"`, `{"\u0000":1}`, `{a:1}`, `[1,]`, `NaN`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if n, err := bridge.ParseJSON([]byte(text)); err == nil {
			t.Errorf("ParseJSON(%q) = %+v, want an error", text, n)
		}
	}
}

// FuzzParseJSON: what is read is JSON for others, too, and says the same again.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.50,"x",null,true]}`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `{"a":`, "\xff", `[[[[]]]]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := bridge.ParseJSON(data)
		if err != nil {
			return
		}
		out := n.AppendJSON(nil)
		if !json.Valid(data) || !json.Valid(out) {
			t.Fatalf("ParseJSON(%q) wrote %q", data, out)
		}
		again, err := bridge.ParseJSON(out)
		if err != nil || !slices.Equal(again.AppendJSON(nil), out) || !reflect.DeepEqual(again, n) {
			t.Fatalf("%q, written as %q, is read as %q, %v", data, out, again.AppendJSON(nil), err)
		}
	})
}

// TestNumbersOfYAMLAreNumbersOfJSON: a file's document is shown by the API.
func TestNumbersOfYAMLAreNumbersOfJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"7": "7", "1.10": "1.10", "+7": "7", ".5": "0.5", ".inf": `".inf"`, "007": "7"} {
		got := string(bridge.Node{Kind: bridge.NodeNumber, Text: text}.AppendJSON(nil))
		if got != want {
			t.Errorf("number %s = %s, want %s", text, got, want)
		}
		if _, ok := new(big.Float).SetString(got); !ok && got[0] != '"' {
			t.Errorf("number %s = %s, which is none", text, got)
		}
	}
}

// TestMergePatch holds the examples of RFC 7396, appendix A.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		before, patch := parseJSON(t, tt[0]), parseJSON(t, tt[1])
		if got := string(before.Merged(patch).AppendJSON(nil)); got != tt[2] {
			t.Errorf("%s patched with %s = %s, want %s", tt[0], tt[1], got, tt[2])
		}
		if string(before.AppendJSON(nil)) != tt[0] {
			t.Errorf("%s was changed", tt[0])
		}
	}
}

func TestSameAndDifferences(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want []string
	}{
		{`{"a":1,"b":{"c":"x"}}`, `{"b":{"c":"x"},"a":1,"d":null}`, nil},
		{`{"a":1}`, `{"a":1.0}`, []string{"a"}},
		{`{"a":"1"}`, `{"a":1}`, []string{"a"}},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, []string{"a"}},
		{`{"r":{"x":1,"y":2}}`, `{"r":{"x":1,"z":3},"q":1}`, []string{"r.z", "r.y", "q"}},
		{`{}`, `{"r":{"x":1}}`, []string{"r.x"}},
		{`{}`, `{"r":{}}`, []string{"r"}},
		{`{"a":1}`, `{}`, []string{"a"}},
	} {
		a, b := parseJSON(t, tt.a), parseJSON(t, tt.b)
		if got := a.Differences(b); !slices.Equal(got, tt.want) || a.Same(b) != (tt.want == nil) {
			t.Errorf("%s and %s differ at %q (same: %t), want %q", tt.a, tt.b, got, a.Same(b), tt.want)
		}
	}
}

func TestCredentialsAreFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind bridge.Kind
		doc  string
		want []string
	}{
		{bridge.KindSource, `{"name":"token","secrets":["a","b"],"scheme_options":{"verify_token":"c","header":"X","keys":{"api_key":"d"}}}`,
			[]string{"secrets[0]", "secrets[1]", "scheme_options.verify_token", "scheme_options.keys.api_key"}},
		{bridge.KindTarget, `{"http":{"url":"u","headers":{"Authorization":"a","X-Team":"t"}},"auth":{"username":"u","password":"p","token":"t","value":"v","client_secret":"s","token_url":"x"},"signing":{"secrets":["s"]}}`,
			[]string{"http.headers.Authorization", "auth.password", "auth.token", "auth.value", "auth.client_secret", "signing.secrets[0]"}},
		{bridge.KindRoute, `{"pattern":{"token":["x"]},"transform":{"headers":{"X-Token":"event.id"}}}`, nil},
		{bridge.KindSource, `{"secrets":"no list","scheme_options":7}`, nil},
	} {
		doc := parseJSON(t, tt.doc)
		var got []string
		bridge.VisitCredentials(tt.kind, &doc, func(path string, _ *bridge.Node) { got = append(got, path) })
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.doc, got, tt.want)
		}
		if masked := string(bridge.Masked(tt.kind, doc).AppendJSON(nil)); strings.Count(masked, "***") != len(tt.want) {
			t.Errorf("Masked = %s, want %d hidden", masked, len(tt.want))
		}
	}
	n := bridge.Node{Kind: bridge.NodeMap, Members: []bridge.Member{{Key: "secrets", Value: bridge.Node{Kind: bridge.NodeList, Items: []bridge.Node{
		{Kind: bridge.NodeString, Text: "resolved", Reference: "${env:X}"}, {Kind: bridge.NodeString, Text: "lit${eral"}}}}}}
	if got := string(bridge.Masked(bridge.KindSource, n).AppendJSON(nil)); got != `{"secrets":["${env:X}","***"]}` {
		t.Errorf("Masked = %s", got)
	}
}

// TestSchemaKnowsEveryField: the schema has the fields that Decode reads, no
// more and no fewer.
func TestSchemaKnowsEveryField(t *testing.T) {
	t.Parallel()
	for _, kind := range bridge.Kinds() {
		got := schemaPaths("", bridge.Schema(kind))
		var want []string
		for path := range leaves("", kind.Type()) {
			want = append(want, path)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-types +schema):\n%s", kind, diff)
		}
	}
}

func schemaPaths(path string, schema map[string]any) []string {
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		for _, one := range anyOf(schema) {
			if _, nested := one["properties"]; nested {
				return schemaPaths(path, one)
			}
		}
		return []string{path}
	}
	var all []string
	for name, field := range properties {
		all = append(all, schemaPaths(strings.TrimPrefix(path+"."+name, "."), field.(map[string]any))...)
	}
	return all
}

func anyOf(schema map[string]any) []map[string]any {
	list, _ := schema["anyOf"].([]any)
	var all []map[string]any
	for _, one := range list {
		all = append(all, one.(map[string]any))
	}
	return all
}

func TestAddedResourcesAreChecked(t *testing.T) {
	t.Parallel()
	c := bridge.Defaults()
	path, problems := c.Add(bridge.KindTarget, parseJSON(t, `{"name":"ci","http":{"url":"http://x.example.com","timeout":"soon"},"colour":1}`))
	if path != "targets[0]" || len(c.Targets) != 1 || c.Targets[0].Concurrency != 50 {
		t.Errorf("Add = %s, %+v", path, c.Targets)
	}
	var got []string
	for _, p := range c.Check(problems) {
		rest, ok := bridge.Within(p.Path, path)
		if !ok {
			t.Errorf("problem %s is not of %s", p, path)
		}
		got = append(got, rest)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"colour", "http.timeout"}) {
		t.Errorf("problems = %q", got)
	}
}

func TestRuleKeysFitQueen(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{"a", "a/b", strings.Repeat("日", 255), strings.Repeat("日", 254) + "本"} {
		key := bridge.RuleKey(bridge.Resource{Kind: bridge.KindQueue, Name: name})
		if len(key) > 512 || seen[key] || !strings.HasPrefix(key, bridge.RulePrefix) {
			t.Errorf("RuleKey(%.20s) = %q", name, key)
		}
		seen[key] = true
	}
}
