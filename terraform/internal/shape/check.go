package shape

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Accepts says what is wrong with a text, "" where nothing is. It knows what
// needs no other field: the words and patterns that the admin API has, too. A
// text with a reference such as ${env:NAME} stands for what only the bridge
// knows.
func (f Field) Accepts(text string) string {
	switch {
	case strings.Contains(text, "${"):
		return ""
	case f.Words != nil && !slices.Contains(f.Words, text):
		return fmt.Sprintf("must be one of %s, got %q", strings.Join(f.Words, ", "), text)
	case f.Pattern != "" && !regexp.MustCompile(f.Pattern).MatchString(text):
		return fmt.Sprintf("must be %s, got %q", cmp.Or(f.Meant, "a text that matches "+f.Pattern), text)
	}
	return ""
}
