package shape

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// Form is what a field holds.
type Form int

// The forms. Text is also a duration, a size or a point in time; Free is any
// document, such as a pattern.
const (
	Text Form = iota
	Bool
	Integer
	Number
	Secret
	List
	Map
	Object
	Free
)

// Field is one field of a resource, with what its value may be.
type Field struct {
	// Name is that of config.md, the admin API and Terraform alike.
	Name string
	Form Form
	// Elem is what a List or Map holds.
	Elem *Field
	// Fields are those of an Object.
	Fields []Field
	// Description is the Go type's comment, in Markdown.
	Description string
	// Words are the values a Text may have; nil: any.
	Words []string
	// Pattern is what a Text matches, a regular expression; "": anything. Meant
	// says it in the words of the API.
	Pattern, Meant string
	// Required fields have no default.
	Required bool
}

// Of are the fields of a kind of resource, with the words and patterns that the
// admin API accepts.
func Of(kind bridge.Kind) []Field {
	return fieldsOf(kind.Type(), bridge.Schema(kind))
}

// OfStruct are the fields of a struct that the admin API answers with.
func OfStruct(t reflect.Type) []Field { return fieldsOf(t, nil) }

func fieldsOf(t reflect.Type, schema map[string]any) []Field {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]string)
	var all []Field
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		property, _ := properties[name].(map[string]any)
		f := fieldOf(t.Field(i).Type, property)
		f.Name, f.Required = name, slices.Contains(required, name)
		f.Description = description(t, t.Field(i))
		if name == "name" {
			f.Meant = "1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit"
		}
		all = append(all, f)
	}
	return all
}

// description is the comment of a field, or else that of its type.
func description(t reflect.Type, f reflect.StructField) string {
	if t.PkgPath() == reflect.TypeFor[bridge.Source]().PkgPath() {
		return bridge.Description(t, f)
	}
	return adminapi.Description(t, f)
}

func fieldOf(t reflect.Type, schema map[string]any) Field {
	switch t {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[bridge.Size]():
		f := Field{Form: Text, Meant: "a duration such as 30s"}
		if t == reflect.TypeFor[bridge.Size]() {
			f.Meant = "a size such as 10MiB"
		}
		f.Words, f.Pattern = constraints(schema)
		return f
	case reflect.TypeFor[time.Time]():
		return Field{Form: Text}
	case reflect.TypeFor[bridge.Secret]():
		return Field{Form: Secret}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fieldOf(t.Elem(), schema)
	case reflect.Struct:
		return Field{Form: Object, Fields: fieldsOf(t, objectOf(schema))}
	case reflect.Slice:
		items, _ := objectOf(schema)["items"].(map[string]any)
		elem := fieldOf(t.Elem(), items)
		return Field{Form: List, Elem: &elem}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return Field{Form: Free}
		}
		elem := fieldOf(t.Elem(), nil)
		return Field{Form: Map, Elem: &elem}
	case reflect.Bool:
		return Field{Form: Bool}
	case reflect.Int, reflect.Int64:
		return Field{Form: Integer}
	case reflect.Float64:
		return Field{Form: Number}
	case reflect.Interface:
		return Field{Form: Free}
	}
	f := Field{Form: Text}
	f.Words, f.Pattern = constraints(schema)
	return f
}

// options are the alternatives of a JSON Schema.
func options(schema map[string]any) []map[string]any {
	list, ok := schema["anyOf"].([]any)
	if !ok {
		return []map[string]any{schema}
	}
	var all []map[string]any
	for _, o := range list {
		if m, ok := o.(map[string]any); ok {
			all = append(all, options(m)...)
		}
	}
	return all
}

// objectOf is the alternative that is no null.
func objectOf(schema map[string]any) map[string]any {
	for _, o := range options(schema) {
		if o["properties"] != nil || o["items"] != nil {
			return o
		}
	}
	return nil
}

// constraints are the words and the pattern of a text. A reference such as
// ${env:NAME} is an alternative of most, which [Field.Accepts] knows.
func constraints(schema map[string]any) (words []string, pattern string) {
	for _, o := range options(schema) {
		if enum, ok := o["enum"].([]string); ok {
			words = slices.Clone(enum)
		}
		if p, ok := o["pattern"].(string); ok && !strings.HasPrefix(p, `\$\{`) {
			pattern = p
		}
	}
	return words, pattern
}

// SecretPaths are the dotted paths of all secrets below fields: a Secret, or a
// List of them.
func SecretPaths(fields []Field) []string {
	var all []string
	for _, f := range fields {
		switch {
		case f.IsSecret():
			all = append(all, f.Name)
		case f.Form == Object:
			for _, below := range SecretPaths(f.Fields) {
				all = append(all, f.Name+"."+below)
			}
		}
	}
	return all
}

// IsSecret says that a field is a secret or a list of secrets.
func (f Field) IsSecret() bool {
	return f.Form == Secret || f.Form == List && f.Elem.Form == Secret
}
