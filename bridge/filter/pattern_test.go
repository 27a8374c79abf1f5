package filter_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// decoded is a pattern as a configuration file or the admin API gives it.
func decoded(t testing.TB, pattern string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(pattern))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return v
}

func TestPatternMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		want    bool
	}{
		// fields of the event
		{`{"type":["push"]}`, true},
		{`{"type":["ping","push"]}`, true},
		{`{"type":["ping"]}`, false},
		{`{"type":["Push"]}`, false},
		{`{"type":["push"],"source":["github"],"id":["github:delivery:1"],"method":["POST"],"path":["/in/github"]}`, true},
		{`{"type":["push"],"source":["gitlab"]}`, false},
		{`{"time":[{"prefix":"2026-11-20T08:30:15.123456Z"}]}`, true},
		{`{"time":["2026-11-20T08:30:15Z"]}`, false},
		{`{"headers":{"x-github-event":["push"]}}`, true},
		{`{"headers":{"x-tag":["one,two"]}}`, true},
		{`{"headers":{"x-tag":["one"]}}`, false},
		{`{"headers":{"x-none":["a"]}}`, false},
		{`{"headers":{"x-none":[{"exists":false}],"x-tag":[{"exists":true}]}}`, true},
		{`{"query":{"tenant":["a"],"tag":["x,y z"],"flag":[""]}}`, true},
		{`{"query":{"none":[{"exists":false}],"broken":["%zz"]}}`, true},
		// the body
		{`{"body":{"ref":["refs/heads/main"]}}`, true},
		{`{"body":{"ref":["refs/heads/try"]}}`, false},
		{`{"body":{"repository":{"full_name":["octo/hello"],"private":[true]}}}`, true},
		{`{"body":{"repository":{"full_name":["octo/hello"],"private":[false]}}}`, false},
		{`{"body":{"forced":[false],"nothing":[null],"size":[3]}}`, true},
		{`{"body":{"nothing":[""]}}`, false},
		{`{"body":{"none":[null]}}`, false},
		{`{"body":{"size":["3"]}}`, false},
		{`{"body":{"ref":{"deeper":["x"]}}}`, false},
		{`{"body":{"twice":[2]}}`, true},
		{`{"body":{"twice":[1]}}`, false},
		{`{"body":{"ünï":["😀"],"escaped":["\n"],"lone":["\ufffd"]}}`, true},
		// lists: any element
		{`{"body":{"repository":{"topics":["queue"]}}}`, true},
		{`{"body":{"repository":{"topics":["queue","none"]}}}`, true},
		{`{"body":{"repository":{"topics":["none"]}}}`, false},
		{`{"body":{"commits":{"message":[{"prefix":"feat:"}]}}}`, true},
		{`{"body":{"commits":{"id":["a1"],"message":[{"prefix":"fix:"}]}}}`, true},
		{`{"body":{"commits":{"id":["a1"],"message":[{"prefix":"feat:"}]}}}`, false}, // not of one commit
		// numbers are compared by value and exactly
		{`{"body":{"size":[3.0]}}`, true},
		{`{"body":{"size":[30e-1]}}`, true},
		{`{"body":{"exp":[1000]}}`, true},
		{`{"body":{"repository":{"id":[9007199254740993]}}}`, true},
		{`{"body":{"repository":{"id":[9007199254740992]}}}`, false},
		{`{"body":{"big":[18446744073709551615]}}`, true},
		{`{"body":{"bigger":[18446744073709551616]}}`, true},
		{`{"body":{"bigger":[18446744073709551617]}}`, false},
		{`{"body":{"bigger":[{"numeric":[">",18446744073709551615,"<",18446744073709551617]}]}}`, true},
		{`{"body":{"huge":[1e400]}}`, true},
		{`{"body":{"huge":[{"numeric":[">",1e399,"<",1e401]}]}}`, true},
		{`{"body":{"negative":[{"numeric":["<",-9223372036854775807]}]}}`, true},
		{`{"body":{"negative":[{"numeric":["<",-9223372036854775808]}]}}`, false},
		{`{"body":{"size":[{"numeric":[">",0,"<=",3]}]}}`, true},
		{`{"body":{"size":[{"numeric":[">",3]}]}}`, false},
		{`{"body":{"ratio":[{"numeric":["=",5e-1]}]}}`, true},
		{`{"body":{"ratio":[{"numeric":[">=",0.5,"<=",0.5]}]}}`, true},
		{`{"body":{"ref":[{"numeric":[">",0]}]}}`, false},
		// texts
		{`{"body":{"ref":[{"prefix":"refs/heads/"}]}}`, true},
		{`{"body":{"ref":[{"prefix":"refs/tags/"}]}}`, false},
		{`{"body":{"ref":[{"suffix":"/main"}]}}`, true},
		{`{"body":{"ref":[{"suffix":"/Main"}]}}`, false},
		{`{"body":{"ref":[{"suffix":{"equals-ignore-case":"/MAIN"}}]}}`, true},
		{`{"body":{"ref":[{"prefix":{"equals-ignore-case":"REFS/"}}]}}`, true},
		{`{"body":{"ref":[{"prefix":{"equals-ignore-case":"REFX/"}}]}}`, false},
		{`{"type":[{"equals-ignore-case":"PUSH"}]}`, true},
		{`{"type":[{"equals-ignore-case":"PUS"}]}`, false},
		{`{"body":{"size":[{"prefix":"3"}]}}`, false},
		{`{"body":{"ref":[{"wildcard":"refs/*/main"}]}}`, true},
		{`{"body":{"ref":[{"wildcard":"*"}]}}`, true},
		{`{"body":{"ref":[{"wildcard":"refs/heads/main*"}]}}`, true},
		{`{"body":{"ref":[{"wildcard":"*s/h*s/m*"}]}}`, true},
		{`{"body":{"ref":[{"wildcard":"refs/heads/main/*"}]}}`, false},
		{`{"body":{"ref":[{"wildcard":"refs/heads/ma*ain"}]}}`, false}, // the ends do not overlap
		{`{"body":{"ref":[{"wildcard":"refs/heads/main"}]}}`, true},
		{`{"body":{"ref":[{"wildcard":"refs\\*"}]}}`, false},
		{`{"body":{"ref":[{"anything-but":"refs/heads/main"}]}}`, false},
		{`{"body":{"ref":[{"anything-but":["refs/heads/try","refs/heads/main"]}]}}`, false},
		{`{"body":{"ref":[{"anything-but":["refs/heads/try"]}]}}`, true},
		{`{"body":{"ref":[{"anything-but":{"prefix":"refs/tags/"}}]}}`, true},
		{`{"body":{"ref":[{"anything-but":{"prefix":["refs/tags/","refs/heads/"]}}]}}`, false},
		{`{"body":{"ref":[{"anything-but":{"suffix":"main"}}]}}`, false},
		{`{"body":{"ref":[{"anything-but":{"wildcard":["*/try","*/old/*"]}}]}}`, true},
		{`{"body":{"ref":[{"anything-but":{"equals-ignore-case":"REFS/heads/MAIN"}}]}}`, false},
		{`{"body":{"size":[{"anything-but":3.0}]}}`, false},
		{`{"body":{"size":[{"anything-but":[1,2]}]}}`, true},
		{`{"body":{"size":[{"anything-but":"3"}]}}`, true},
		{`{"body":{"nothing":[{"anything-but":"x"}]}}`, true},
		{`{"body":{"none":[{"anything-but":"x"}]}}`, false},                  // it has to be there
		{`{"body":{"repository":{"topics":[{"anything-but":"go"}]}}}`, true}, // as queue is something else
		// exists
		{`{"body":{"ref":[{"exists":true}],"nothing":[{"exists":true}],"none":[{"exists":false}]}}`, true},
		{`{"body":{"ref":[{"exists":false}]}}`, false},
		{`{"body":{"none":[{"exists":true}]}}`, false},
		{`{"body":{"repository":[{"exists":true}]}}`, false}, // no single value
		{`{"body":{"repository":[{"exists":false}]}}`, true},
		{`{"body":{"none":{"deeper":[{"exists":false}]}}}`, true},
		{`{"body":{"commits":{"none":[{"exists":false}],"id":["b2"]}}}`, true},
		{`{"body":{"mixed":{"a":[{"exists":false}]}}}`, false}, // one element has it
		{`{"body":{"none":["x",{"exists":false}]}}`, true},
		{`{"body":{"empty":[{"exists":false}]}}`, true},
		{`{"body":{"empty":{"a":[{"exists":false}]}}}`, true},
		{`{"type":[{"exists":true}]}`, true},
		// addresses
		{`{"body":{"ip":[{"cidr":"10.0.0.0/24"}]}}`, true},
		{`{"body":{"ip":[{"cidr":"10.0.1.0/24"}]}}`, false},
		{`{"body":{"ip":[{"cidr":"10.0.0.33"}]}}`, true},
		{`{"body":{"ip4in6":[{"cidr":"10.0.0.0/24"}]}}`, true},
		{`{"body":{"ip6":[{"cidr":"2001:db8::/32"}]}}`, true},
		{`{"body":{"ref":[{"cidr":"0.0.0.0/0"}]}}`, false},
		// or
		{`{"$or":[{"type":["ping"]},{"body":{"ref":[{"suffix":"main"}]}}]}`, true},
		{`{"$or":[{"type":["ping"]},{"body":{"ref":[{"suffix":"try"}]}}]}`, false},
		{`{"source":["gitlab"],"$or":[{"type":["push"]},{"type":["ping"]}]}`, false},
		{`{"body":{"forced":[false],"$or":[{"size":[{"numeric":[">",100]}]},{"ref":["refs/heads/main"],"nothing":[null]},{"none":[1]}]}}`, true},
		{`{"body":{"$or":[{"size":[9],"ratio":[0.5]},{"size":[3],"$or":[{"none":[1]},{"ratio":[1]}]}]}}`, false},
	} {
		body := strings.TrimSuffix(pushBody, "}") + `,"ip":"10.0.0.33","ip4in6":"::ffff:10.0.0.33","ip6":"2001:db8::1","mixed":[{"a":1},{"b":1}],"empty":[]}`
		for _, v := range []any{decoded(t, tt.pattern), asFloats(t, tt.pattern)} {
			if v == nil {
				continue
			}
			p, err := filter.CompilePattern(v)
			if err != nil {
				t.Errorf("CompilePattern(%s): %v", tt.pattern, err)
				continue
			}
			if got, err := p.Match(t.Context(), push(body)); err != nil || got != tt.want {
				t.Errorf("Match(%s) = %v, %v; want %v", tt.pattern, got, err, tt.want)
			}
		}
	}
}

