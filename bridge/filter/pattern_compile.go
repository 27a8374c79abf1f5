package filter

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge"
)

// Bounds of a pattern. EventBridge's own is 2,048 characters.
const (
	maxPatternDepth   = 32     // of maps in maps
	maxPatternParts   = 10_000 // names, alternatives and values in all
	maxPatternText    = 4 << 10
	maxPatternSize    = 64 << 10 // of all texts
	maxPatternProblem = 100
)

// patternCompiler makes a pattern of what was decoded and collects what is
// wrong with it.
type patternCompiler struct {
	problems []bridge.Problem
	parts    int
	size     int
	tooMuch  bool // and said so
}

func (c *patternCompiler) fail(at, format string, args ...any) {
	if len(c.problems) < maxPatternProblem {
		c.problems = append(c.problems, bridge.Problem{Path: at, Text: fmt.Sprintf(format, args...)})
	}
}

// part counts a part of the pattern with its text; false where it is too much.
func (c *patternCompiler) part(at, text string) bool {
	c.parts++
	c.size += len(text)
	switch {
	case c.tooMuch:
		return false
	case c.parts > maxPatternParts || c.size > maxPatternSize:
		c.tooMuch = true
		c.fail(at, "is too much: a pattern has at most %d names and values, of %d bytes together", maxPatternParts, maxPatternSize)
		return false
	case len(text) > maxPatternText:
		c.fail(at, "is %d bytes long, the most is %d", len(text), maxPatternText)
		return false
	case !utf8.ValidString(text):
		c.fail(at, "is no text in UTF-8")
		return false
	}
	return true
}

// foreign are fields of AWS's events, and what comes nearest here.
var foreign = map[string]string{"detail": "body", "detail-type": "type", "resources": "body", "account": "source", "region": "source"}

// document compiles the whole: an object whose members are the event's fields.
func (c *patternCompiler) document(v any, into *object) {
	members, isMap := v.(map[string]any)
	if !isMap {
		c.fail("", "must be a map from fields of the event to lists of alternatives, such as {type: [push]}")
		return
	}
	if len(members) == 0 {
		c.fail("", "is empty: leave it out where every event is wanted")
		return
	}
	c.members(place{}, members, into)
	slices.SortStableFunc(into.fields, func(a, b field) int {
		return slices.Index(fields, a.name) - slices.Index(fields, b.name)
	})
}

// place is where in a pattern the compiler is.
type place struct {
	at    string   // in the pattern: body.$or[0].ref
	path  []string // in the event: body, ref
	depth int
}

func (p place) in(name string) place {
	return place{at: join(p.at, name), path: append(slices.Clip(p.path), name), depth: p.depth + 1}
}

// join is the path of a part, on one line; either may be the whole, "".
func join(at, name string) string {
	name = cut(printable(name), 200)
	if at == "" || name == "" {
		return at + name
	}
	return at + "." + name
}

func (c *patternCompiler) members(p place, members map[string]any, into *object) {
	if p.depth >= maxPatternDepth {
		c.fail(p.at, "too much stands in one another: at most %d maps", maxPatternDepth)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !c.part(join(p.at, name), name) {
			continue
		}
		if name == "$or" {
			c.or(p, members[name], into)
			continue
		}
		if c.known(p, name) {
			c.field(p.in(name), members[name], into)
		}
	}
}

// known checks the names that are fixed: those of the event, and the case of
// headers.
func (c *patternCompiler) known(p place, name string) bool {
	switch {
	case len(p.path) == 0 && !slices.Contains(fields, name):
		text := "an event has no field " + quoted(name)
		switch near := bridge.Nearest(name, fields); {
		case foreign[name] != "":
			c.fail(join(p.at, name), "%s: what EventBridge calls so comes nearest to %s", text, foreign[name])
		case near != "":
			c.fail(join(p.at, name), "%s (did you mean %q?)", text, near)
		default:
			c.fail(join(p.at, name), "%s: it has %s", text, listOf(fields))
		}
		return false
	case len(p.path) == 1 && p.path[0] == "headers" && name != strings.ToLower(name):
		c.fail(join(p.at, name), "names of headers are in lower case: write %s", strings.ToLower(name))
		return false
	}
	return true
}

