package filter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

func TestTransformBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ expression, want string }{
		// texts and bytes as they are
		{`"text=" + event.type`, `text=push`},
		{`event.body.ref`, `refs/heads/main`},
		{`b"\x00\xff"`, "\x00\xff"},
		{`event.body.none.orValue("x")`, ``},
		{`event.body.?none.orValue("")`, ``},
		// anything else is JSON
		{`{"text": "New push to " + event.body.repository.full_name, "channel": "#ci"}`, `{"channel":"#ci","text":"New push to octo/hello"}`},
		{`[event.id, event.type, event.source, event.method, event.path]`, `["github:delivery:1","push","github","POST","/in/github"]`},
		{`{"at": event.time, "took": duration("1m30.5s"), "raw": b"\x00\xff", "none": null, "yes": true}`,
			`{"at":"2026-11-20T08:30:15.123456Z","none":null,"raw":"AP8=","took":"90.5s","yes":true}`},
		{`event.headers`, `{"content-type":"application/json","x-github-event":"push","x-tag":"one,two"}`},
		{`{1: "a", true: "b", 2u: "c"}`, `{"1":"a","2":"c","true":"b"}`},
		{`event.body.forced`, `false`},
		{`event.body.nothing`, `null`},
		{`event.body.size + 1`, `4`},
		{`double(event.body.size) / 2.0`, `1.5`},
		{`2.0 * 5e20`, `1e+21`},
		{`"<&>\u2028\u0000"`, "<&>\u2028\x00"},
		{`["<&>\u2028\u0000\n\""]`, `["<&>` + "\u2028" + `\u0000\n\""]`},
		{`{?"a": event.body.?none, ?"b": event.body.?size}`, `{"b":3}`},
		// numbers are exact
		{`{"id": event.body.repository.id, "big": event.body.big, "negative": event.body.negative}`, `{"big":18446744073709551615,"id":9007199254740993,"negative":-9223372036854775808}`},
		{`event.body.numbers`, `[1.10,2.0,1e3,12345678901234567890123,0.1]`},
		{`{"deep": {"all": event.body.numbers}}`, `{"deep":{"all":[1.10,2.0,1e3,12345678901234567890123,0.1]}}`},
		{`event.body.commits.map(c, {"sha": c.id, "title": c.message.split(": ")[1]})`, `[{"sha":"a1","title":"one"},{"sha":"b2","title":"two"}]`},
		{`event.body.numbers.map(n, n * 2.0)[0]`, `2.2`},
		// functions
		{`json.encode(event.body.numbers) + "!"`, `[1.10,2.0,1e3,12345678901234567890123,0.1]!`},
		{`json.parse('{"b":12345678901234567890123,"a":[1.50]}')`, ``},
		{`json.parse('{"b":12345678901234567890123,"a":[1.50]}').orValue({})`, `{"a":[1.50],"b":12345678901234567890123}`},
		{`json.parse("{").orValue("no JSON")`, `no JSON`},
		{`json.parse(event.body.embedded).orValue({}).id`, `7`},
		{`event.body.repository.topics.join(", ") + [].join() + ["a", "b"].join()`, `go, queueab`},
		{`event.body.ref.replace("refs/heads/", "") + "aaa".replace("a", "b", 2) + "x".replace("", "-") + "aaa".replace("a", "b", -1) + "a".replace("a", "b", 0)`, `mainbba-x-bbba`},
		{`[event.body.ref.indexOf("/"), event.body.ref.lastIndexOf("/"), "üü".indexOf("ü", 1), "aaa".indexOf("b"), "aaa".lastIndexOf("a", 1), "üaüa".lastIndexOf("a"), "a".indexOf("", 5), "abc".lastIndexOf("")]`, `[4,10,1,-1,1,3,1,3]`},
		{`[math.greatest(1, 2, 3), math.abs(-2), math.round(2.5)]`, `[3,2,3]`},
		{`base64.encode(bytes(event.type)) + string(base64.decode("aGk="))`, `cHVzaA==hi`},
		{`cel.bind(r, event.body.repository, {"name": r.full_name, "private": r.private})`, `{"name":"octo/hello","private":true}`},
		{`event.type == "push" ? {"a": 1} : {"b": 2}`, `{"a":1}`},
	} {
		body := strings.TrimSuffix(pushBody, "}") + `,"numbers":[1.10,2.0,1e3,12345678901234567890123,0.1],"embedded":"{\"id\":7}"}`
		tr, err := filter.CompileTransform(bridge.Transform{Body: tt.expression})
		if err != nil {
			if tt.want != "" {
				t.Errorf("CompileTransform(%s): %v", tt.expression, err)
			}
			continue
		}
		got, err := tr.Apply(t.Context(), push(body))
		if tt.want == "" && (err != nil || string(got.Body) == "") {
			continue
		}
		if err != nil || string(got.Body) != tt.want {
			t.Errorf("Apply(%s): %v, want %s", tt.expression, err, tt.want)
			if err == nil {
				t.Errorf("got %s", got.Body)
			}
		}
	}
}