var manyDigits = regexp.MustCompile(`\d{16}|1e4`)

// asFloats is a pattern whose numbers are float64, nil where that changes them.
func asFloats(t *testing.T, pattern string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(pattern), &v); err != nil || manyDigits.MatchString(pattern) {
		return nil
	}
	return v
}

// TestPatternBodies: what is no JSON is a text, which has no members.
func TestPatternBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, pattern string
		want          bool
	}{
		{``, `{"body":{"a":[1]}}`, false},
		{``, `{"body":[""]}`, true},
		{`payload=1`, `{"body":{"a":[{"anything-but":"x"}]}}`, false},
		{`payload=1`, `{"body":{"a":[{"exists":true}]}}`, false},
		{`payload=1`, `{"body":{"a":[{"exists":false}]}}`, true},
		{`payload=1`, `{"body":[{"prefix":"payload="}]}`, true},
		{"\xff", `{"body":[{"exists":true}]}`, true},
		{"\xff", `{"body":["\ufffd"]}`, false},
		{"\xff", `{"body":{"a":[{"exists":true}]}}`, false},
		{`{"a":1} {"a":1}`, `{"body":{"a":[1]}}`, false},
		{`{"a":1`, `{"body":{"a":[1]}}`, false},
		{`{"a":1,"b":[1,}`, `{"body":{"a":[1]}}`, false},
		{`12`, `{"body":[12.0]}`, true},
		{`"x"`, `{"body":["x"]}`, true},
		{`null`, `{"body":[null]}`, true},
		{`[1,2]`, `{"body":[2]}`, true},
		{`[[[1]],[2]]`, `{"body":[1]}`, true},
		{`[{"a":1},{"a":2}]`, `{"body":{"a":[2]}}`, true},
		{`{"a":[[{"b":1}]]}`, `{"body":{"a":{"b":[1]}}}`, true},
		{`{"a":{"b":1}}`, `{"body":{"$or":[{"a":[1]},{"a":{"b":[1]}}]}}`, true},
		{`{"a":1}`, `{"body":{"$or":[{"a":[1]},{"a":{"b":[1]}}]}}`, true},
		{"{\"a\":\"\xff\"}", `{"body":{"a":["\ufffd"]}}`, true},
		{`{"$or":1}`, `{"body":{"$or":[{"x":[1]},{"y":[1]}]}}`, false},
		{`{"a*b":"a\\b*c"}`, `{"body":{"a*b":[{"wildcard":"a\\\\b\\**"}]}}`, true},
	} {
		p, err := filter.CompilePattern(decoded(t, tt.pattern))
		if err != nil {
			t.Errorf("CompilePattern(%s): %v", tt.pattern, err)
			continue
		}
		if got, err := p.Match(t.Context(), push(tt.body)); err != nil || got != tt.want {
			t.Errorf("Match(%s) of %q = %v, %v; want %v", tt.pattern, tt.body, got, err, tt.want)
		}
	}
}

