package bridge

import (
	"fmt"
	"strings"
	"time"
)

// FormatDuration writes d as configuration files do: 30s, 1h30m, 0s, without
// the zero units of time.Duration's own form.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// oneOf is the problem of a word that is none of the allowed ones.
func oneOf(words []string, got string) string {
	return fmt.Sprintf("must be %s, got %q", orList(words), got)
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