func TestTransformHeaders(t *testing.T) {
	t.Parallel()
	e := push(`{"id":"o-1","token":"x"}`)
	e.Headers = append(e.Headers, bridge.Header{Name: "content-encoding", Value: "identity"}, bridge.Header{Name: "x-old", Value: "1"})
	before := *e
	tr, err := filter.CompileTransform(bridge.Transform{Body: `{"order": event.body.id}`, Headers: map[string]string{
		"X-Order": `event.body.id`, "x-tag": `event.headers["x-tag"] + "!"`, "X-Old": `null`, "x-none": `event.body.?none`, "X-There": `event.body.?token`,
		"Content-Type": `"application/vnd.order+json"`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tr.Apply(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Body, want.ContentType = []byte(`{"order":"o-1"}`), "application/vnd.order+json"
	want.Headers = []bridge.Header{
		{Name: "x-github-event", Value: "push"},
		{Name: "content-type", Value: "application/vnd.order+json"}, {Name: "x-order", Value: "o-1"},
		{Name: "x-there", Value: "x"}, {Name: "x-tag", Value: "one,two!"},
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, *e); diff != "" {
		t.Errorf("the event itself is changed:\n%s", diff)
	}
}

// A transform of headers leaves the body byte for byte.
func TestTransformLeavesTheRest(t *testing.T) {
	t.Parallel()
	body := " {\"a\" : 1.0,\xff}\r\n"
	for _, transform := range []bridge.Transform{{}, {Headers: map[string]string{"x-a": `"1"`}}} {
		tr, err := filter.CompileTransform(transform)
		if err != nil {
			t.Fatal(err)
		}
		e := push(body)
		got, err := tr.Apply(t.Context(), e)
		if err != nil || string(got.Body) != body || got.ContentType != e.ContentType || len(got.Headers) != len(e.Headers)+len(transform.Headers) {
			t.Errorf("Apply(%v) = %+v, %v", transform, got, err)
		}
	}
}

func TestTransformProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		transform bridge.Transform
		want      string
	}{
		{bridge.Transform{Body: `event.tpye`}, `body: at column 7, ` + "`tpye`" + `: an event has no field "tpye" (did you mean event.type?)`},
		{bridge.Transform{Body: ` `}, `body: is empty: leave it out`},
		{bridge.Transform{Body: `event.time`}, `body: must be a text, bytes, or what JSON can hold, is of type timestamp: write string(…)`},
		{bridge.Transform{Body: `event.body.?a`}, `is of type optional_type(dyn): read it with orValue()`},
		{bridge.Transform{Body: `type(event.id)`}, `body: must be a text`},
		{bridge.Transform{Body: `["a"].join(1)`}, `join does not take`},
		{bridge.Transform{Body: `"a".replace("b")`}, `body: at column 12, ` + "`(\"b\")`" + `: replace does not take string.(string)`},
		{bridge.Transform{Headers: map[string]string{"x-a": `1`}}, `headers.x-a: must be a text, is of type int: write string(…)`},
		{bridge.Transform{Headers: map[string]string{"x-a": `event.headers`}}, `headers.x-a: must be a text, is of type map(string, string): write json.encode(…)`},
		{bridge.Transform{Headers: map[string]string{"x-a": ``}}, `headers.x-a: is empty: leave it out`},
		{bridge.Transform{Headers: map[string]string{"x a": `"b"`}}, `headers.x a: must be a header name, got "x a"`},
		{bridge.Transform{Headers: map[string]string{"Host": `"b"`, "webhook-id": `"b"`, "Webhook-New": `"b"`, "content-length": `"1"`}},
			`headers.Host: is set by the bridge on every call: remove it; headers.Webhook-New: is set by the bridge on every call: remove it; ` +
				`headers.content-length: is set by the bridge on every call: remove it; headers.webhook-id: is set by the bridge on every call: remove it`},
		{bridge.Transform{Headers: map[string]string{"Transfer-Encoding": `"chunked"`}}, `headers.Transfer-Encoding: is set by the bridge on every call: remove it`},
		{bridge.Transform{Headers: map[string]string{"Proxy-Authorization": `"x"`}}, `is a matter of the connection, not of the event: remove it`},
		{bridge.Transform{Headers: map[string]string{"X-A": `"b"`, "x-a": `"c"`}}, `headers.x-a: is the same header as X-A: remove one`},
		{bridge.Transform{Body: `event.a`, Headers: map[string]string{"x-b": `event.b`, "x-c": `=`}}, `body: at column 7, ` + "`a`" + `: an event has no field "a": it has id, type, source, time, method, path, query, headers and body; headers.x-b: `},
	} {
		_, err := filter.CompileTransform(tt.transform)
		var problems *filter.TransformError
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("CompileTransform(%v): %v, want %s", tt.transform, err, tt.want)
		}
	}
}

func TestTransformErrors(t *testing.T) {
	t.Parallel()
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + "]"
	body := `{"s":"` + secret + `","n":1,"huge":1e400,"line":"a\nb","l":` + list + `,"long":"` + strings.Repeat("a", 9000) + `","mega":"` + strings.Repeat("ab", 1<<18) + `"}`
	for _, tt := range []struct {
		transform bridge.Transform
		want      string
	}{
		{bridge.Transform{Body: `event.body.none`}, `body: at column 12: event.body.none: this event has no member "none"`},
		{bridge.Transform{Body: `{"a": event.body.?none}`}, `body: an optional value cannot be JSON: read it with orValue(), or write {?name: value}`},
		{bridge.Transform{Body: `[event.body.huge]`}, `body: an infinite number, or none, cannot be JSON`},
		{bridge.Transform{Body: `{"1": 1, 1: 2}`}, `body: two names of a map are the same in JSON`},
		{bridge.Transform{Body: `[type(event.body)]`}, `body: a value of type type cannot be JSON`},
		{bridge.Transform{Body: `[event.time].map(x, dyn(x))[0]`}, `body: is of type google.protobuf.Timestamp for this event, which is no body`},
		{bridge.Transform{Headers: map[string]string{"x-a": `event.body.n`}}, `header x-a: is of type int for this event, not a text`},
		{bridge.Transform{Headers: map[string]string{"X-A": `event.body.line`}}, `header x-a: holds the control character 0x0a, which no header can carry`},
		{bridge.Transform{Headers: map[string]string{"x-a": `event.body.long`}}, `header x-a: too costly for this event: is 9000 bytes long, the most is 8192`},
		{bridge.Transform{Body: `[event.body.l, event.body.l].map(x, event.body.l)` + strings.Repeat(".map(x, [x, x, x, x])", 5)}, `body: too costly for this event: more than 10485760 bytes of JSON are made`},
		{bridge.Transform{Body: `json.encode(` + strings.Repeat("[event.body.l, ", 10) + `1` + strings.Repeat("]", 10) + `)`}, `body: too costly for this event: a text of more than 1048576 bytes is made`},
		{bridge.Transform{Body: `event.body.mega.replace("a", event.body.mega)`}, `body: too costly for this event: a text of more than 1048576 bytes is made`},
		{bridge.Transform{Body: `["", "", "", ""].join(event.body.mega)`}, `body: too costly for this event: a text of more than 1048576 bytes is made`},
		{bridge.Transform{Body: `event.body.l.map(x, event.body.mega.indexOf("aa"))`}, `body: too costly for this event: more than 1000000 steps`},
		{bridge.Transform{Body: `event.body.l.map(x, json.parse(event.body.mega))`}, `body: too costly for this event: more than 1000000 steps`},
		{bridge.Transform{Body: `"a".indexOf(event.body.s, -1)`}, `body: at column 12: the list has no such element in this event`},
		{bridge.Transform{Body: `[event.body.n].join()`}, `join does not go with the types it finds in this event`},
	} {
		tr, err := filter.CompileTransform(tt.transform)
		if err != nil {
			t.Errorf("CompileTransform(%v): %v", tt.transform, err)
			continue
		}
		begun := time.Now()
		got, err := tr.Apply(t.Context(), push(body))
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("Apply(%v) = %v; want %s", tt.transform, err, tt.want)
		}
		if took := time.Since(begun); took > slow {
			t.Errorf("%v takes %v", tt.transform, took)
		}
	}
}
