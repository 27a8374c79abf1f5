package filter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

var received = time.Date(2026, 11, 20, 8, 30, 15, 123456000, time.UTC)

// push is an event as the ingress makes it of a GitHub push.
func push(body string) *bridge.Event {
	return &bridge.Event{
		ID: "github:delivery:1", Source: "github", Type: "push", Received: received, Class: bridge.ClassVerified,
		Method: "POST", Path: "/in/github", Query: "tenant=a&tag=x&tag=y%20z&broken=%zz&flag",
		Headers: []bridge.Header{
			{Name: "content-type", Value: "application/json"}, {Name: "x-github-event", Value: "push"},
			{Name: "x-tag", Value: "one"}, {Name: "x-tag", Value: "two"},
		},
		ContentType: "application/json", Body: []byte(body),
	}
}

const pushBody = `{"ref":"refs/heads/main","forced":false,"size":3,"ratio":0.5,"nothing":null,
	"repository":{"id":9007199254740993,"full_name":"octo/hello","private":true,"topics":["go","queue"]},
	"commits":[{"id":"a1","message":"fix: one"},{"id":"b2","message":"feat: two"}],
	"big":18446744073709551615,"bigger":18446744073709551616,"huge":1e400,"negative":-9223372036854775808,"round":2.0,"exp":1e3,
	"twice":1,"twice":2,"ünï":"\ud83d\ude00","esc\u0061ped":"\n","lone":"\ud800"}`

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expression string
		want       bool
	}{
		{`true`, true},
		{`event.id == "github:delivery:1"`, true},
		{`event.source == "github" && event.type in ["push", "pull_request"]`, true},
		{`event.type == "ping"`, false},
		{`event.type.startsWith("pu") && event.type.matches("^p.*h$") && event.type.lowerAscii() == "push"`, true},
		{`event.method == "POST" && event.path == "/in/github"`, true},
		{`event.time >= timestamp("2026-11-20T08:30:15.123456Z") && event.time < timestamp("2026-11-20T08:30:15.123457Z")`, true},
		{`event.time.getHours() == 8 && event.time.getDayOfWeek() == 5 && event.time.getHours("Asia/Tokyo") == 17`, true},
		{`event.time - timestamp("2026-11-20T08:30:00Z") > duration("15s")`, true},
		// headers and query
		{`event.headers["x-github-event"] == "push"`, true},
		{`event.headers["x-tag"] == "one,two"`, true},
		{`"x-tag" in event.headers && !("x-none" in event.headers)`, true},
		{`has(event.headers.host) || event.headers[?"x-none"].orValue("none") == "none"`, true},
		{`size(event.headers) == 3 && event.headers.exists(name, name.startsWith("x-"))`, true},
		{`event.query.tenant == "a" && event.query.tag == "x,y z" && event.query.broken == "%zz" && event.query.flag == ""`, true},
		{`has(event.query.tag) && !has(event.query.none)`, true},
		{`event.query.size() == 4`, true},
		// the body
		{`event.body.ref == "refs/heads/main" && !event.body.forced`, true},
		{`event.body["ref"].endsWith("/main")`, true},
		{`event.body.repository.full_name.split("/")[0] == "octo"`, true},
		{`"queue" in event.body.repository.topics && event.body.repository.topics[1] == "queue"`, true},
		{`event.body.repository.topics == ["go", "queue"] && event.body.repository.topics != [1, "queue"]`, true},
		{`event.body.commits.exists(c, c.message.startsWith("feat:"))`, true},
		{`event.body.commits.all(c, has(c.id)) && event.body.commits.map(c, c.id) == ["a1", "b2"]`, true},
		{`event.body.commits.filter(c, c.id == "b2")[0].message == "feat: two"`, true},
		{`has(event.body.repository.private) && has(event.body.nothing) && !has(event.body.none)`, true},
		{`event.body.nothing == null && event.body.ref != null`, true},
		{`event.body.?none.?deeper.orValue("x") == "x" && event.body.?repository.?private.orValue(false)`, true},
		{`event.body.?ref.hasValue() && !event.body[?"none"].hasValue()`, true},
		{`size(event.body.repository) == 4 && event.body.repository.all(k, k != "none")`, true},
		{`"ref" in event.body && event.body.size() > 10 || event.body.size == 3`, true},
		{`event.body.twice == 2`, true},
		{`event.body["ünï"] == "😀" && event.body.escaped == "\n" && event.body.lone == "\uFFFD"`, true},
		// numbers
		{`event.body.repository.id == 9007199254740993 && event.body.repository.id != 9007199254740992`, true},
		{`event.body.negative == -9223372036854775808`, true},
		{`event.body.big == 18446744073709551615u && event.body.big != 18446744073709551614u`, true},
		{`event.body.bigger == 18446744073709551616.0 && event.body.huge > 1e308`, true},
		{`event.body.size > 2.5 && event.body.ratio < 1 && event.body.round == 2 && event.body.exp == 1000`, true},
		{`event.body.size in [1, 2, 3]`, true},
		{`type(event.body.size) == int && type(event.body.big) == uint && type(event.body.ratio) == double`, true},
		// what fails on one side only does not count
		{`event.type == "ping" && event.body.none.deeper == 1`, false},
		{`event.body.none == 1 || event.type == "push"`, true},
		{`event.type == "push" ? event.body.size == 3 : event.body.none`, true},
		// a result that only the event has
		{`event.body.repository.private`, true},
		{`event.body.forced`, false},
		{"event.type == 'push' // only pushes\n  && event.body.size == 3\n", true},
	} {
		f, err := filter.Compile(tt.expression)
		if err != nil {
			t.Errorf("Compile(%s): %v", tt.expression, err)
			continue
		}
		got, err := f.Match(t.Context(), push(pushBody))
		if err != nil || got != tt.want {
			t.Errorf("Match(%s) = %v, %v; want %v", tt.expression, got, err, tt.want)
		}
	}
}

