package filter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// encodeJSON writes a value as JSON of at most limit bytes, members in the
// order of their names. Integers are exact, and what an expression passes on as
// a whole, such as event.body.repository, has its numbers as they were written.
// Bytes become base64, times and durations texts. The error is a *tooLargeError
// or tells of a value that JSON cannot hold, without its content.
func encodeJSON(v ref.Val, limit int) ([]byte, error) {
	e := encoder{limit: limit}
	err := e.value(v)
	if err == nil && len(e.out) > limit {
		err = e.tooLarge()
	}
	return e.out, err
}

type encoder struct {
	out   []byte
	limit int
}

func (e *encoder) tooLarge() error {
	return &tooLargeError{fmt.Sprintf("more than %d bytes of JSON are made", e.limit)}
}

func (e *encoder) value(v ref.Val) error {
	if len(e.out) > e.limit {
		return e.tooLarge()
	}
	switch v := v.(type) {
	case types.Null:
		e.out = append(e.out, "null"...)
	case types.Bool:
		e.out = strconv.AppendBool(e.out, bool(v))
	case types.Int:
		e.out = strconv.AppendInt(e.out, int64(v), 10)
	case types.Uint:
		e.out = strconv.AppendUint(e.out, uint64(v), 10)
	case types.Double:
		return e.double(float64(v))
	case types.String:
		e.text(string(v))
	case types.Bytes:
		e.text(base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		e.text(v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		e.text(strconv.FormatFloat(v.Seconds(), 'f', -1, 64) + "s")
	case *types.Optional:
		return errors.New("an optional value cannot be JSON: read it with orValue(), or write {?name: value}")
	case traits.Mapper:
		return e.mapping(v)
	case traits.Lister:
		return e.list(v)
	default:
		return fmt.Errorf("a value of type %s cannot be JSON", v.Type().TypeName())
	}
	return nil
}

func (e *encoder) text(s string) {
	// The error would only tell of what is no UTF-8, which there is none of.
	e.out, _ = jsontext.AppendQuote(e.out, strings.ToValidUTF8(s, "\uFFFD"))
}

func (e *encoder) double(f float64) error {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return errors.New("an infinite number, or none, cannot be JSON")
	}
	text, err := json.Marshal(f)
	e.out = append(e.out, text...)
	return err
}

// mapping writes a map. Its keys may be of any type that CEL has for them.
func (e *encoder) mapping(m traits.Mapper) error {
	if native, isOurs := m.Value().(map[string]any); isOurs {
		return e.members(slices.Sorted(maps.Keys(native)), func(name string) error { return e.native(native[name]) })
	}
	values := map[string]ref.Val{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, isText := key.ConvertToType(types.StringType).(types.String)
		if _, twice := values[string(name)]; !isText || twice {
			return errors.New("two names of a map are the same in JSON, or one is none")
		}
		values[string(name)] = m.Get(key)
	}
	return e.members(slices.Sorted(maps.Keys(values)), func(name string) error { return e.value(values[name]) })
}

func (e *encoder) members(names []string, write func(name string) error) error {
	e.out = append(e.out, '{')
	for i, name := range names {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.text(name)
		e.out = append(e.out, ':')
		if err := write(name); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func (e *encoder) list(l traits.Lister) error {
	if native, isOurs := l.Value().([]any); isOurs {
		return e.elements(len(native), func(i int) error { return e.native(native[i]) })
	}
	size, _ := l.Size().(types.Int)
	return e.elements(int(size), func(i int) error { return e.value(l.Get(types.Int(i))) })
}

func (e *encoder) elements(n int, write func(i int) error) error {
	e.out = append(e.out, '[')
	for i := range n {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := write(i); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// native writes what the decoder read of a body.
func (e *encoder) native(v any) error {
	if len(e.out) > e.limit {
		return e.tooLarge()
	}
	switch v := v.(type) {
	case json.Number:
		e.out = append(e.out, v...)
		return nil
	case string:
		e.text(v)
		return nil
	case map[string]any:
		return e.members(slices.Sorted(maps.Keys(v)), func(name string) error { return e.native(v[name]) })
	case []any:
		return e.elements(len(v), func(i int) error { return e.native(v[i]) })
	}
	return e.value(types.DefaultTypeAdapter.NativeToValue(v))
}

// exactNumber is a number as it is written, where a double would not show it.
func exactNumber(raw []byte) any {
	if n := number(raw); !isDouble(n) {
		return n
	} else if f, _ := n.(float64); math.IsInf(f, 0) {
		return n // CEL takes no such json.Number
	}
	return json.Number(bytes.Clone(raw))
}

func isDouble(v any) bool {
	_, is := v.(float64)
	return is
}
