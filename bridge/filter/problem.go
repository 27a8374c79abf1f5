package filter

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// maxProblems bounds what is said of one expression: most follow from the first.
const maxProblems = 5

// CompileError lists what is wrong with an expression.
type CompileError struct{ Problems []Problem }

func (e *CompileError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// Problem is one thing wrong with an expression.
type Problem struct {
	// Line and Column say where, from 1, in characters; 0 where the problem is
	// one of the whole.
	Line, Column int
	// Near is the text that stands there, cut short; "" at the end.
	Near string
	Text string

	oneLine bool // the expression has but one line
}

// String is at column 7, `tpye == "push"`: an event has no field "tpye" (did
// you mean event.type?).
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	near := "the end"
	if p.Near != "" {
		near = "`" + p.Near + "`"
	}
	if p.oneLine {
		return fmt.Sprintf("at column %d, %s: %s", p.Column, near, p.Text)
	}
	return fmt.Sprintf("at line %d, column %d, %s: %s", p.Line, p.Column, near, p.Text)
}

// maxNear is how many characters of an expression a problem shows.
const maxNear = 24

// problemIn is a problem at a place of the source; column counts from 0.
func problemIn(source string, line, column int, text string) Problem {
	lines := strings.Split(source, "\n")
	p := Problem{Line: max(line, 1), Column: max(column, 0) + 1, Text: text, oneLine: len(lines) == 1}
	if p.Line > len(lines) {
		return p
	}
	rest := []rune(lines[p.Line-1])
	rest = rest[min(p.Column-1, len(rest)):]
	// CEL places a step at the dot before its name.
	for len(rest) > 1 && (rest[0] == '.' || rest[0] == '?') {
		rest, p.Column = rest[1:], p.Column+1
	}
	p.Near = strings.TrimSpace(printable(cut(string(rest), maxNear)))
	return p
}

// problemAt is a problem of a node of the tree.
func problemAt(source string, tree *ast.AST, id int64, text string) Problem {
	if id <= 0 {
		return Problem{Text: text}
	}
	at := tree.SourceInfo().GetStartLocation(id)
	return problemIn(source, at.Line(), at.Column(), text)
}

// syntaxError is the first of the parser's findings: the others follow from it.
func syntaxError(source string, issues *cel.Issues) error {
	first := issues.Errors()[0]
	for _, e := range issues.Errors() {
		if e.Location.Line() < first.Location.Line() ||
			e.Location.Line() == first.Location.Line() && e.Location.Column() < first.Location.Column() {
			first = e
		}
	}
	p := problemIn(source, first.Location.Line(), first.Location.Column(), "")
	p.Text = syntaxText(strings.TrimPrefix(first.Message, "Syntax error: "), p.Near)
	return &CompileError{Problems: []Problem{p}}
}

// habits are words of other languages, and what they are in CEL.
var habits = map[string]string{"and": "&&", "or": "||", "not": "!", "AND": "&&", "OR": "||", "NOT": "!", "=": "==", "===": "==", "!==": "!="}

// syntaxText says in plain words what the parser says with its grammar.
func syntaxText(message, near string) string {
	word, _, _ := strings.Cut(near, " ")
	meant := habits[word]
	switch {
	case meant != "":
		return fmt.Sprintf("%s is written %s", word, meant)
	case strings.HasPrefix(near, `"`) || strings.HasPrefix(near, "'"):
		if strings.HasPrefix(message, "token recognition error") {
			return "the text that begins here does not end"
		}
		return "this text does not belong here"
	case near == "":
		return "the expression ends too early"
	case strings.HasPrefix(message, "token recognition error"):
		return "this is no part of the language"
	case strings.HasPrefix(message, "mismatched input"), strings.HasPrefix(message, "extraneous input"), strings.HasPrefix(message, "no viable alternative"):
		return "this does not belong here"
	case strings.Contains(message, "recursion limit"):
		return "too much stands in one another"
	}
	return oneLine(message)
}

// typeError lists what the type checker found.
func typeError(source string, tree *ast.AST, issues *cel.Issues) error {
	e := &CompileError{}
	for _, found := range issues.Errors() {
		if len(e.Problems) == maxProblems {
			break
		}
		text := typeText(found.Message, isCall(tree, found.ExprID))
		e.Problems = append(e.Problems, problemIn(source, found.Location.Line(), found.Location.Column(), text))
	}
	return e
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'(.*)$`)
	noOverload = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
	noMembers  = regexp.MustCompile(`^type '([^']*)' does not support field selection$`)
	meant      = regexp.MustCompile(`^ \(did you mean ('[^']*'(?: or '[^']*')?)\?\)$`)
)

// typeText says in plain words what the type checker says.
func typeText(message string, call bool) string {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		return unknownText(m[1], m[2], call)
	}
	if m := noOverload.FindStringSubmatch(message); m != nil {
		name := m[1]
		if operator, is := operators.FindReverse(name); is && operator != "" {
			name = operator
		}
		return fmt.Sprintf("%s does not take %s", strings.TrimPrefix(name, "@"), m[2])
	}
	if m := noMembers.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("a %s has no members", m[1])
	}
	if strings.HasPrefix(message, "invalid matches argument") {
		return "this is no regular expression (RE2)"
	}
	return oneLine(message)
}

// unknownText is about a name that is not known; hint is CEL's suggestion, or
// advice to change this program.
func unknownText(name, hint string, call bool) string {
	if !meant.MatchString(hint) {
		hint = ""
	}
	if call {
		return "there is no function " + quoted(name) + hint
	}
	first, _, _ := strings.Cut(name, ".")
	for _, field := range fields {
		if first == field {
			return fmt.Sprintf("%s is not known (did you mean event.%s?)", quoted(name), name)
		}
	}
	if hint == "" {
		hint = ": all there is is event and its fields"
	}
	return quoted(name) + " is not known" + hint
}

// isCall says that a node is the call of a function.
func isCall(tree *ast.AST, id int64) bool {
	e := find(tree, id)
	return e != nil && e.Kind() == ast.CallKind
}

// find is the node with an id; nil where there is none.
func find(tree *ast.AST, id int64) (found ast.Expr) {
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id {
			found = e
		}
	}))
	return found
}

func quoted(s string) string { return strconv.Quote(cut(s, 64)) }

// oneLine makes a short line of a message.
func oneLine(s string) string { return cut(printable(strings.Join(strings.Fields(s), " ")), 200) }

// printable shows what cannot be shown as a space.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