func (c *patternCompiler) field(p place, v any, into *object) {
	f := field{name: p.path[len(p.path)-1], path: p.path}
	texts := p.path[0] == "headers" || p.path[0] == "query"
	single := p.path[0] != "body" && (!texts || len(p.path) == 2)
	switch v := v.(type) {
	case []any:
		if texts && len(p.path) == 1 {
			c.fail(p.at, "must be a map of names, such as {%s: {name: [value]}}", p.path[0])
			return
		}
		f.alternatives = c.alternatives(p.at, v)
	case map[string]any:
		switch {
		case single:
			c.fail(p.at, "is a text without members: give a list of alternatives")
			return
		case len(v) == 0:
			c.fail(p.at, "is empty: give members, or leave it out")
			return
		}
		f.nested = &object{}
		c.members(p, v, f.nested)
	default:
		c.fail(p.at, "must be a list of alternatives, such as [%s]", show(v))
		return
	}
	into.fields = append(into.fields, f)
}

// show is a single value as it is written in a list. What stands in another
// may come from a reference, and is never shown.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return quoted(v)
	case bool:
		return strconv.FormatBool(v)
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	text, _ := numberText(v)
	return cut(text, 64)
}

func (c *patternCompiler) or(p place, v any, into *object) {
	at := join(p.at, "$or")
	list, isList := v.([]any)
	if !isList || len(list) < 2 {
		c.fail(at, "must be a list of two or more patterns")
		return
	}
	branches := make([]*object, 0, len(list))
	for i, item := range list {
		at := index(at, i)
		members, isMap := item.(map[string]any)
		if !isMap || len(members) == 0 {
			c.fail(at, "must be a map of fields, as any pattern")
			continue
		}
		if !c.part(at, "") {
			return
		}
		branch := &object{}
		c.members(place{at: at, path: p.path, depth: p.depth + 1}, members, branch)
		branches = append(branches, branch)
	}
	into.ors = append(into.ors, branches)
}

func index(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

func (c *patternCompiler) alternatives(at string, list []any) []alternative {
	if len(list) == 0 {
		c.fail(at, "is empty: no event would match")
		return nil
	}
	alternatives := make([]alternative, 0, len(list))
	for i, item := range list {
		a, ok := c.alternative(index(at, i), item)
		if ok {
			alternatives = append(alternatives, a)
		}
		if c.tooMuch {
			break
		}
	}
	return alternatives
}

func (c *patternCompiler) alternative(at string, v any) (alternative, bool) {
	switch v := v.(type) {
	case map[string]any:
		return c.operator(at, v)
	case []any:
		c.fail(at, "must be a single value or an operator, not a list in a list")
		return nil, false
	}
	return c.single(at, v)
}

// single compiles a value that is compared as a whole.
func (c *patternCompiler) single(at string, v any) (alternative, bool) {
	switch v := v.(type) {
	case nil:
		return exactly{kind: kindNull}, c.part(at, "")
	case bool:
		if v {
			return exactly{kind: kindTrue}, c.part(at, "")
		}
		return exactly{kind: kindFalse}, c.part(at, "")
	case string:
		return exactly{kind: kindText, text: v}, c.part(at, v)
	}
	text, isNumber := numberText(v)
	if !isNumber {
		c.fail(at, "is no JSON number")
		return nil, false
	}
	return exactly{kind: kindNumber, text: text, number: parseDecimal(text)}, c.part(at, text)
}

// numberText is how a decoded number is written in JSON; false where it is none.
func numberText(v any) (string, bool) {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), !math.IsInf(v, 0) && !math.IsNaN(v)
	case json.Number:
		return v.String(), json.Valid([]byte(v)) && strings.Trim(v.String(), "0123456789+-.eE") == ""
	}
	return "", false
}
