package signing_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

func jsonValues(body string) *signing.Values {
	return signing.NewValues(&signing.Request{Method: http.MethodPost, Body: []byte(body)})
}

// absent marks a lookup that must find nothing.
const absent = "\x00absent"

func checkValue(t *testing.T, what string, got string, ok bool, want string) {
	t.Helper()
	if !ok {
		got = absent
	}
	if got != want {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func TestJSONValues(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)
	tests := []struct{ name, body, path, want string }{
		{"string", `{"id":"evt_1"}`, "id", "evt_1"},
		{"escapes", `{"id":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\udca9"}`, "id", "a\"\\/\b\f\n\r\té💩"},
		{"NUL", `{"id":"a\u0000b"}`, "id", "a\x00b"},
		{"number text", `{"id":9007199254740993}`, "id", "9007199254740993"},
		{"number with exponent", `{"id":1.50e3}`, "id", "1.50e3"},
		{"true", `{"id":true}`, "id", "true"},
		{"false", `{"id":false}`, "id", "false"},
		{"null", `{"id":null}`, "id", absent},
		{"empty", `{"id":""}`, "id", absent},
		{"object", `{"id":{}}`, "id", absent},
		{"array", `{"id":[1]}`, "id", absent},
		{"other case", `{"ID":"a"}`, "id", absent},
		{"nested", `{"data":{"object":{"id":"x"}}}`, "data.object.id", "x"},
		{"index", `{"items":[{"id":"a"},{"id":"b"}]}`, "items.1.id", "b"},
		{"index beyond", `{"items":[1]}`, "items.1", absent},
		{"index with zero in front", `{"items":[1,2]}`, "items.01", absent},
		{"digit key of an object", `{"items":{"1":"x"}}`, "items.1", "x"},
		{"key of an array", `{"items":[1]}`, "items.id", absent},
		{"through a scalar", `{"a":"b"}`, "a.b", absent},
		{"dot in a key", `{"a.b":{"c":"x"},"a":{"b":"y"}}`, `a\.b.c`, "x"},
		{"at sign and dot", `{"r":{"@odata.etag":"W"}}`, `r.@odata\.etag`, "W"},
		{"escaped key", `{"\u0069d":"x"}`, "id", "x"},
		{"duplicate key, other value", `{"id":"a","id":"b"}`, "id", absent},
		{"duplicate key, same value", `{"id":"a","id":"\u0061"}`, "id", "a"},
		{"duplicate key, string and number", `{"id":"1","id":1}`, "id", absent},
		{"duplicate key, other spelling of a number", `{"id":1,"id":1.0}`, "id", absent},
		{"duplicate key, null after", `{"id":"a","id":null}`, "id", absent},
		{"duplicate escaped key", `{"id":"a","\u0069d":"b"}`, "id", absent},
		{"duplicate on the way", `{"d":{"id":"a"},"d":{"id":"a","x":1}}`, "d.id", absent},
		{"same duplicate on the way", `{"d":{"id":"a"},"d":{ "id" : "a" }}`, "d.id", "a"},
		{"duplicate elsewhere", `{"x":1,"x":2,"id":"a"}`, "id", "a"},
		{"byte order mark", "\ufeff" + `{"id":"a"}`, "id", "a"},
		{"white space", " \t\r\n{ \"id\" :\n\"a\" } \n", "id", "a"},
		{"two documents", `{"id":"a"}{"id":"a"}`, "id", absent},
		{"trailing comma", `{"id":"a",}`, "id", absent},
		{"trailing garbage", `{"id":"a"} x`, "id", absent},
		{"cut", `{"id":"a"`, "id", absent},
		{"no body", ``, "id", absent},
		{"lone surrogate", `{"id":"a\ud83d"}`, "id", absent},
		{"lone low surrogate", `{"id":"\udca9a"}`, "id", absent},
		{"lone surrogate elsewhere", `{"id":"a","s":"\ud83d"}`, "id", "a"},
		{"not UTF-8", "{\"id\":\"a\",\"s\":\"\xff\"}", "id", absent},
		{"raw control character", "{\"id\":\"a\nb\"}", "id", absent},
		{"NaN", `{"id":NaN}`, "id", absent},
		{"document", `"x"`, "@this", "x"},
		{"whole object", `{"id":1}`, "@this", absent},
		{"deep document", `{"id":"a","d":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, "id", "a"},
		{"64 steps", deep, strings.TrimSuffix(strings.Repeat("a.", 64), "."), "1"},
		{"65 steps", `{"a":` + deep + `}`, strings.TrimSuffix(strings.Repeat("a.", 65), "."), absent},
		{"empty key", `{"":{"a":"x"}}`, ".a", "x"},
		{"many members", "{" + strings.Repeat(`"k":1,`, 500) + `"id":"last"}`, "id", "last"},
		{"many elements", "[" + strings.Repeat(`1,`, 500) + `"last"]`, "500", "last"},
	}
	for _, tt := range tests {
		got, ok := jsonValues(tt.body).JSON(tt.path)
		checkValue(t, tt.name, got, ok, tt.want)
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	v := jsonValues(`{"events": [ {"id":"a", "n":1.0} ,{"id":"b"}, 7 ], "none": [], "no": {}}`)
	items, ok := v.Items("events")
	if !ok || len(items) != 3 {
		t.Fatalf("Items = %d, %t, want 3", len(items), ok)
	}
	if got := string(items[0].Raw()); got != `{"id":"a", "n":1.0}` {
		t.Errorf("Raw = %q, want the text as it stands", got)
	}
	got, ok := items[1].JSON("id")
	checkValue(t, "item id", got, ok, "b")
	got, ok = items[2].JSON("@this")
	checkValue(t, "item itself", got, ok, "7")
	got, ok = items[2].JSON("id")
	checkValue(t, "id of a number", got, ok, absent)
	if items, ok := v.Items("none"); !ok || len(items) != 0 {
		t.Errorf("Items(empty array) = %d, %t, want 0, true", len(items), ok)
	}
	for _, path := range []string{"no", "missing", "@this"} {
		if _, ok := v.Items(path); ok {
			t.Errorf("Items(%s) = true, want false", path)
		}
	}
	if items, ok := jsonValues(" [1,2] ").Items("@this"); !ok || len(items) != 2 {
		t.Errorf("Items(@this) = %d, %t, want 2", len(items), ok)
	}
}

func TestFormValues(t *testing.T) {
	t.Parallel()
	r := &signing.Request{
		Method: http.MethodPost, RawQuery: "q=1&a=query&bad=%zz&e=&l=%E9",
		Header: http.Header{"Content-Type": {"Application/X-WWW-Form-urlencoded ; charset=UTF-8"}},
		Body:   []byte(`a=x+y&b=1&b=1&c=1&c=2&e=&payload={"id":"p","type":"t"}`),
	}
	v := signing.NewValues(r)
	for name, want := range map[string]string{"a": "x y", "b": "1", "c": absent, "e": absent, "q": absent} {
		got, ok := v.Form(name)
		checkValue(t, "Form("+name+")", got, ok, want)
	}
	for name, want := range map[string]string{"q": "1", "a": "query", "bad": absent, "e": absent, "l": "é", "b": absent} {
		got, ok := v.Query(name)
		checkValue(t, "Query("+name+")", got, ok, want)
	}
	got, ok := v.JSON("id")
	checkValue(t, "JSON(id) of the field payload", got, ok, "p")

	r.Header = http.Header{}
	got, ok = signing.NewValues(r).Form("a")
	checkValue(t, "Form without its content type", got, ok, absent)

	r.Body = nil
	got, ok = signing.NewValues(r).Form("a")
	checkValue(t, "Form without a body reads the query", got, ok, "query")

	r.Header.Set("Content-Type", form)
	for _, body := range []string{"a=1;b=2", "a=1&c=%zz", "a=1" + strings.Repeat("&a=1", 10_000)} {
		r.Body = []byte(body)
		got, ok = signing.NewValues(r).Form("a")
		checkValue(t, "Form of a body that does not parse", got, ok, absent)
	}
	r.Body = []byte(`{"id":"x"}`)
	got, ok = signing.NewValues(r).JSON("id")
	checkValue(t, "JSON in spite of its content type", got, ok, "x")
}

func TestHeaderValues(t *testing.T) {
	t.Parallel()
	v := signing.NewValues(&signing.Request{Header: http.Header{
		"X-One": {" a "}, "X-Same": {"a", "a"}, "X-Two": {"a", "b"}, "X-Empty": {""}, "X-Latin": {"caf\xe9"}, "X-Utf8": {"café"},
	}})
	for name, want := range map[string]string{"x-one": "a", "X-SAME": "a", "X-Two": absent, "X-Empty": absent, "X-None": absent, "X-Latin": "café", "X-Utf8": "café"} {
		got, ok := v.Header(name)
		checkValue(t, "Header("+name+")", got, ok, want)
	}
}

// TestFamilies: one request uses one family of header names, for its
// signature and for its ids.
func TestFamilies(t *testing.T) {
	t.Parallel()
	vectors := map[string]*published{}
	for i := range derivedVectors {
		vectors[derivedVectors[i].name] = &derivedVectors[i]
	}
	tests := []struct {
		vector string
		add    []string // further headers
		header string
		want   string
		reason signing.Reason
	}{
		{vector: "svix", header: "svix-id", want: "msg_test_0001"},
		{vector: "svix, the other trio", header: "svix-id", want: "msg_test_0001"},
		{vector: "svix, the other trio", add: []string{"svix-id", "fresh"}, header: "svix-id", want: "msg_test_0001"},
		{vector: "svix", add: []string{"webhook-id", "fresh"}, header: "svix-id", want: "msg_test_0001"},
		{vector: "svix, the other trio", add: []string{"svix-id", "fresh", "svix-timestamp", "1700000000", "svix-signature", "v1,xx"}, reason: malSig},
		{vector: "svix", add: []string{"svix-timestamp", "", "webhook-timestamp", "1700000000"}, reason: noTime},
		{vector: "svix", add: []string{"svix-id", "", "webhook-id", "msg_test_0001"}, reason: signing.ReasonMissingPart},
		{vector: "shopify", add: []string{"X-Shopify-Webhook-Id", "a", "Shopify-Webhook-Id", "b"}, header: "X-Shopify-Webhook-Id", want: "a"},
		{vector: "shopify", add: []string{"Shopify-Webhook-Id", "b"}, header: "X-Shopify-Webhook-Id", want: absent},
		{vector: "shopify events", add: []string{"X-Shopify-Webhook-Id", "a", "Shopify-Webhook-Id", "b"}, header: "X-Shopify-Webhook-Id", want: "b"},
	}
	for _, tt := range tests {
		p := *vectors[tt.vector]
		p.secret, p.body, p.now = orText(p.secret, derivedSecret), derivedBody, derivedNow
		p.headers = append(p.headers[:len(p.headers):len(p.headers)], tt.add...)
		v, r := p.verifier(t), p.request()
		_, err := v.Verify(r)
		if rejection, _ := errors.AsType[*signing.Rejection](err); tt.reason != "" {
			if rejection == nil || rejection.Reason != tt.reason {
				t.Errorf("Verify(%s + %q) = %v, want %s", tt.vector, tt.add, err, tt.reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("Verify(%s + %q) = %v", tt.vector, tt.add, err)
		}
		got, ok := v.Values(r).Header(tt.header)
		checkValue(t, tt.vector+": "+tt.header, got, ok, tt.want)
	}
}

func orText(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
