package filter

import (
	"net/netip"
	"strings"
	"unicode/utf8"
)

// exactly is a value that is equal to another: texts letter by letter, numbers
// by value (300 and 3e2 are one).
type exactly struct {
	kind   kind
	text   string
	number decimal
}

func (x exactly) matches(v *value) bool {
	switch {
	case v.kind != x.kind:
		return false
	case v.kind == kindText || v.text == x.text:
		return v.text == x.text
	case v.kind == kindNumber:
		return parseDecimal(v.text).compare(x.number) == 0
	}
	return true
}

// affix is a beginning or an end of a text.
type affix struct {
	text       string
	end        bool
	ignoreCase bool
}

func (a affix) matches(v *value) bool {
	switch {
	case v.kind != kindText:
		return false
	case a.ignoreCase && a.end:
		return strings.EqualFold(lastRunes(v.text, utf8.RuneCountInString(a.text)), a.text)
	case a.ignoreCase:
		return strings.EqualFold(firstRunes(v.text, utf8.RuneCountInString(a.text)), a.text)
	case a.end:
		return strings.HasSuffix(v.text, a.text)
	}
	return strings.HasPrefix(v.text, a.text)
}

// firstRunes are the first n characters of s.
func firstRunes(s string, n int) string {
	end := 0
	for ; n > 0 && end < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end]
}

// lastRunes are the last n characters of s.
func lastRunes(s string, n int) string {
	start := len(s)
	for ; n > 0 && start > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	return s[start:]
}

// sameLetters is a text in upper or lower case.
type sameLetters struct{ text string }

func (s sameLetters) matches(v *value) bool {
	return v.kind == kindText && strings.EqualFold(v.text, s.text)
}

// wildcard is a text with gaps of any length: its parts stand in the text in
// this order, the first at the beginning and the last at the end. Looking for
// each from where the one before ended takes no second look: the time is that
// of reading the text once.
type wildcard struct{ parts []string }

func (w wildcard) matches(v *value) bool {
	if v.kind != kindText {
		return false
	}
	first, last := w.parts[0], w.parts[len(w.parts)-1]
	if len(w.parts) == 1 {
		return v.text == first
	}
	rest, begins := strings.CutPrefix(v.text, first)
	rest, ends := strings.CutSuffix(rest, last)
	if !begins || !ends {
		return false
	}
	for _, part := range w.parts[1 : len(w.parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return true
}

// bounds are one or two limits of a number.
type bounds []bound

type bound struct {
	operator string
	number   decimal
}

func (b bounds) matches(v *value) bool {
	if v.kind != kindNumber {
		return false
	}
	number := parseDecimal(v.text)
	for _, limit := range b {
		if !limit.holds(number.compare(limit.number)) {
			return false
		}
	}
	return true
}

// holds says whether a number that compares like that is within the limit.
func (b bound) holds(compared int) bool {
	switch b.operator {
	case "<":
		return compared < 0
	case "<=":
		return compared <= 0
	case ">":
		return compared > 0
	case ">=":
		return compared >= 0
	}
	return compared == 0
}

// network is a range of IP addresses, IPv4 ones also as they are written in
// IPv6 (::ffff:192.0.2.1).
type network struct{ prefix netip.Prefix }

func (n network) matches(v *value) bool {
	const longest = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")
	if v.kind != kindText || len(v.text) > longest {
		return false
	}
	address, err := netip.ParseAddr(v.text)
	return err == nil && n.prefix.Contains(address.Unmap())
}

// present is any single value, null too.
type present struct{}

func (present) matches(*value) bool { return true }

// absent is the lack of any single value at the field's path: field.matches
// asks the whole document for it.
type absent struct{}

func (absent) matches(*value) bool { return false }

// anythingBut is a single value of any kind that none of these matches.
type anythingBut []alternative

func (a anythingBut) matches(v *value) bool {
	for _, unwanted := range a {
		if unwanted.matches(v) {
			return false
		}
	}
	return true
}
