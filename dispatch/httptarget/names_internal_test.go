package httptarget

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamesAreMadeOnceAndBounded(t *testing.T) {
	t.Parallel()
	var k names
	for range 2 { // the second time from memory
		for line, want := range map[string]string{
			"x-github-event": "X-Github-Event", "X-GITHUB-EVENT": "X-Github-Event", "host": "", "connection": "", "bad name": "", "": "",
			strings.Repeat("x", 100): "X" + strings.Repeat("x", 99),
		} {
			if got := k.of(line); got != want {
				t.Errorf("of(%q) = %q, want %q", line, got, want)
			}
		}
	}
	for i := range 2 * maxNames {
		if got, want := k.of(fmt.Sprint("x-", i)), fmt.Sprint("X-", i); got != want {
			t.Fatalf("of(x-%d) = %q", i, got)
		}
	}
	n := 0
	k.known.Range(func(line, _ any) bool {
		n++
		return len(line.(string)) <= maxName
	})
	if n != maxNames {
		t.Errorf("%d names are remembered, want %d", n, maxNames)
	}
}
