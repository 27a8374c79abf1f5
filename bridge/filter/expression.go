package filter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/queenbridge/queenbridge/bridge"
)

// expression is a compiled expression over an event. It is not changed once it
// is made.
type expression struct {
	source  string
	tree    *ast.AST
	program cel.Program
	reads   reads
	inputs  sync.Pool // of *input
}

// compile compiles an expression. wrong says what is not right about the type
// of its result, "" where it is.
func compile(source string, wrong func(*cel.Type) string) (x *expression, err error) {
	if problem := readable(source); problem != "" {
		return nil, &CompileError{Problems: []Problem{{Text: problem}}}
	}
	defer func() {
		// The parser is somebody else's and reads what people type.
		if r := recover(); r != nil {
			x, err = nil, &CompileError{Problems: []Problem{{Text: "is no expression that can be read"}}}
		}
	}()
	env, err := environment()
	if err != nil {
		return nil, err
	}
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil, syntaxError(source, issues)
	}
	s := scan(source, parsed.NativeRep())
	if len(s.problems) > 0 {
		return nil, &CompileError{Problems: s.problems}
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, typeError(source, parsed.NativeRep(), issues)
	}
	if text := wrong(checked.OutputType()); text != "" {
		return nil, &CompileError{Problems: []Problem{{Text: text}}}
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(maxCost), cel.CostTracking(sizeCost{}), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, &CompileError{Problems: []Problem{{Text: "cannot be used: " + oneLine(err.Error())}}}
	}
	return &expression{source: source, tree: checked.NativeRep(), program: program, reads: s.reads}, nil
}

// readable says what keeps a text from being parsed at all.
func readable(source string) string {
	switch {
	case strings.TrimSpace(source) == "":
		return "is empty: leave it out"
	case len(source) > MaxLength:
		return fmt.Sprintf("is %d bytes long, the most is %d", len(source), MaxLength)
	case !utf8.ValidString(source):
		return "is no text in UTF-8"
	}
	return ""
}

// evaluate is the value of the expression for an event.
func (x *expression) evaluate(ctx context.Context, e *bridge.Event) (ref.Val, error) {
	in, _ := x.inputs.Get().(*input)
	if in == nil {
		in = &input{reads: &x.reads}
	}
	in.event = e
	value, err := x.evaluateIn(ctx, in)
	in.forget()
	x.inputs.Put(in)
	return value, err
}

// evaluateIn is the value for the event of an input that has all that the
// expression reads.
func (x *expression) evaluateIn(ctx context.Context, in *input) (ref.Val, error) {
	value, _, err := x.program.ContextEval(ctx, in)
	if err != nil {
		err = x.explain(ctx, err)
	}
	return value, err
}

// explain says in words why an evaluation failed, and never what the event
// holds: reasons are stored and logged.
func (x *expression) explain(ctx context.Context, err error) error {
	var cancelled interpreter.EvalCancelledError
	var large *tooLargeError
	switch {
	case errors.Is(err, interpreter.InterruptError{}):
		return fmt.Errorf("evaluate: %w", context.Cause(ctx))
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return fmt.Errorf("%w: more than %d steps", ErrTooCostly, maxCost)
	case errors.As(err, &large):
		return fmt.Errorf("%w: %s", ErrTooCostly, large.text)
	}
	return errors.New(x.reason(err))
}
