package filter

import (
	"fmt"
	"math"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// Bounds of an expression.
const (
	// MaxLength is how many bytes an expression may have.
	MaxLength = 8 << 10
	// maxNodes bounds it with its macros written out.
	maxNodes = 10_000
	// maxRegex bounds a compiled regular expression, also one that an event
	// brings.
	maxRegex = 1_000
	// maxCost bounds one evaluation, in CEL's steps: some 0.1 s. An expression
	// that reads single members costs below 50.
	maxCost = 1_000_000
	// interruptEvery is how many rounds of a loop pass between two looks at
	// the context.
	interruptEvery = 256
)

// fields are the fields of an event, in the order of config.md.
var fields = []string{"id", "type", "source", "time", "method", "path", "query", "headers", "body"}

// environment is what every expression is compiled in; it is made once and
// never changes.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	labelSharedErrors()
	texts := cel.MapType(cel.StringType, cel.StringType)
	options := []cel.EnvOption{
		cel.Variable("event.id", cel.StringType),
		cel.Variable("event.type", cel.StringType),
		cel.Variable("event.source", cel.StringType),
		cel.Variable("event.time", cel.TimestampType),
		cel.Variable("event.method", cel.StringType),
		cel.Variable("event.path", cel.StringType),
		cel.Variable("event.query", texts),
		cel.Variable("event.headers", texts),
		cel.Variable("event.body", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.OptionalTypes(),
		cel.ParserExpressionSizeLimit(MaxLength),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegex),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
	}
	env, err := cel.NewEnv(append(options, functions()...)...)
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	return env, nil
}

// noNode labels an error that cel-go shares between all evaluations.
const noNode = -1

// labelSharedErrors labels two errors that cel-go (v0.33.2, common/types/err.go)
// keeps in variables and labels with the place of whoever fails first, without
// a lock: a race, and a wrong place for all others. Once labelled they are only
// read.
func labelSharedErrors() {
	types.LabelErrNode(noNode, types.NoSuchOverloadErr())
	types.LabelErrNode(noNode, types.Int(math.MaxInt64).ConvertToType(types.TimestampType))
}