// What the body is does not depend on the part of it that is read.
func TestMatchBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, expression string }{
		{"empty", ``, `event.body == "" && !has(event.body.ref)`},
		{"text", `payload=%7B%22a%22%3A1%7D`, `event.body.startsWith("payload=")`},
		{"no UTF-8", "\xff\xfe", `event.body == b"\xff\xfe" && type(event.body) == bytes`},
		{"number", ` 12 `, `event.body == 12`},
		{"minus zero", `-0`, `event.body == 0 && type(event.body) == int`},
		{"true", `true`, `event.body`},
		{"null", `null`, `event.body == null`},
		{"string", `"a"`, `event.body == "a"`},
		{"list", `[{"a":1},[],{}]`, `event.body.size() == 3 && event.body[0].a == 1 && event.body[1] == [] && event.body[2] == {}`},
		{"two documents", `{"a":1} {"a":2}`, `event.body == '{"a":1} {"a":2}' && !has(event.body.a)`},
		{"unfinished", `{"a":1`, `event.body == '{"a":1' && !has(event.body.a)`},
		{"broken behind what is read", `{"a":1,"b":[1,}`, `!has(event.body.a) && type(event.body) == string`},
		{"byte order mark", "\uFEFF{\"a\":1}", `type(event.body) == string`},
		{"broken text in JSON", "{\"a\":\"\xff\",\"\xfe\":1}", `event.body.a == "\uFFFD" && event.body["\uFFFD"] == 1`},
		{"member of a text", `{"a":"x"}`, `!has(event.body.a.b)`},
		{"whole and part", `{"a":{"b":1,"c":2}}`, `event.body.a.b == 1 && event.body.a == {"b": 1, "c": 2}`},
		{"part of what is asked for", `{"a":{"b":1}}`, `has(event.body.a) && has(event.body.a.b) && !has(event.body.a.c)`},
		{"mixed steps", `{"a":{"b c":{"d":7}}}`, `event.body["a"].?"x".hasValue() || event.body.a["b c"].d == 7`},
	} {
		if tt.name == "mixed steps" {
			tt.expression = `event.body["a"][?"b c"].?d.orValue(0) == 7 && event.body.a["b c"].d == 7`
		}
		f, err := filter.Compile(tt.expression)
		if err != nil {
			t.Errorf("%s: Compile(%s): %v", tt.name, tt.expression, err)
			continue
		}
		if got, err := f.Match(t.Context(), push(tt.body)); !got || err != nil {
			t.Errorf("%s: Match(%s) of %q = %v, %v", tt.name, tt.expression, tt.body, got, err)
		}
	}
}

