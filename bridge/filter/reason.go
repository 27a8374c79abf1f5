package filter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// plainErrors are messages of CEL that tell nothing of the event's content.
var plainErrors = []string{"division by zero", "modulus by zero", "integer overflow",
	"unsigned integer overflow", "duration overflow", "timestamp overflow"}

// reason is why an evaluation failed, with its place in the expression. CEL's
// own messages may quote what the event holds: only their kind is told on.
func (x *expression) reason(err error) string {
	var at *types.Err
	if !errors.As(err, &at) {
		return "cannot be evaluated for this event"
	}
	text := x.reasonText(at.Error(), find(x.tree, at.NodeID()))
	if at.NodeID() <= 0 {
		return text
	}
	p := problemAt(x.source, x.tree, at.NodeID(), text)
	if p.oneLine {
		return fmt.Sprintf("at column %d: %s", p.Column, text)
	}
	return fmt.Sprintf("at line %d, column %d: %s", p.Line, p.Column, text)
}

func (x *expression) reasonText(message string, at ast.Expr) string {
	if key, is := strings.CutPrefix(message, "no such key: "); is {
		return missingMember(key, at)
	}
	switch {
	case slices.Contains(plainErrors, message):
		return message
	case strings.HasPrefix(message, "no such overload"):
		return operatorOf(at) + " does not go with the types it finds in this event"
	case strings.HasPrefix(message, "unsupported index type"):
		return "what it finds in this event is a list, which has no members by name"
	case strings.HasPrefix(message, "index out of bounds"):
		return "the list has no such element in this event"
	case strings.HasPrefix(message, "type conversion error"), strings.HasPrefix(message, "invalid RFC 3339"),
		strings.HasPrefix(message, "range error"):
		return "what it finds in this event cannot be converted"
	case strings.Contains(message, "regex") || strings.Contains(message, "error parsing regexp"):
		return "what it finds in this event is no regular expression (RE2)"
	}
	return "cannot be evaluated for this event"
}

// missingMember names the member where the expression itself does: a computed
// name may come from the event.
func missingMember(key string, at ast.Expr) string {
	path, literal := chain(at)
	if path == "" || !slices.Contains(literal, key) {
		return "the event has no such member"
	}
	return fmt.Sprintf("%s: this event has no member %s (ask with has(), or read it with .? and orValue())", cut(path, 100), quoted(key))
}

// chain is how a chain of names is written, and its names; "" for what is none.
func chain(e ast.Expr) (path string, names []string) {
	if e == nil {
		return "", nil
	}
	if e.Kind() == ast.IdentKind {
		return e.AsIdent(), nil
	}
	name, operand, isStep := step(e)
	if !isStep {
		return indexed(e)
	}
	path, names = chain(operand)
	if path == "" {
		return "", nil
	}
	if e.Kind() == ast.SelectKind {
		return path + "." + name, append(names, name)
	}
	return path + "[" + strconv.Quote(name) + "]", append(names, name)
}

// indexed is a chain that ends with the index of a list.
func indexed(e ast.Expr) (path string, names []string) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Index || len(e.AsCall().Args()) != 2 {
		return "", nil
	}
	if path, names = chain(e.AsCall().Args()[0]); path == "" {
		return "", nil
	}
	return path + "[…]", names
}

// operatorOf names what a node does.
func operatorOf(e ast.Expr) string {
	if e == nil || e.Kind() != ast.CallKind {
		return "an operation"
	}
	name := e.AsCall().FunctionName()
	if name == operators.Conditional {
		return "? :"
	}
	if operator, is := operators.FindReverse(name); is && operator != "" {
		return operator
	}
	return strings.Trim(name, "_@")
}