func TestPatternForeign(t *testing.T) {
	t.Parallel()
	d := bridge.NewDelivery("r", bridge.Origin{Queue: "images", TransactionID: "img-1", CreatedAt: received}, []byte(`{"width":200}`))
	event, err := d.Event()
	if err != nil {
		t.Fatal(err)
	}
	p, err := filter.CompilePattern(decoded(t, `{"id":["img-1"],"type":[""],"time":[{"prefix":"2026-11-20"}],"body":{"width":[{"numeric":[">",100]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Match(t.Context(), &event); !got || err != nil {
		t.Errorf("Match = %v, %v", got, err)
	}
}

func TestPatternProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, want string }{
		{`[]`, `must be a map from fields of the event to lists of alternatives, such as {type: [push]}`},
		{`{}`, `is empty: leave it out where every event is wanted`},
		{`{"tpye":["push"]}`, `tpye: an event has no field "tpye" (did you mean "type"?)`},
		{`{"detail":{"a":[1]}}`, `detail: an event has no field "detail": what EventBridge calls so comes nearest to body`},
		{`{"xxxxxx":["push"]}`, `xxxxxx: an event has no field "xxxxxx": it has id, type, source, time, method, path, query, headers and body`},
		{`{"type":"push"}`, `type: must be a list of alternatives, such as ["push"]`},
		{`{"type":[]}`, `type: is empty: no event would match`},
		{`{"type":{"a":[1]}}`, `type: is a text without members: give a list of alternatives`},
		{`{"headers":["a"]}`, `headers: must be a map of names, such as {headers: {name: [value]}}`},
		{`{"headers":{"X-Tag":["a"]}}`, `headers.X-Tag: names of headers are in lower case: write x-tag`},
		{`{"headers":{"x-tag":{"a":["b"]}}}`, `headers.x-tag: is a text without members: give a list of alternatives`},
		{`{"body":{}}`, `body: is empty: give members, or leave it out`},
		{`{"body":{"a":1}}`, `body.a: must be a list of alternatives, such as [1]`},
		{`{"body":{"a":null}}`, `body.a: must be a list of alternatives, such as [null]`},
		{`{"body":{"a":[[1]]}}`, `body.a[0]: must be a single value or an operator, not a list in a list`},
		{`{"body":{"a":[{"prefx":"x"}]}}`, `body.a[0].prefx: is no operator (did you mean "prefix"?)`},
		{`{"body":{"a":[{"deeper":["x"]}]}}`, `body.a[0].deeper: is no operator: it is one of anything-but, cidr, equals-ignore-case, exists, numeric, prefix, suffix or wildcard; members of a value are asked for without a list around them`},
		{`{"body":{"a":[{}]}}`, `body.a[0]: must be one operator: anything-but, cidr, equals-ignore-case, exists, numeric, prefix, suffix or wildcard`},
		{`{"body":{"a":[{"prefix":"x","suffix":"y"}]}}`, `body.a[0]: must be one operator: `},
		{`{"body":{"a":[{"prefix":1}]}}`, `body.a[0].prefix: must be a text, got 1`},
		{`{"body":{"a":[{"prefix":["s3cret"]}]}}`, `body.a[0].prefix: must be a text, got a list`},
		{`{"body":{"a":[{"prefix":""}]}}`, `body.a[0].prefix: must not be empty`},
		{`{"body":{"a":[{"prefix":{"wildcard":"x"}}]}}`, `body.a[0].prefix.wildcard: is no operator`},
		{`{"body":{"a":[{"suffix":{"equals-ignore-case":1}}]}}`, `body.a[0].suffix.equals-ignore-case: must be a text, got 1`},
		{`{"body":{"a":[{"wildcard":"a**b"}]}}`, `body.a[0].wildcard: has two * side by side: one stands for any number of characters`},
		{`{"body":{"a":[{"wildcard":"a\\b"}]}}`, `body.a[0].wildcard: has a \ before what is neither * nor \: write \\ for the character itself`},
		{`{"body":{"a":[{"wildcard":"a\\"}]}}`, `body.a[0].wildcard: has a \ before`},
		{`{"body":{"a":[{"exists":"yes"}]}}`, `body.a[0].exists: must be true or false, got "yes"`},
		{`{"body":{"a":[{"exists":{}}]}}`, `body.a[0].exists: must be true or false, got`},
		{`{"body":{"a":[{"cidr":"10.0.0.0/33"}]}}`, `body.a[0].cidr: must be a range of addresses such as 10.0.0.0/24 or 2001:db8::/32, got "10.0.0.0/33"`},
		{`{"body":{"a":[{"cidr":5}]}}`, `body.a[0].cidr: must be a range of addresses`},
		{`{"body":{"a":[{"numeric":5}]}}`, `body.a[0].numeric: must be one comparison or two, such as ["=", 5] or [">", 0, "<=", 5]`},
		{`{"body":{"a":[{"numeric":["==",5]}]}}`, `body.a[0].numeric[0]: must be =, <, <=, > or >=, got "=="`},
		{`{"body":{"a":[{"numeric":["<","5"]}]}}`, `body.a[0].numeric[1]: must be a number, got "5"`},
		{`{"body":{"a":[{"numeric":["<",5,">",0]}]}}`, `body.a[0].numeric: must be a range with the lower bound first`},
		{`{"body":{"a":[{"numeric":[">",5,"<=",5]}]}}`, `body.a[0].numeric: has no number between its bounds`},
		{`{"body":{"a":[{"anything-but":[]}]}}`, `body.a[0].anything-but: is empty: use {exists: true} for anything at all`},
		{`{"body":{"a":[{"anything-but":[1,null]}]}}`, `body.a[0].anything-but[1]: must be a text or a number, got null`},
		{`{"body":{"a":[{"anything-but":{"numeric":["<",1]}}]}}`, `body.a[0].anything-but.numeric: is no operator`},
		{`{"body":{"a":[{"anything-but":{"prefix":["a",1]}}]}}`, `body.a[0].anything-but.prefix[1]: must be a text, got 1`},
		{`{"$or":{"type":["push"]}}`, `$or: must be a list of two or more patterns`},
		{`{"$or":[{"type":["push"]}]}`, `$or: must be a list of two or more patterns`},
		{`{"$or":[{"type":["push"]},{}]}`, `$or[1]: must be a map of fields, as any pattern`},
		{`{"body":{"$or":[{"a":["push"]},{"b":"x"}]}}`, `body.$or[1].b: must be a list of alternatives, such as ["x"]`},
		{`{"tpye":["push"],"body":{"a":1,"b":[{"prefx":""}]}}`, `body.a: must be a list of alternatives, such as [1]; body.b[0].prefx: is no operator (did you mean "prefix"?); tpye: an event has`},
		{`{"body":{"a":["` + strings.Repeat("a", 4097) + `"]}}`, `body.a[0]: is 4097 bytes long, the most is 4096`},
		{`{"body":{"a":[1` + strings.Repeat(",1", 10_000) + `]}}`, `is too much: a pattern has at most 10000 names and values, of 65536 bytes together`},
		{`{"body":{"a":["` + strings.Repeat(`a","`, 20) + strings.Repeat(strings.Repeat("a", 4000)+`","`, 20) + `"]}}`, `is too much`},
		{`{"body":` + strings.Repeat(`{"a":`, 40) + `[1]` + strings.Repeat("}", 41), `too much stands in one another: at most 32 maps`},
	} {
		_, err := filter.CompilePattern(decoded(t, tt.pattern))
		var problems *filter.PatternError
		if err == nil || !errors.As(err, &problems) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("CompilePattern(%.200s): %v, want %s", tt.pattern, err, tt.want)
		}
	}
	for _, v := range []any{nil, "x", 5, map[string]any{"body": []any{struct{}{}}}, map[string]any{"type": []any{json.Number("x")}}, map[string]any{"type": []any{"\xff"}}} {
		if _, err := filter.CompilePattern(v); err == nil {
			t.Errorf("CompilePattern(%v) succeeds", v)
		}
	}
}

func TestPatternMatchHasABound(t *testing.T) {
	t.Parallel()
	many := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 1<<18), ",") + `],"a":1,"s":"` + strings.Repeat("ab", 1<<20) + `"}`
	p, err := filter.CompilePattern(decoded(t, `{"body":{"l":[2]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Match(t.Context(), push(many)); !errors.Is(err, filter.ErrTooCostly) || got {
		t.Errorf("many values: Match = %v, %v; want ErrTooCostly", got, err)
	}
	p, err = filter.CompilePattern(decoded(t, `{"body":{"a":[1],"s":[{"wildcard":"`+strings.Repeat("*a*b", 500)+`*c"},{"suffix":"b"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if got, err := p.Match(t.Context(), push(many)); !got || err != nil {
		t.Errorf("members beside many values: Match = %v, %v", got, err)
	}
	if took := time.Since(begun); took > slow {
		t.Errorf("took %v", took)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if got, err := p.Match(ctx, push(many)); got || !errors.Is(err, gone) {
		t.Errorf("Match = %v, %v; want %v", got, err, gone)
	}
}

// A body is not looked at where the event's own fields decide.
func TestPatternLooksAtTheBodyLast(t *testing.T) {
	t.Parallel()
	p, err := filter.CompilePattern(decoded(t, `{"body":{"l":[2]},"type":["ping"]}`))
	if err != nil {
		t.Fatal(err)
	}
	many := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 1<<18), ",") + `]}`
	if got, err := p.Match(t.Context(), push(many)); got || err != nil {
		t.Errorf("Match = %v, %v", got, err)
	}
}

func TestPatternManyAtOnce(t *testing.T) {
	t.Parallel()
	p, err := filter.CompilePattern(decoded(t, `{"type":["push"],"headers":{"x-tag":["one,two"]},"body":{"n":[{"numeric":[">",3]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		e := push(`{"n":` + string(rune('0'+n)) + `}`)
		wg.Go(func() {
			for range 200 {
				if got, err := p.Match(t.Context(), e); err != nil || got != (n > 3) {
					t.Errorf("Match of %d = %v, %v", n, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