// TestMatchForeign: a message that is no event of ours has an id, a time and a
// body.
func TestMatchForeign(t *testing.T) {
	t.Parallel()
	d := bridge.NewDelivery("r", bridge.Origin{Queue: "images", TransactionID: "img-1", CreatedAt: received}, []byte(`{"width":200}`))
	event, err := d.Event()
	if err != nil {
		t.Fatal(err)
	}
	f, err := filter.Compile(`event.id == "img-1" && event.time == timestamp("2026-11-20T08:30:15.123456Z") && event.body.width > 100 &&
		event.source + event.type + event.method + event.path == "" && event.headers == {} && event.query == {}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Match(t.Context(), &event); !got || err != nil {
		t.Errorf("Match = %v, %v", got, err)
	}
}

const secret = "s3cret"

func TestMatchErrors(t *testing.T) {
	t.Parallel()
	body := `{"n":5,"s":"` + secret + `","l":[1],"` + secret + `":1,"o":{}}`
	for _, tt := range []struct{ expression, want string }{
		{`event.body.ref == "main"`, `at column 12: event.body.ref: this event has no member "ref" (ask with has(), or read it with .? and orValue())`},
		{`event.type == "push" && event.body.o.a.b == 1`, `at column 40: event.body.o.a.b: this event has no member "a" (ask with has(), or read it with .? and orValue())`},
		{"event.type == 'push'\n&& event.headers['x-none'] == ''", `at line 2, column 17: event.headers["x-none"]: this event has no member "x-none" (ask with has(), or read it with .? and orValue())`},
		{`event.body.l.exists(x, x.name == "a")`, `at column 26: x.name: this event has no member "name" (ask with has(), or read it with .? and orValue())`},
		{`event.headers[event.body.s] == ""`, `at column 14: the event has no such member`},
		{`event.body.l[0].a == 1`, `at column 17: event.body.l[…].a: this event has no member "a" (ask with has(), or read it with .? and orValue())`},
		{`event.body.l[7] == 1`, `at column 13: the list has no such element in this event`},
		{`event.body.s < 3`, `at column 14: < does not go with the types it finds in this event`},
		{`event.body.s + event.body.n == "x"`, `at column 14: + does not go with the types it finds in this event`},
		{`event.type.contains(event.body.n)`, `contains does not go with the types it finds in this event`},
		{`event.body.s ? true : false`, `at column 15: ? : does not go with the types it finds in this event`},
		{`event.body.s && true`, `at column 14: && does not go with the types it finds in this event`},
		{`int(event.body.s) == 1`, `at column 4: what it finds in this event cannot be converted`},
		{`timestamp(event.body.s) > event.time`, `at column 10: what it finds in this event cannot be converted`},
		{`event.type.matches(event.body.s + "(")`, `what it finds in this event is no regular expression (RE2)`},
		{`has(event.body.l.name)`, `at column 4: what it finds in this event is a list, which has no members by name`},
		{`event.body.l.name == 1`, `at column 14: what it finds in this event is a list, which has no members by name`},
		{`event.body.n / 0 == 1`, `at column 14: division by zero`},
		{`event.body.n + 9223372036854775807 > 0`, `at column 14: integer overflow`},
		{`event.body.n`, `the filter is of type int for this event, neither true nor false`},
		{`event.body.s`, `the filter is of type string for this event, neither true nor false`},
		{`event.body.o`, `the filter is of type map for this event, neither true nor false`},
		{`event.body.?none`, ``},
	} {
		f, err := filter.Compile(tt.expression)
		if tt.want == "" {
			if err == nil {
				t.Errorf("Compile(%s) succeeds", tt.expression)
			}
			continue
		}
		if err != nil {
			t.Errorf("Compile(%s): %v", tt.expression, err)
			continue
		}
		got, err := f.Match(t.Context(), push(body))
		if err == nil || got || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("Match(%s) = %v, %v; want %s", tt.expression, got, err, tt.want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ expression, want string }{
		{``, `is empty: leave it out`},
		{" \n", `is empty: leave it out`},
		{"event.type == '\xff'", `is no text in UTF-8`},
		{strings.Repeat("a", filter.MaxLength+1), `is 8193 bytes long, the most is 8192`},
		// fields
		{`event.tpye == "push"`, "at column 7, `tpye == \"push\"`: an event has no field \"tpye\" (did you mean event.type?)"},
		{`event.type == "push" && event.Body.ref == "x"`, "at column 31, `Body.ref == \"x\"`: an event has no field \"Body\" (did you mean event.body?)"},
		{`event.payload.ref == "x"`, "at column 7, `payload.ref == \"x\"`: an event has no field \"payload\": it has id, type, source, time, method, path, query, headers and body"},
		{"event.type == 'push' &&\n\tevent.haeders['x'] == ''", "at line 2, column 8, `haeders['x'] == ''`: an event has no field \"haeders\" (did you mean event.headers?)"},
		{`event["type"] == "push"`, "a field of an event is written event.type"},
		{`event == "push"`, "at column 1, `event == \"push\"`: event is no value by itself: read one of its fields, id, type, source, time, method, path, query, headers and body"},
		{`has(event.type)`, "an event always has event.type, empty or not: has() asks for members of the body, the headers and the query"},
		{`[1].all(event, event > 0)`, "event is the event: the variable of a loop needs another name"},
		{`event.a == 1 && event.b == 2`, "at column 7, `a == 1 && event.b == 2`: an event has no field \"a\": it has"},
		// names
		{`body.ref == "x"`, "at column 1, `body.ref == \"x\"`: \"body\" is not known (did you mean event.body?)"},
		{`request.auth == "x"`, "at column 1, `request.auth == \"x\"`: \"request\" is not known: all there is is event and its fields"},
		{`event.type.lower() == "push"`, "`() == \"push\"`: there is no function \"lower\" (did you mean 'lowerAscii'?)"},
		{`frobnicate(event.type)`, "there is no function \"frobnicate\""},
		{`"%s".format([event.type]) == "x"`, "format is not taken: its cost has no bound (put texts together with +, string() and join())"},
		// types
		{`event.type`, "must be true or false, is of type string"},
		{`event.body.?draft`, "must be true or false, is of type optional_type(dyn)"},
		{`size(event.body)`, "must be true or false, is of type int"},
		{`event.type == 1`, "at column 12, `== 1`: == does not take (string, int)"},
		{`event.time > "2026"`, "at column 12, `> \"2026\"`: > does not take (timestamp, string)"},
		{`event.type.name == "x"`, "a string has no members"},
		{`event.type.matches("(")`, "this is no regular expression (RE2)"},
		{`event.time > timestamp("yesterday")`, "invalid timestamp argument"},
		{`event.body.id == 9223372036854775808`, "invalid int literal"},
		// grammar
		{`event.type == `, "at column 15, the end: the expression ends too early"},
		{`(event.type == "a"`, "at column 19, the end: the expression ends too early"},
		{`event.type = "push"`, "at column 12, `= \"push\"`: = is written =="},
		{`event.type == "a" and event.id == "b"`, "at column 19, `and event.id == \"b\"`: and is written &&"},
		{`event.type == "push`, "at column 15, `\"push`: the text that begins here does not end"},
		{`event.type == "a" "b"`, "at column 19, `\"b\"`: this text does not belong here"},
		{`event.type == #`, "at column 15, `#`: this is no part of the language"},
		{`event.type == ) || event.type == "a very long text that is cut"`, "at column 15, `) || event.type == \"a ve…`: this does not belong here"},
		{strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), "too much stands in one another"},
	} {
		_, err := filter.Compile(tt.expression)
		var problems *filter.CompileError
		if !errors.As(err, &problems) || len(problems.Problems) == 0 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Compile(%s):\n got %v\nwant %s", tt.expression, err, tt.want)
		}
		if strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("Compile(%s): an error of several lines: %v", tt.expression, err)
		}
	}
}

