package filter

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// operatorNames are the operators of the pattern language.
var operatorNames = []string{"anything-but", "cidr", "equals-ignore-case", "exists", "numeric", "prefix", "suffix", "wildcard"}

// operator compiles {prefix: x} and the like.
func (c *patternCompiler) operator(at string, members map[string]any) (alternative, bool) {
	name, argument, ok := c.only(at, members, operatorNames)
	if !ok {
		return nil, false
	}
	at = join(at, name)
	switch name {
	case "anything-but":
		return c.anythingBut(at, argument)
	case "cidr":
		return c.cidr(at, argument)
	case "exists":
		return c.exists(at, argument)
	case "numeric":
		return c.numeric(at, argument)
	}
	return c.textual(at, name, argument)
}

// only is the one member of an operator's map.
func (c *patternCompiler) only(at string, members map[string]any, known []string) (name string, argument any, ok bool) {
	if len(members) != 1 {
		c.fail(at, "must be one operator: %s", orOf(known))
		return "", nil, false
	}
	for name, argument = range members {
	}
	if slices.Contains(known, name) {
		return name, argument, c.part(join(at, name), "")
	}
	if near := bridge.Nearest(name, known); near != "" {
		c.fail(join(at, name), "is no operator (did you mean %q?)", near)
	} else {
		c.fail(join(at, name), "is no operator: it is one of %s; members of a value are asked for without a list around them", orOf(known))
	}
	return "", nil, false
}

func orOf(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// textual compiles the operators that take a text.
func (c *patternCompiler) textual(at, name string, argument any) (alternative, bool) {
	ignoreCase := false
	if inner, isMap := argument.(map[string]any); isMap && (name == "prefix" || name == "suffix") {
		_, text, ok := c.only(at, inner, []string{"equals-ignore-case"})
		if !ok {
			return nil, false
		}
		at, argument, ignoreCase = join(at, "equals-ignore-case"), text, true
	}
	text, isText := argument.(string)
	switch {
	case !isText:
		c.fail(at, "must be a text, got %s", show(argument))
		return nil, false
	case !c.part(at, text):
		return nil, false
	case text == "" && name != "equals-ignore-case":
		c.fail(at, "must not be empty")
		return nil, false
	}
	switch name {
	case "prefix", "suffix":
		return affix{text: text, end: name == "suffix", ignoreCase: ignoreCase}, true
	case "wildcard":
		return c.wildcard(at, text)
	}
	return sameLetters{text: text}, true
}

// wildcard splits a text at its stars; \* and \\ stand for themselves.
func (c *patternCompiler) wildcard(at, text string) (alternative, bool) {
	var w wildcard
	var part strings.Builder
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\\':
			if i+1 == len(text) || text[i+1] != '*' && text[i+1] != '\\' {
				c.fail(at, `has a \ before what is neither * nor \: write \\ for the character itself`)
				return nil, false
			}
			i++
			part.WriteByte(text[i])
		case b == '*' && i > 0 && text[i-1] == '*' && part.Len() == 0:
			c.fail(at, "has two * side by side: one stands for any number of characters")
			return nil, false
		case b == '*':
			w.parts = append(w.parts, part.String())
			part.Reset()
		default:
			part.WriteByte(b)
		}
	}
	w.parts = append(w.parts, part.String())
	return w, true
}

func (c *patternCompiler) cidr(at string, argument any) (alternative, bool) {
	text, _ := argument.(string)
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return network{netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())}, true
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is4In6() {
		c.fail(at, "must be a range of addresses such as 10.0.0.0/24 or 2001:db8::/32, got %s", show(argument))
		return nil, false
	}
	return network{prefix.Masked()}, true
}

func (c *patternCompiler) exists(at string, argument any) (alternative, bool) {
	switch argument {
	case true:
		return present{}, true
	case false:
		return absent{}, true
	}
	c.fail(at, "must be true or false, got %s", show(argument))
	return nil, false
}

func (c *patternCompiler) numeric(at string, argument any) (alternative, bool) {
	list, _ := argument.([]any)
	if len(list) != 2 && len(list) != 4 {
		c.fail(at, `must be one comparison or two, such as ["=", 5] or [">", 0, "<=", 5]`)
		return nil, false
	}
	var b bounds
	for i := 0; i < len(list); i += 2 {
		limit, ok := c.bound(index(at, i), index(at, i+1), list[i], list[i+1])
		if !ok {
			return nil, false
		}
		b = append(b, limit)
	}
	return b, c.inOrder(at, b)
}

func (c *patternCompiler) bound(operatorAt, numberAt string, operator, number any) (b bound, ok bool) {
	known := []string{"=", "<", "<=", ">", ">="}
	word, _ := operator.(string)
	if !slices.Contains(known, word) {
		c.fail(operatorAt, "must be %s, got %s", orOf(known), show(operator))
		return bound{}, false
	}
	text, isNumber := numberText(number)
	if !isNumber {
		c.fail(numberAt, "must be a number, got %s", show(number))
		return bound{}, false
	}
	return bound{operator: word, number: parseDecimal(text)}, c.part(numberAt, text)
}

// inOrder checks that two bounds are a range, the lower one first, with a
// number in it.
func (c *patternCompiler) inOrder(at string, b bounds) bool {
	if len(b) == 1 {
		return true
	}
	if b[0].operator[0] != '>' || b[1].operator[0] != '<' {
		c.fail(at, `must be a range with the lower bound first, such as [">", 0, "<=", 5]`)
		return false
	}
	closed := b[0].operator == ">=" && b[1].operator == "<="
	if order := b[0].number.compare(b[1].number); order > 0 || order == 0 && !closed {
		c.fail(at, "has no number between its bounds")
		return false
	}
	return true
}

// anythingBut takes texts, numbers, or an operator on texts.
func (c *patternCompiler) anythingBut(at string, argument any) (alternative, bool) {
	if members, isMap := argument.(map[string]any); isMap {
		name, inner, ok := c.only(at, members, []string{"equals-ignore-case", "prefix", "suffix", "wildcard"})
		if !ok {
			return nil, false
		}
		return c.noneOf(join(at, name), inner, func(at string, v any) (alternative, bool) { return c.textual(at, name, v) })
	}
	return c.noneOf(at, argument, func(at string, v any) (alternative, bool) {
		if _, isNumber := numberText(v); !isNumber {
			if _, isText := v.(string); !isText {
				c.fail(at, "must be a text or a number, got %s", show(v))
				return nil, false
			}
		}
		return c.single(at, v)
	})
}

// noneOf compiles one value or a list of them.
func (c *patternCompiler) noneOf(at string, argument any, compile func(at string, v any) (alternative, bool)) (alternative, bool) {
	list, isList := argument.([]any)
	if !isList {
		a, ok := compile(at, argument)
		return anythingBut{a}, ok
	}
	if len(list) == 0 {
		c.fail(at, "is empty: use {exists: true} for anything at all")
		return nil, false
	}
	all := true
	var unwanted anythingBut
	for i, v := range list {
		a, ok := compile(index(at, i), v)
		unwanted, all = append(unwanted, a), all && ok
		if c.tooMuch {
			return nil, false
		}
	}
	return unwanted, all
}
