package filter

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
)

// Pattern is a compiled event pattern in the language of Amazon EventBridge
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-patterns.html),
// over the document of config.md: see "Patterns" in the package documentation.
// It has the methods of a Filter.
type Pattern struct {
	root      object
	body      wanted
	headers   need
	query     need
	documents sync.Pool // of *document
}

// CompilePattern compiles a pattern as it was decoded: maps, lists, texts,
// numbers, booleans and nil. Numbers may be int, int64, uint64, float64 or
// json.Number; the latter keeps those exact that are no float64. The error is a
// *PatternError that lists everything wrong with it, or a sample of a hundred.
func CompilePattern(v any) (*Pattern, error) {
	var c patternCompiler
	p := &Pattern{}
	c.document(v, &p.root)
	if len(c.problems) > 0 {
		return nil, &PatternError{Problems: c.problems}
	}
	p.root.eachLeaf(func(path []string) {
		switch path[0] {
		case "body":
			p.body.at(path[1:]).leaf = true
		case "headers":
			p.headers.at(path[1:]).whole = true
		case "query":
			p.query.at(path[1:]).whole = true
		}
	})
	return p, nil
}

// Match says whether the pattern matches an event, which it does not change or
// keep. The error is ErrTooCostly, where the pattern asks for more of a body
// than may be decoded, or the cause of ctx where that ended before. It may be
// called by many goroutines at once.
func (p *Pattern) Match(ctx context.Context, e *bridge.Event) (bool, error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("match: %w", context.Cause(ctx))
	}
	d, _ := p.documents.Get().(*document)
	if d == nil {
		d = &document{pattern: p}
	}
	d.event = e
	match := p.root.matches(d, value{kind: kindDocument})
	err := d.err
	d.forget()
	p.documents.Put(d)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrTooCostly, err)
	}
	return match, nil
}

// PatternError lists what is wrong with a pattern, each problem at its path
// inside it, such as body.ref[0].prefix; "" is the whole.
type PatternError struct{ Problems []bridge.Problem }

func (e *PatternError) Error() string { return problemTexts(e.Problems) }

func problemTexts(problems []bridge.Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = strings.TrimPrefix(p.String(), ": ")
	}
	return strings.Join(texts, "; ")
}

// object is a part of a pattern that names members.
type object struct {
	fields []field     // each must match
	ors    [][]*object // of each, one must
}

// field is what a pattern asks of one member: either alternatives, of which one
// must match, or members of it.
type field struct {
	name         string
	path         []string // of the member, from the event
	alternatives []alternative
	nested       *object
}

// alternative is one way in which a single value can match.
type alternative interface{ matches(v *value) bool }

// matches says whether a value has the members that are asked for. Of a list,
// one element must have all of them; what has no members counts as an object
// without any, to which absent members are absent.
func (o *object) matches(d *document, v value) bool {
	if v.kind == kindList && len(v.items) > 0 {
		for i := range v.items {
			if o.matches(d, v.items[i]) {
				return true
			}
		}
		return false
	}
	for i := range o.fields {
		if !o.fields[i].matches(d, v.member(d, o.fields[i].name)) {
			return false
		}
	}
	for _, branches := range o.ors {
		if !anyMatches(branches, d, v) {
			return false
		}
	}
	return true
}

func anyMatches(branches []*object, d *document, v value) bool {
	for _, branch := range branches {
		if branch.matches(d, v) {
			return true
		}
	}
	return false
}

func (f *field) matches(d *document, v value) bool {
	if f.nested != nil {
		return f.nested.matches(d, v)
	}
	for _, a := range f.alternatives {
		if _, isAbsent := a.(absent); isAbsent {
			if !(value{kind: kindDocument}).exists(d, f.path) {
				return true
			}
			continue
		}
		if v.anySingle(a.matches) {
			return true
		}
	}
	return false
}

// eachLeaf calls visit with the path of each member that is compared.
func (o *object) eachLeaf(visit func(path []string)) {
	for i := range o.fields {
		if f := &o.fields[i]; f.nested != nil {
			f.nested.eachLeaf(visit)
		} else {
			visit(f.path)
		}
	}
	for _, branches := range o.ors {
		for _, branch := range branches {
			branch.eachLeaf(visit)
		}
	}
}
