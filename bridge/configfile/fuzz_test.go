package configfile

import (
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

// FuzzParse: no text ends the program, and what is read and printed is the same
// document.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"sources:\n  - name: a\n    scheme: github\n", "a: &x [1, {b: *x}]", "<<: {a: 1}", "a: |\n  text\n", "? a\n: b", "{a: [1, 'x', \"y\\n\"]}",
		"a: !!binary x", "--- a\n...\n--- b", "a: 0x1F\nb: 1_000\nc: .inf\nd: ~", "- - - a\n- b: c\n  d: e", "a: \"\\u0000\\ud800\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parse(data)
		if err != nil {
			return
		}
		c, problems := bridge.Decode(doc)
		_ = c.Check(problems)
		printed := Format(c.Effective())
		again, err := parse(printed)
		if err != nil {
			t.Fatalf("what was printed cannot be read: %v\n%s", err, printed)
		}
		c2, problems := bridge.Decode(again)
		for _, p := range problems {
			if !p.Warning {
				t.Fatalf("what was printed has a problem: %s\n%s", p, printed)
			}
		}
		if want, got := string(printed), string(Format(c2.Effective())); want != got {
			t.Errorf("printed, read and printed:\n%s\nwant:\n%s", got, want)
		}
	})
}
