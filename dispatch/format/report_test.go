package format_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/dispatch/format"
)

func TestParseReport(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b", "c"}
	const whole = "whole"
	for _, tt := range []struct{ answer, want string }{
		{"", ""}, {"  \n", ""}, {"null", ""}, {"{}", ""}, {`{"ok":true}`, ""},
		{`{"batchItemFailures":[]}`, ""}, {`{"batchItemFailures":null}`, ""},
		{`{"batchItemFailures":[{"itemIdentifier":"b"}]}`, "b"},
		{` {"x":[{}],"batchItemFailures":[{"itemIdentifier":"c","why":1},{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}`, "a c"},
		{`{"batchItemFailures":[{"itemIdentifier":"\u0062"}]}`, "b"},
		{`{"batchItemFailures":[{"itemIdentifier":""}]}`, whole},
		{`{"batchItemFailures":[{"itemIdentifier":null}]}`, whole},
		{`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":null}]}`, whole},
		{`{"batchItemFailures":[{"id":"a"}]}`, whole},
		{`{"batchItemFailures":[{"ItemIdentifier":"a"}]}`, whole},
		{`{"batchItemFailures":[{}]}`, whole}, {`{"batchItemFailures":["a"]}`, whole}, {`{"batchItemFailures":[null]}`, whole},
		{`{"batchItemFailures":[{"itemIdentifier":"d"}]}`, whole},
		{`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"d"}]}`, whole},
		{`{"batchItemFailures":[{"itemIdentifier":0}]}`, whole},
		{`{"batchItemFailures":{"itemIdentifier":"a"}}`, whole}, {`{"batchItemFailures":"a"}`, whole}, {`{"batchItemFailures":false}`, whole},
		{`{"BatchItemFailures":[]}`, whole},
		{`{"batchItemFailures":[],"batchItemFailures":[]}`, whole},
		{`{"batchItemFailures":[`, whole}, {"ok", whole}, {`"ok"`, whole}, {"[]", whole}, {"true", whole}, {"{} {}", whole},
	} {
		failed, err := format.ParseReport([]byte(tt.answer), ids, false)
		var names []string
		for i, f := range failed {
			if f {
				names = append(names, ids[i])
			}
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = whole
		}
		if got != tt.want {
			t.Errorf("ParseReport(%s) = %q, %v; want %q", tt.answer, got, err, tt.want)
		}
	}
}

func TestParseReportByPosition(t *testing.T) {
	t.Parallel()
	ids := []string{"0", "1", "2"}
	for answer, want := range map[string][]bool{
		`{"batchItemFailures":[{"itemIdentifier":"1"}]}`:                      {false, true, false},
		`{"batchItemFailures":[{"itemIdentifier":2},{"itemIdentifier":"0"}]}`: {true, false, true},
		`{"batchItemFailures":[{"itemIdentifier":3}]}`:                        nil,
		`{"batchItemFailures":[{"itemIdentifier":-1}]}`:                       nil,
		`{"batchItemFailures":[{"itemIdentifier":1.0}]}`:                      nil,
	} {
		failed, err := format.ParseReport([]byte(answer), ids, true)
		if diff := cmp.Diff(want, failed); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("ParseReport(%s): %v (-want +got):\n%s", answer, err, diff)
		}
	}
}

// Two copies of one event in a batch share a name, and so a failure.
func TestParseReportOfARepeatedID(t *testing.T) {
	t.Parallel()
	failed, err := format.ParseReport([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`), []string{"a", "b", "a"}, false)
	if diff := cmp.Diff([]bool{true, false, true}, failed); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func FuzzParseReport(f *testing.F) {
	for _, seed := range []string{"", "null", `{"batchItemFailures":[{"itemIdentifier":"a"}]}`, `{"batchItemFailures":[{"itemIdentifier":1}]}`, `{"batchitemfailures":0}`, "[[[["} {
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, answer []byte, indexed bool) {
		ids := []string{"a", "1", "2"}
		failed, err := format.ParseReport(answer, ids, indexed)
		switch {
		case err != nil && failed != nil:
			t.Fatalf("both %v and %v", failed, err)
		case failed != nil && len(failed) != len(ids):
			t.Fatalf("%d verdicts", len(failed))
		case failed != nil && !strings.Contains(string(answer), "batchItemFailures") && !strings.Contains(string(answer), `\`):
			t.Fatalf("failures without a list: %q", answer)
		}
	})
}
