package ingress

import (
	"net/http"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

// factsOf are the facts of a request with these headers, query and body.
func factsOf(query, body string, headers ...string) *facts {
	r := &signing.Request{Method: "POST", Header: http.Header{}, RawQuery: query, Body: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return &facts{values: signing.NewValues(r), body: r.Body}
}

func TestExpressionsOfThePresets(t *testing.T) {
	t.Parallel()
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, tc := range []struct {
		name, expression string
		facts            *facts
		want             string
		ok               bool
	}{
		{"header", "h:X-Id", factsOf("", "", "x-id", "  7 "), "7", true},
		{"header absent", "h:X-Id", factsOf("", ""), "", false},
		{"header twice the same", "h:X-Id", factsOf("", "", "X-Id", "a", "X-Id", "a"), "a", true},
		{"header twice different", "h:X-Id", factsOf("", "", "X-Id", "a", "X-Id", "b"), "", false},
		{"body", "b:a.b.0.c", factsOf("", `{"a":{"b":[{"c":"x"}]}}`), "x", true},
		{"number as written", "b:n", factsOf("", `{"n":9007199254740993}`), "9007199254740993", true},
		{"exponent as written", "b:n", factsOf("", `{"n":1.50e3}`), "1.50e3", true},
		{"boolean", "b:n", factsOf("", `{"n":true}`), "true", true},
		{"null", "b:n", factsOf("", `{"n":null}`), "", false},
		{"empty", "b:n", factsOf("", `{"n":""}`), "", false},
		{"other case", "b:n", factsOf("", `{"N":1}`), "", false},
		{"twice different", "b:n", factsOf("", `{"n":1,"n":2}`), "", false},
		{"two documents", "b:n", factsOf("", `{"n":1} {}`), "", false},
		{"dot in a key", `b:a\.b`, factsOf("", `{"a.b":"x"}`), "x", true},
		{"form", "f:a", factsOf("", "a=1+2", form...), "1 2", true},
		{"form of another type", "f:a", factsOf("", "a=1"), "", false},
		{"form of a GET", "f:a", factsOf("a=q", ""), "q", true},
		{"json in a form", "b:n", factsOf("", "payload=%7B%22n%22%3A5%7D", form...), "5", true},
		{"query", "q:a", factsOf("a=1", ""), "1", true},
		{"constant", "=notification", factsOf("", ""), "notification", true},
		{"alternatives", "h:X-Id | b:id", factsOf("", `{"id":"b"}`), "b", true},
		{"composite", "c(b:account,b:id)", factsOf("", `{"account":"acct_1","id":"evt_9"}`), "6:acct_1,5:evt_9", true},
		{"composite lacks a part", "c(b:account,b:id) | b:id", factsOf("", `{"id":"evt_9"}`), "evt_9", true},
		{"composite lacks an optional part", "c(b:a?,b:b)", factsOf("", `{"b":"x"}`), "0:,1:x", true},
		{"composite counts bytes", "c(b:b)", factsOf("", `{"b":"é"}`), "2:é", true},
		{"composite with a hash", "c(=a,sha(body))", factsOf("", "x"), "1:a,64:" + hexSHA256([]byte("x")), true},
		{"joined", "j(h:A,b:b)", factsOf("", `{"b":"y"}`, "A", "x"), "x.y", true},
		{"joined, one absent", "j(h:A,b:b)", factsOf("", `{"b":"y"}`), "y", true},
		{"joined, none", "j(h:A,b:b)", factsOf("", `{}`), "", false},
		{"hash of the body", "sha(body)", factsOf("", "x"), hexSHA256([]byte("x")), true},
		{"hash of no body", "sha(body)", factsOf("", ""), "", false},
		{"hash of a field", "sha(f:a)", factsOf("", "a=%41", form...), hexSHA256([]byte("A")), true},
		{"item without a batch", "i:id", factsOf("", `{"id":"x"}`), "x", true},
	} {
		e, err := parseExpression(tc.expression)
		if err != nil {
			t.Errorf("%s: parse: %v", tc.name, err)
			continue
		}
		if got, _, ok := e.value(tc.facts); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %s = %q, %v; want %q, %v", tc.name, tc.expression, got, ok, tc.want, tc.ok)
		}
	}
}

func TestEveryPresetsExpressionsCompile(t *testing.T) {
	t.Parallel()
	for _, p := range signing.Presets() {
		for _, text := range []string{p.TransactionID, p.EventType} {
			if _, err := parseExpression(text); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	// Those of presets.md that no built scheme has yet.
	for _, text := range []string{
		`c(i:subscriptionId,i:id) | c(i:subscriptionId,i:resource,i:changeType,i:resourceData.@odata\.etag?) | sha(item)`,
		"b:id | sha(body)", "c(b:item_id,b:webhook_type,b:webhook_code,sha(body))", "sha(f:bt_payload)", "b:status | =inbound",
	} {
		if _, err := parseExpression(text); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"x:a", "h:", "c(h:a", "c()", "sha(x)", "sha(f:)", "h:a |", "z(h:a)", "|"} {
		if _, err := parseExpression(bad); err == nil {
			t.Errorf("parseExpression(%q) = nil, want an error", bad)
		}
	}
}

func TestSourceForms(t *testing.T) {
	t.Parallel()
	f := factsOf("q=3", `{"a":{"b":"1"}}`, "X-Id", "2")
	for form, want := range map[string]string{"body:a.b": "1", "header:x-id": "2", "query:q": "3", "literal:a:b c": "a:b c"} {
		e, err := parseSourceForm(form, true)
		if err != nil {
			t.Errorf("parseSourceForm(%q): %v", form, err)
			continue
		}
		if got, _, _ := e.value(f); got != want {
			t.Errorf("%s = %q, want %q", form, got, want)
		}
	}
	for _, bad := range []string{"body:", "body", "Header:x", "x", ":x", "literal:", "b:x"} {
		if _, err := parseSourceForm(bad, true); err == nil {
			t.Errorf("parseSourceForm(%q) = nil, want an error", bad)
		}
	}
	if _, err := parseSourceForm("literal:x", false); err == nil {
		t.Error("a literal transaction id was accepted: every event would be a duplicate")
	}
}

func TestTransactionIDs(t *testing.T) {
	t.Parallel()
	rule := func(expression string) idRule {
		e, err := parseExpression(expression)
		if err != nil {
			t.Fatal(err)
		}
		return idRule{scheme: "sch", expression: e}
	}
	long := strings.Repeat("x", 300)
	fits := strings.Repeat("x", 196)
	hash := func(s string) string { return "sch:sha256:" + hexSHA256([]byte(s)) }
	batch := factsOf("", `[{"id":"1"},{ "x" : 1 }]`)
	items, _ := batch.values.(*signing.Values).Items("@this")
	item := func(i int) *facts {
		return &facts{values: batch.values, body: batch.body, item: &items[i], raw: items[i].Raw()}
	}
	for _, tc := range []struct {
		name, expression string
		facts            *facts
		want             string
		missing          bool
	}{
		{"id", "h:X-Id", factsOf("", "b", "X-Id", "a"), "sch:a", false},
		{"200 bytes", "h:X-Id", factsOf("", "b", "X-Id", fits), "sch:" + fits, false},
		{"201 bytes", "h:X-Id", factsOf("", "b", "X-Id", fits+"x"), hash(fits + "x"), false},
		{"300 characters", "h:X-Id", factsOf("", "b", "X-Id", long), hash(long), false},
		{"space", "h:X-Id", factsOf("", "b", "X-Id", "a b"), hash("a b"), false},
		{"accent", "b:id", factsOf("", `{"id":"é"}`), hash("é"), false},
		{"control character", "b:id", factsOf("", `{"id":"a\u0000"}`), hash("a\x00"), false},
		{"hash alternative", "h:X-Id | sha(body)", factsOf("", "b"), hash("b"), false},
		{"absent", "h:X-Id", factsOf("", "b"), hash("b"), true},
		{"no expression", "", factsOf("", "b"), hash("b"), false},
		{"of an item", "i:id", item(0), "sch:1", false},
		{"absent in an item", "i:id", item(1), hash(`{ "x" : 1 }`), true},
		{"hash of an item", "i:id | sha(item)", item(1), hash(`{ "x" : 1 }`), false},
		{"one for the whole batch", "=same", item(0), "sch:same," + hexSHA256([]byte(`{"id":"1"}`)), false},
		{"composite with an item", "c(=a,i:id)", item(0), "sch:1:a,1:1", false},
	} {
		r := rule(tc.expression)
		if got, missing := r.id(tc.facts); got != tc.want || missing != tc.missing {
			t.Errorf("%s: id = %q, missing %v; want %q, %v", tc.name, got, missing, tc.want, tc.missing)
		}
	}
	r := rule("h:X-Id")
	a, _ := r.id(factsOf("", ""))
	b, _ := r.id(factsOf("", ""))
	if a == b || !strings.HasPrefix(a, "sch:uuid:") {
		t.Errorf("no id and no body: %q, %q; want two random ids", a, b)
	}
}

func FuzzExpressionNeverPanics(f *testing.F) {
	for _, p := range signing.Presets() {
		f.Add(p.TransactionID, `{"id":1}`)
	}
	f.Add("c(h:a?,j(b:x),sha(item)) | =t", "[1]")
	f.Fuzz(func(_ *testing.T, expression, body string) {
		e, err := parseExpression(expression)
		if err != nil {
			return
		}
		r := idRule{scheme: "s", expression: e}
		id, _ := r.id(factsOf("a=b", body, "X-Id", "1"))
		if len(id) > maxID || !between(id, 0x21, 0x7e) || !strings.HasPrefix(id, "s:") {
			panic("transaction id " + id)
		}
	})
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	good := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for value, want := range map[string]string{
		good: good, strings.ToUpper(good): "", good + "-x": "", "": "", strings.Replace(good, "-", "_", 1): "",
		strings.Replace(good, "4", "-", 1): "",
	} {
		if got := traceparent(http.Header{"Traceparent": {value}}); got != want {
			t.Errorf("traceparent(%q) = %q, want %q", value, got, want)
		}
	}
	if got := traceparent(http.Header{"Traceparent": {good, good}}); got != "" {
		t.Errorf("two traceparents = %q, want none", got)
	}
}

func FuzzRedactChangesOnlyCredentials(f *testing.F) {
	f.Add("a=1&token=x;b=%zz&&=")
	f.Fuzz(func(t *testing.T, raw string) {
		got := newQueryRedactor(nil).redact(raw)
		split := func(s string) []string {
			return strings.FieldsFunc(s, func(r rune) bool { return r == '&' || r == ';' })
		}
		a, b := split(raw), split(got)
		if len(a) != len(b) {
			t.Fatalf("redact(%q) = %q: other number of parts", raw, got)
		}
		for i := range a {
			name, _, _ := strings.Cut(a[i], "=")
			if b[i] != a[i] && b[i] != name+"="+redactedValue {
				t.Errorf("redact(%q) = %q", raw, got)
			}
		}
	})
}

func TestKnownHeaderNamesAreBounded(t *testing.T) {
	t.Parallel()
	f := newHeaderFilter(nil, nil, nil)
	for i := range 3 * maxKnownNames {
		h := http.Header{"X-" + strings.Repeat("a", i): {"v"}}
		if got := f.appendTo(nil, h); len(got) != 1 {
			t.Fatalf("header %d: %d headers, want 1", i, len(got))
		}
	}
	if n := len(*f.known.Load()); n > maxKnownNames {
		t.Errorf("%d names are remembered, want at most %d", n, maxKnownNames)
	}
}
