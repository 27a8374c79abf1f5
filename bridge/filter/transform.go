package filter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxBody bounds the JSON that a transform makes, in bytes. A text that it makes
// is bounded by maxText.
const maxBody = 10 << 20

// maxHeader bounds the value of a header, in bytes: servers take some 8 KiB to
// 64 KiB of headers in all.
const maxHeader = 8 << 10

const contentType = "content-type"

// Transform is what a route makes of an event before its function gets it: a
// compiled bridge.Transform.
type Transform struct {
	body    *expression // nil: as it is
	headers []headerExpression
	reads   reads // of all expressions
	inputs  sync.Pool
}

type headerExpression struct {
	name  string // in lower case
	value *expression
}

// CompileTransform compiles the expressions of a transform; without any, Apply
// changes nothing. The error is a *TransformError that lists everything wrong
// with them: what does not compile, a body that can never be one, a header whose
// value can never be a text, and the names that bridge.Transform.Check refuses.
func CompileTransform(t bridge.Transform) (*Transform, error) {
	compiled, problems := compileTransform(t)
	if problems = append(t.Check(), problems...); len(problems) > 0 {
		return nil, &TransformError{Problems: problems}
	}
	return compiled, nil
}

// compileTransform leaves the names of headers to others.
func compileTransform(t bridge.Transform) (compiled *Transform, problems []bridge.Problem) {
	compiled = &Transform{}
	if t.Body != "" {
		var err error
		compiled.body, err = compile(t.Body, wrongBody)
		problems = appendProblems(problems, "body", err)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		value, err := compile(t.Headers[name], wrongHeader)
		problems = appendProblems(problems, join("headers", name), err)
		compiled.headers = append(compiled.headers, headerExpression{strings.ToLower(name), value})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	for _, x := range compiled.expressions() {
		compiled.reads.add(&x.reads)
	}
	return compiled, nil
}

func (t *Transform) expressions() []*expression {
	var all []*expression
	if t.body != nil {
		all = append(all, t.body)
	}
	for _, h := range t.headers {
		all = append(all, h.value)
	}
	return all
}

// wrongBody says why a type is none of a body.
func wrongBody(t *cel.Type) string {
	switch t.Kind() {
	case types.DynKind, types.StringKind, types.BytesKind, types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind,
		types.NullTypeKind, types.ListKind, types.MapKind:
		return ""
	}
	return fmt.Sprintf("must be a text, bytes, or what JSON can hold, is of type %s%s", cel.FormatCELType(t), remedy(t))
}

// wrongHeader says why a type is none of a header.
func wrongHeader(t *cel.Type) string {
	if isOptional(t) {
		t = t.Parameters()[0]
	}
	switch t.Kind() {
	case types.DynKind, types.StringKind, types.NullTypeKind:
		return ""
	}
	return fmt.Sprintf("must be a text, is of type %s%s", cel.FormatCELType(t), remedy(t))
}

func isOptional(t *cel.Type) bool {
	return t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type"
}

func remedy(t *cel.Type) string {
	switch {
	case isOptional(t):
		return ": read it with orValue()"
	case t.Kind() == types.ListKind || t.Kind() == types.MapKind:
		return ": write json.encode(…)"
	}
	return ": write string(…)"
}

// Apply makes an event of an event, which it does not change; what the
// transform does not replace is shared by both. The body is what its expression
// gives: a text or bytes as they are, anything else as JSON, which makes the
// content type application/json. With a new body, headers that describe the old
// one (content-encoding, digests) are gone. A header replaces all lines of its
// name; one whose value is null, or an optional one that is not there, removes
// them; content-type is the event's ContentType too.
//
// The error says in a line why that cannot be done, without any part of the
// event's content: what a Filter's says, or a value that is no body or header.
// It may be called by many goroutines at once.
func (t *Transform) Apply(ctx context.Context, e *bridge.Event) (*bridge.Event, error) {
	in, _ := t.inputs.Get().(*input)
	if in == nil {
		in = &input{reads: &t.reads}
		in.decoder.exact = true
	}
	in.event = e
	made, err := t.apply(ctx, in)
	in.forget()
	t.inputs.Put(in)
	return made, err
}

func (t *Transform) apply(ctx context.Context, in *input) (*bridge.Event, error) {
	made := *in.event
	made.Headers = slices.Clone(made.Headers)
	if t.body != nil {
		value, err := t.body.evaluateIn(ctx, in)
		if err == nil {
			err = setBody(&made, value)
		}
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
	}
	for _, h := range t.headers {
		value, err := h.value.evaluateIn(ctx, in)
		if err == nil {
			err = setHeader(&made, h.name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", h.name, err)
		}
	}
	return &made, nil
}

// describing are headers that say something of the bytes of one body.
var describing = []string{"content-encoding", "content-md5", "digest", "content-digest", "repr-digest"}

func setBody(made *bridge.Event, v ref.Val) error {
	for _, name := range describing {
		removeHeader(made, name)
	}
	switch v := v.(type) {
	case types.String:
		made.Body = []byte(v)
		return nil
	case types.Bytes:
		made.Body = slices.Clone([]byte(v))
		return nil
	case types.Timestamp, types.Duration, *types.Optional, *types.Type:
		return fmt.Errorf("is of type %s for this event, which is no body", v.Type().TypeName())
	}
	body, err := encodeJSON(v, maxBody)
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		return fmt.Errorf("%w: %s", ErrTooCostly, large.text)
	case err != nil:
		return err
	}
	made.Body = body
	replaceHeader(made, contentType, "application/json")
	return nil
}

func setHeader(made *bridge.Event, name string, v ref.Val) error {
	if optional, is := v.(*types.Optional); is {
		v = types.NullValue
		if optional.HasValue() {
			v = optional.GetValue()
		}
	}
	switch v := v.(type) {
	case types.Null:
		removeHeader(made, name)
		return nil
	case types.String:
		if problem := bridge.HeaderValueProblem(string(v)); problem != "" {
			return errors.New(problem)
		}
		if len(v) > maxHeader {
			return fmt.Errorf("%w: is %d bytes long, the most is %d", ErrTooCostly, len(v), maxHeader)
		}
		replaceHeader(made, name, string(v))
		return nil
	}
	return fmt.Errorf("is of type %s for this event, not a text", v.Type().TypeName())
}

func removeHeader(e *bridge.Event, name string) {
	e.Headers = slices.DeleteFunc(e.Headers, func(h bridge.Header) bool { return strings.EqualFold(h.Name, name) })
	if name == contentType {
		e.ContentType = ""
	}
}

func replaceHeader(e *bridge.Event, name, value string) {
	removeHeader(e, name)
	e.Headers = append(e.Headers, bridge.Header{Name: name, Value: value})
	if name == contentType {
		e.ContentType = value
	}
}

// TransformError lists what is wrong with a transform, each problem at its path
// inside it, such as headers.X-Team.
type TransformError struct{ Problems []bridge.Problem }

func (e *TransformError) Error() string { return problemTexts(e.Problems) }
