package filter

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/queenbridge/queenbridge/bridge"
)

// need says how much of a value an expression reads: all of it, or some members.
type need struct {
	whole   bool
	members map[string]*need
}

// member is the need of a member; nil where that is not read. All of a whole
// value is read.
func (n *need) member(name []byte) *need {
	if n.whole {
		return n
	}
	return n.members[string(name)]
}

// at is the need of what stands at a path, made where there is none.
func (n *need) at(path []string) *need {
	for _, name := range path {
		next := n.members[name]
		if next == nil {
			next = &need{}
			if n.members == nil {
				n.members = make(map[string]*need)
			}
			n.members[name] = next
		}
		n = next
	}
	return n
}

// add makes n the need of both.
func (n *need) add(other *need) {
	n.whole = n.whole || other.whole
	for name, of := range other.members {
		n.at([]string{name}).add(of)
	}
}

// reads is what an expression reads of the values that are decoded for it.
type reads struct{ body, headers, query need }

func (r *reads) add(other *reads) {
	r.body.add(&other.body)
	r.headers.add(&other.headers)
	r.query.add(&other.query)
}

func (r *reads) of(field string) *need {
	switch field {
	case "body":
		return &r.body
	case "headers":
		return &r.headers
	case "query":
		return &r.query
	}
	return &need{} // of no interest
}

// scanner walks over an expression as it was written.
type scanner struct {
	source   string
	tree     *ast.AST
	reads    reads
	problems []Problem
}

// scan finds what an expression reads, and the mistakes for which CEL has no
// words of this domain.
func scan(source string, tree *ast.AST) *scanner {
	s := &scanner{source: source, tree: tree}
	s.expr(tree.Expr())
	return s
}

func (s *scanner) fail(e ast.Expr, format string, args ...any) {
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, problemAt(s.source, s.tree, e.ID(), fmt.Sprintf(format, args...)))
	}
}

// expr visits an expression and all that stands in it.
func (s *scanner) expr(e ast.Expr) {
	if c, ofEvent := eventChain(e); ofEvent {
		s.read(c)
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		s.call(e)
	case ast.SelectKind:
		s.expr(e.AsSelect().Operand())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			s.expr(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			s.expr(entry.AsMapEntry().Key())
			s.expr(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			s.expr(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		s.loop(e)
	}
}

func (s *scanner) call(e ast.Expr) {
	c := e.AsCall()
	if c.FunctionName() == "format" {
		s.fail(e, "format is not taken: its cost has no bound (put texts together with +, string() and join())")
	}
	if c.IsMemberFunction() {
		s.expr(c.Target())
	}
	for _, arg := range c.Args() {
		s.expr(arg)
	}
}

func (s *scanner) loop(e ast.Expr) {
	c := e.AsComprehension()
	if c.IterVar() == "event" || c.IterVar2() == "event" {
		s.fail(e, "event is the event: the variable of a loop needs another name")
	}
	for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
		s.expr(part)
	}
}

// read notes what is read of the event.
func (s *scanner) read(c eventRead) {
	if len(c.path) == 0 {
		s.fail(c.first, "event is no value by itself: read one of its fields, %s", listOf(fields))
		return
	}
	field := c.path[0]
	switch {
	case !slices.Contains(fields, field):
		text := "an event has no field " + quoted(field)
		if near := bridge.Nearest(field, fields); near != "" {
			s.fail(c.first, "%s (did you mean event.%s?)", text, near)
		} else {
			s.fail(c.first, "%s: it has %s", text, listOf(fields))
		}
	case c.byIndex:
		s.fail(c.first, "a field of an event is written event.%s", field)
	case len(c.path) == 1 && c.test:
		s.fail(c.first, "an event always has event.%s, empty or not: has() asks for members of the body, the headers and the query", field)
	case c.test: // whether it is there is enough
		s.reads.of(field).at(c.path[1:])
	default:
		s.reads.of(field).at(c.path[1:]).whole = true
	}
}

// eventRead is a chain of names by which an expression reads from the event:
// event.body["a"].?b has the path body, a, b.
type eventRead struct {
	path    []string
	first   ast.Expr // the first step, or event itself
	byIndex bool     // the first step is not event.name
	test    bool     // has() of it
}

func eventChain(e ast.Expr) (c eventRead, ofEvent bool) {
	c.test = e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly()
	c.first = e
	for {
		name, operand, isStep := step(e)
		if !isStep {
			break
		}
		c.path, c.first, e = append(c.path, name), e, operand
		c.byIndex = c.first.Kind() != ast.SelectKind
	}
	slices.Reverse(c.path)
	return c, e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == "event"
}

// step is the last step of a chain of names and what it is a step from.
func step(e ast.Expr) (name string, operand ast.Expr, isStep bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), e.AsSelect().Operand(), true
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if len(c.Args()) == 2 && c.Args()[1].Kind() == ast.LiteralKind {
				key, isText := c.Args()[1].AsLiteral().(types.String)
				return string(key), c.Args()[0], isText
			}
		}
	}
	return "", nil, false
}

func listOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
