package queentest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Every fact that was measured has a case, or a reason why not, and every case
// that rests on a measurement stands at a fact.
func TestMeasuredFactsHaveCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/measured.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"Outage": false, "Lateness": false}
	for _, c := range allCases() {
		names[c.name] = false
	}
	for name := range oldCases() {
		names["Old/"+name] = false
	}
	facts := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		facts++
		parts := strings.Split(line, " | ")
		if len(parts) != 3 || parts[2] == "" {
			t.Errorf("%q: want a place, a fact and its cases", line)
			continue
		}
		if strings.HasPrefix(parts[2], "- ") {
			continue
		}
		for name := range strings.SplitSeq(parts[2], ", ") {
			if _, ok := names[name]; !ok {
				t.Errorf("%s | %s: there is no case %s", parts[0], parts[1], name)
			}
			names[name] = true
		}
	}
	for _, c := range allCases() {
		if strings.Contains(c.rule, "measured") && !names[c.name] {
			t.Errorf("case %s rests on a measurement that is not listed", c.name)
		}
	}
	if facts < 100 {
		t.Errorf("%d facts listed", facts)
	}
	if all := allCases(); len(slices.Compact(slices.Sorted(namesOf(all)))) != len(all) {
		t.Error("two cases have one name")
	}
}

func namesOf(cases []testCase) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, c := range cases {
			if !yield(c.name) {
				return
			}
		}
	}
}
