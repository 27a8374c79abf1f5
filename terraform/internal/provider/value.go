package provider

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// at is the value at a dotted path of attribute names. ok is false where an
// object on the way is null or not known.
func at(v tftypes.Value, path string) (value tftypes.Value, ok bool) {
	for name := range strings.SplitSeq(path, ".") {
		attributes := attributesOf(v)
		if v, ok = attributes[name]; !ok {
			return tftypes.Value{}, false
		}
	}
	return v, true
}

// isSet says that there is a value, known or not.
func isSet(v tftypes.Value, path string) bool {
	value, ok := at(v, path)
	return ok && !value.IsNull()
}

// textAt is the text at a path, "" where there is none.
func textAt(v tftypes.Value, path string) string {
	value, ok := at(v, path)
	var text string
	if !ok || !value.IsKnown() || value.IsNull() || value.As(&text) != nil {
		return ""
	}
	return text
}

// trueAt says that true stands at a path.
func trueAt(v tftypes.Value, path string) bool {
	value, ok := at(v, path)
	var b bool
	return ok && value.IsKnown() && !value.IsNull() && value.As(&b) == nil && b
}

// attributesOf are an object's attributes, nil where it has none.
func attributesOf(v tftypes.Value) map[string]tftypes.Value {
	all := map[string]tftypes.Value{}
	if !v.IsKnown() || v.IsNull() || !v.Type().Is(tftypes.Object{}) || v.As(&all) != nil {
		return nil
	}
	return all
}

// with is an object with another value at a path; where an object on the way is
// null, nothing changes.
func with(v tftypes.Value, path string, value tftypes.Value) tftypes.Value {
	attributes := attributesOf(v)
	name, rest, nested := strings.Cut(path, ".")
	if before, ok := attributes[name]; !ok {
		return v
	} else if nested {
		value = with(before, rest, value)
	}
	attributes[name] = value
	return tftypes.NewValue(v.Type(), attributes)
}

// withText is with, for a text; "" is null.
func withText(v tftypes.Value, path, text string) tftypes.Value {
	if text == "" {
		return with(v, path, tftypes.NewValue(tftypes.String, nil))
	}
	return with(v, path, tftypes.NewValue(tftypes.String, text))
}
