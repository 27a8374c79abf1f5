package filter

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a JSON number as it is written, of any size and without loss: two
// ids of twenty digits that differ in the last one differ.
type decimal struct {
	negative bool
	// digits are those behind "0.", without zeros at either end; "" is zero.
	digits string
	// exponent is the power of ten they are multiplied with.
	exponent int64
}

// maxExponent is beyond what a text of a gigabyte can move the point.
const maxExponent = 1 << 40

// parseDecimal reads a valid JSON number. Exponents of more than twelve digits
// are cut to maxExponent.
func parseDecimal(text string) decimal {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := text, int64(0)
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		mantissa = text[:e]
		// Out of range it is the largest or the smallest there is.
		exponent, _ = strconv.ParseInt(text[e+1:], 10, 64)
		exponent = min(max(exponent, -maxExponent), maxExponent)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	significant := strings.TrimLeft(digits, "0")
	exponent += int64(len(whole) - (len(digits) - len(significant)))
	significant = strings.TrimRight(significant, "0")
	if significant == "" {
		return decimal{}
	}
	return decimal{negative: negative, digits: significant, exponent: exponent}
}

// compare is -1, 0 or +1.
func (d decimal) compare(other decimal) int {
	if c := cmp.Compare(d.sign(), other.sign()); c != 0 {
		return c
	}
	return d.sign() * cmp.Or(cmp.Compare(d.exponent, other.exponent), strings.Compare(d.digits, other.digits))
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}