func TestMatchHasABound(t *testing.T) {
	t.Parallel()
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + "]"
	many := `{"l":` + strings.ReplaceAll(list, "1", "[1,1,1]") + `,"a":1}`
	for _, tt := range []struct{ name, body, expression string }{
		{"loop", `{"l":` + list + `}`, `event.body.l.all(x, x > 0 && x < 2 && event.body.l.size() > 0)`},
		{"loop in a loop", `{"l":` + list + `}`, `event.body.l.all(x, event.body.l.all(y, x == y))`},
		{"growing list", `{"l":` + list + `}`, `event.body.l.map(x, event.body.l.map(y, [x, y])).size() > 0`},
		{"doubled text", `{"s":"` + strings.Repeat("a", 1<<16) + `"}`, `[event.body.s]` + strings.Repeat(".map(a, a + a)", 100) + `[0] == ""`},
		{"long text", `{"s":"` + strings.Repeat("a", 1<<20+1) + `"}`, `event.body.s == ""`},
		{"long body", strings.Repeat("a", 1<<20+1), `event.body == ""`},
		{"expression of an event", `{"s":"` + strings.Repeat("(a*)*", 1000) + `"}`, `event.type.matches(event.body.s)`},
		{"many values", many, `event.body.l.size() > 0`},
	} {
		f, err := filter.Compile(tt.expression)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		begun := time.Now()
		got, err := f.Match(t.Context(), push(tt.body))
		if tt.name == "expression of an event" {
			if err == nil || errors.Is(err, filter.ErrTooCostly) {
				t.Errorf("%s: Match = %v, %v; want another error than ErrTooCostly", tt.name, got, err)
			}
			continue
		}
		if !errors.Is(err, filter.ErrTooCostly) {
			t.Errorf("%s: Match = %v, %v; want ErrTooCostly", tt.name, got, err)
		}
		t.Logf("%s: %v, %v", tt.name, time.Since(begun), err)
	}
	f, err := filter.Compile(`event.body.a == 1`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Match(t.Context(), push(many)); !got || err != nil {
		t.Errorf("a member beside many values: Match = %v, %v", got, err)
	}
}

func TestMatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f, err := filter.Compile(`event.body.all(x, x == 1)`)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	body := "[" + strings.TrimSuffix(strings.Repeat("1,", 10_000), ",") + "]"
	if got, err := f.Match(ctx, push(body)); !errors.Is(err, gone) || got {
		t.Errorf("Match = %v, %v; want %v", got, err, gone)
	}
	if got, err := f.Match(t.Context(), push(body)); err != nil || !got {
		t.Errorf("Match = %v, %v", got, err)
	}
}

