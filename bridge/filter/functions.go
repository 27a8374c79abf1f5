package filter

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// functions are what expressions may call beyond CEL's standard: CEL's own
// extensions where their cost has a bound, and bounded ones with the names,
// types and meaning of the others. Cost is only counted after a call, so that
// CEL's own join of two megabytes is a list of a hundred thousand texts with a
// megabyte between each two before anybody looks.
func functions() []cel.EnvOption {
	options := []cel.EnvOption{
		ext.Strings(ext.StringsVersion(4)), ext.Math(), ext.Bindings(), ext.Encoders(ext.EncodersVersion(0)),
		cel.Function("json.encode", cel.Overload("json_encode_exact", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(jsonEncode))),
		cel.Function("json.parse", cel.Overload("json_parse_exact", []*cel.Type{cel.StringType}, cel.OptionalType(cel.DynType), cel.UnaryBinding(jsonParse))),
	}
	for _, f := range []struct {
		name string
		on   *cel.Type
		args []*cel.Type // the last may be left out
		is   *cel.Type
		call func(args ...ref.Val) ref.Val
	}{
		{"join", cel.ListType(cel.StringType), []*cel.Type{cel.StringType}, cel.StringType, joinTexts},
		{"replace", cel.StringType, []*cel.Type{cel.StringType, cel.StringType, cel.IntType}, cel.StringType, replace},
		{"indexOf", cel.StringType, []*cel.Type{cel.StringType, cel.IntType}, cel.IntType, indexOf},
		{"lastIndexOf", cel.StringType, []*cel.Type{cel.StringType, cel.IntType}, cel.IntType, lastIndexOf},
	} {
		types := append([]*cel.Type{f.on}, f.args...)
		options = append(options,
			cel.Macros(inPlaceOf(f.name, len(f.args)), inPlaceOf(f.name, len(f.args)-1)),
			cel.Function("@"+f.name,
				cel.MemberOverload("bounded_"+f.name, types[:len(types)-1], f.is, cel.FunctionBinding(f.call)),
				cel.MemberOverload("bounded_"+f.name+"_more", types, f.is, cel.FunctionBinding(f.call))))
	}
	return options
}

// inPlaceOf is a macro that calls the bounded function in place of CEL's own.
func inPlaceOf(name string, args int) cel.Macro {
	return cel.ReceiverMacro(name, args, func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		return f.NewMemberCall("@"+name, target, args...), nil
	})
}

// joinTexts joins a list of texts, with another between each two.
func joinTexts(args ...ref.Val) ref.Val {
	list, isList := args[0].(traits.Lister)
	separator, isText := optionalText(args[1:])
	if !isList || !isText {
		return types.NoSuchOverloadErr()
	}
	var b strings.Builder
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; first = false {
		element, isText := it.Next().(types.String)
		if !isText {
			return types.NoSuchOverloadErr()
		}
		if !first {
			b.WriteString(separator)
		}
		if b.Len()+len(element)+len(separator) > maxText {
			return types.WrapErr(errMade)
		}
		b.WriteString(string(element))
	}
	return types.String(b.String())
}

// errMade is a text that an expression makes and that is too long.
var errMade = &tooLargeError{fmt.Sprintf("a text of more than %d bytes is made", maxText)}

func optionalText(args []ref.Val) (text string, ok bool) {
	if len(args) == 0 {
		return "", true
	}
	s, ok := args[0].(types.String)
	return string(s), ok
}

// replace replaces the first n occurrences of a text; all of them where n is
// negative or not given.
func replace(args ...ref.Val) ref.Val {
	s, old, with, ok := threeTexts(args)
	n := -1
	if len(args) == 4 {
		limit, isInt := args[3].(types.Int)
		ok, n = ok && isInt, int(max(-1, min(limit, maxText)))
	}
	if !ok {
		return types.NoSuchOverloadErr()
	}
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(s)+times*(len(with)-len(old)) > maxText {
		return types.WrapErr(errMade)
	}
	return types.String(strings.Replace(s, old, with, n))
}

func threeTexts(args []ref.Val) (a, b, c string, ok bool) {
	first, ok1 := args[0].(types.String)
	second, ok2 := args[1].(types.String)
	third, ok3 := args[2].(types.String)
	return string(first), string(second), string(third), ok1 && ok2 && ok3
}

// indexOf is the place of the first occurrence of a text from an offset on, in
// characters; -1 where there is none.
func indexOf(args ...ref.Val) ref.Val {
	s, wanted, offset, err := searched(args, 0)
	if err != nil {
		return err
	}
	from, beyond := byteAt(s, offset)
	if beyond {
		if wanted == "" {
			return types.Int(utf8.RuneCountInString(s))
		}
		return types.Int(-1)
	}
	at := strings.Index(s[from:], wanted)
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(offset + utf8.RuneCountInString(s[from:from+at]))
}

// lastIndexOf is the place of the last occurrence of a text that begins at an
// offset or before, in characters; -1 where there is none.
func lastIndexOf(args ...ref.Val) ref.Val {
	s, wanted, offset, err := searched(args, maxText)
	if err != nil {
		return err
	}
	from, beyond := byteAt(s, offset)
	if beyond && len(args) == 3 && wanted != "" {
		return types.Int(-1) // so does CEL's own
	}
	at := strings.LastIndex(s[:min(len(s), from+len(wanted))], wanted)
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(s[:at]))
}

// searched are the arguments of a search.
func searched(args []ref.Val, standard int) (s, wanted string, offset int, err ref.Val) {
	text, isText := args[0].(types.String)
	part, isPart := args[1].(types.String)
	offset = standard
	isInt := true
	if len(args) == 3 {
		var n types.Int
		n, isInt = args[2].(types.Int)
		offset = int(min(n, maxText))
	}
	switch {
	case !isText || !isPart || !isInt:
		return "", "", 0, types.NoSuchOverloadErr()
	case offset < 0:
		return "", "", 0, types.NewErr("index out of bounds: %d", offset)
	}
	return string(text), string(part), offset, nil
}

// byteAt is where the character with a number begins; beyond says that there
// is none, at then being the end.
func byteAt(s string, character int) (at int, beyond bool) {
	for i := range s {
		if character == 0 {
			return i, false
		}
		character--
	}
	return len(s), true
}

// jsonEncode is a value as JSON.
func jsonEncode(v ref.Val) ref.Val {
	text, err := encodeJSON(v, maxText)
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		return types.WrapErr(errMade)
	case err != nil:
		return types.NewErr("%s", err.Error())
	}
	return types.String(text)
}

// jsonParse is the value of a JSON text, none where it is no JSON.
func jsonParse(v ref.Val) ref.Val {
	text, isText := v.(types.String)
	if !isText {
		return types.NoSuchOverloadErr()
	}
	body := []byte(text)
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return types.OptionalNone
	}
	d := decoder{exact: true}
	value, err := d.decode(body, &need{whole: true})
	if err != nil {
		return types.WrapErr(err)
	}
	return types.OptionalOf(types.DefaultTypeAdapter.NativeToValue(value))
}
