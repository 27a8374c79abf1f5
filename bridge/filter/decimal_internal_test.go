package filter

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecimal holds comparisons of numbers against math/big.
func FuzzDecimal(f *testing.F) {
	for _, pair := range [][2]string{
		{"1", "1.0"}, {"300", "3.0e2"}, {"-0", "0e5"}, {"0.1", "1e-1"}, {"12345678901234567890", "12345678901234567891"}, {"-1.5", "-15e-1"},
		{"0.00120", "12e-4"}, {"1e300", "1e301"}, {"-2", "1"}, {"9.99", "10"}, {"100E-2", "1e+0"}, {"-1e-300", "0"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ra, rb := rational(a), rational(b)
		if ra == nil || rb == nil {
			t.Skip()
		}
		if got, want := parseDecimal(a).compare(parseDecimal(b)), ra.Cmp(rb); got != want {
			t.Errorf("compare %s with %s = %d, want %d", a, b, got, want)
		}
	})
}

// rational is a JSON number of moderate size, nil for anything else.
func rational(text string) *big.Rat {
	if !json.Valid([]byte(text)) || strings.Trim(text, "0123456789+-.eE") != "" {
		return nil
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		if n, err := strconv.Atoi(text[e+1:]); err != nil || n > 1000 || n < -1000 {
			return nil
		}
	}
	r, _ := new(big.Rat).SetString(text)
	return r
}

// Exponents beyond all reason are compared without being written out.
func TestDecimalOfAnyExponent(t *testing.T) {
	t.Parallel()
	order := []string{"-1e99999999999999999999", "-1e400", "-1", "1e-99999999999999999999", "1e-400", "1", "1e400", "1e99999999999999999999"}
	for i, a := range order {
		for j, b := range order {
			if got, want := parseDecimal(a).compare(parseDecimal(b)), min(max(i-j, -1), 1); got != want {
				t.Errorf("compare %s with %s = %d, want %d", a, b, got, want)
			}
		}
	}
}

// FuzzWildcard holds wildcards against regular expressions.
func FuzzWildcard(f *testing.F) {
	for _, pair := range [][2]string{{"a*b", "aXb"}, {"*", ""}, {"a*a", "a"}, {"*a*b*", "xaybz"}, {`\**\\`, `*x\`}, {"a*ab*b", "aabb"}, {"", ""}, {"ab*b*b", "abb"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, text, s string) {
		c := &patternCompiler{}
		w, ok := c.wildcard("", text)
		if !ok || !utf8.ValidString(text) || !utf8.ValidString(s) {
			t.Skip()
		}
		var parts []string
		for _, part := range w.(wildcard).parts {
			parts = append(parts, regexp.QuoteMeta(part))
		}
		if stars := strings.Count(strings.NewReplacer(`\\`, "", `\*`, "").Replace(text), "*"); stars != len(parts)-1 {
			t.Fatalf("%q has %d stars, and %d parts", text, stars, len(parts))
		}
		want := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(s)
		if got := w.matches(&value{kind: kindText, text: s}); got != want {
			t.Errorf("%q matches %q: %t, want %t", text, s, got, want)
		}
	})
}