// Filters of one process share an environment, and each is used by many
// goroutines; some fail while others do not.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	cases := []struct {
		expression string
		wants      func(n int) bool
		err        string // of every event
	}{
		{`event.body.n == 1`, func(n int) bool { return n == 1 }, ""},
		{`event.body.l.exists(x, x == event.body.n) && event.headers["x-tag"] == "one,two"`, func(n int) bool { return n >= 7 }, ""},
		{`event.body.n.matches("a+")`, nil, "an operation does not go with the types it finds in this event"},
		{`timestamp(event.body.n + 9223372036854775800) > event.time`, nil, "timestamp overflow"},
		{`event.body.l.getHours() == 1`, nil, "does not go with the types it finds in this event"},
	}
	var wg sync.WaitGroup
	for _, tt := range cases {
		f, err := filter.Compile(tt.expression)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			e := push(fmt.Sprintf(`{"n":%d,"l":[7,8]}`, n))
			wg.Go(func() {
				for range 200 {
					got, err := f.Match(t.Context(), e)
					switch {
					case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)),
						tt.err == "" && (err != nil || got != tt.wants(n)):
						t.Errorf("Match(%s) with n=%d = %v, %v; want %q", tt.expression, n, got, err, tt.err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// CEL shares some errors between all evaluations, with the place where the
// first one happened (v0.33.2). None is better than that of another filter.
func TestSharedErrorsHaveNoPlace(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		`event.body.n.matches("a+")`,
		`event.type == "push" && event.source == "github" && event.body.n.matches("b+")`,
	} {
		f, err := filter.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		const want = "an operation does not go with the types it finds in this event"
		if _, err := f.Match(t.Context(), push(`{"n":1}`)); err == nil || err.Error() != want {
			t.Errorf("Match(%s): %v, want %s", expression, err, want)
		}
	}
}
