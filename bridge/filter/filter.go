package filter

import (
	"context"
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/queenbridge/queenbridge/bridge"
)

// ErrTooCostly says that an evaluation was ended because it took more steps, or
// had to decode more, than one event may cost.
var ErrTooCostly = errors.New("too costly for this event")

// Filter is a compiled expression that is true or false of an event.
type Filter struct{ x *expression }

// Compile compiles an expression. The error is a *CompileError that lists what
// is wrong with it, and where. An expression whose type only the event tells,
// such as event.body.wanted, compiles.
func Compile(expression string) (*Filter, error) {
	x, err := compile(expression, func(t *cel.Type) string {
		if t.IsExactType(cel.BoolType) || t.IsExactType(cel.DynType) {
			return ""
		}
		return fmt.Sprintf("must be true or false, is of type %s", t)
	})
	if err != nil {
		return nil, err
	}
	return &Filter{x}, nil
}

// Match says whether the expression is true of an event, which it does not
// change or keep. The error says in a line why that cannot be said, without any
// part of the event's content: a member that is not there, types that do not go
// together, ErrTooCostly, or the cause of ctx, which bounds long evaluations.
func (f *Filter) Match(ctx context.Context, e *bridge.Event) (bool, error) {
	value, err := f.x.evaluate(ctx, e)
	if err != nil {
		return false, err
	}
	match, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the filter is of type %s for this event, neither true nor false", value.Type().TypeName())
	}
	return bool(match), nil
}
