package bridge

import (
	"reflect"
	"strings"
)

// feature is a field, below the whole configuration or one resource, that this
// version knows and does not act on; what ends in "is" or "are".
type feature struct{ field, what string }

var unbuiltProcess = []feature{
	{"admin.console", "the console is"},
}

// Unbuilt refuses, by name, every field of config.md whose feature is not
// built in this version and whose value differs from its default: nothing that
// was written is ignored.
func (c Config) Unbuilt() []Problem {
	var problems []Problem
	root := checklist{problems: &problems}
	root.unbuilt(unbuiltProcess, c, Defaults())
	return problems
}

// unbuilt refuses each feature whose field in got is not as in standard.
func (c checklist) unbuilt(features []feature, got, standard any) {
	for _, f := range features {
		value := fieldAt(reflect.ValueOf(got), f.field)
		if !sameValue(value, fieldAt(reflect.ValueOf(standard), f.field)) {
			c.notBuilt(f.field, f.what)
		}
	}
}

func (c checklist) notBuilt(field, what string) {
	c.fail(field, "%s not built yet in this version", what)
}

// fieldAt is the field at a dotted path of json names.
func fieldAt(v reflect.Value, path string) reflect.Value {
	name, rest, nested := strings.Cut(path, ".")
	for field, i := range fields(v.Type()) {
		switch {
		case field == name && nested:
			return fieldAt(v.Field(i), rest)
		case field == name:
			return v.Field(i)
		}
	}
	panic("no field " + path) // a table of this file is wrong
}

// sameValue compares two values; an empty list or map is as good as none.
func sameValue(a, b reflect.Value) bool {
	if (a.Kind() == reflect.Slice || a.Kind() == reflect.Map) && a.Len() == 0 {
		return b.Len() == 0
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
