package bridge

import (
	"maps"
	"reflect"
	"slices"
)

// Schema is the JSON Schema (2020-12) of a kind's documents, made of the same
// types that Decode reads. It knows the form of each field; what needs another
// field or another resource is Check's.
//
// Any scalar may hold a reference such as ${env:NAME} instead, and null means
// the default.
func Schema(k Kind) map[string]any {
	s := schemas{kind: k}
	schema := s.structure("", k.Type())
	schema["title"], schema["description"] = k.Singular(), descriptions[k.Type().Name()]
	if required := requiredFields[k]; len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// ConfigSchema is the JSON Schema (2020-12) of a whole configuration file, as
// Schema is that of a resource.
func ConfigSchema() map[string]any {
	schema := schemas{}.structure("", reflect.TypeFor[Config]())
	properties := schema["properties"].(map[string]any)
	for _, kind := range Kinds() {
		one := Schema(kind)
		one["required"] = append([]string{"name"}, requiredFields[kind]...)
		list := nullable(map[string]any{"type": "array", "items": one})
		list["description"] = one["description"]
		properties[string(kind)] = list
	}
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Queen Bridge configuration"
	return schema
}

// requiredFields are those without a default. A name may come with the path.
var requiredFields = map[Kind][]string{
	KindSource: {"scheme"},
	KindRoute:  {"queue", "target"},
}

// fieldWords are the enumerations, by kind and path; "" are the settings of the
// process.
var fieldWords = map[Kind]map[string][]string{
	"":         {"log.level": logLevels, "log.format": append([]string{""}, logFormats...), "queen.strategy": strategies, "admin.tokens.role": roles},
	KindSource: {"payload": payloads, "on_invalid": onInvalids, "dedup": dedups},
	KindTarget: {"auth.type": authTypes, "signing.scheme": signings, "network.profile": profiles,
		"lambda.invoke": invokes, "lambda.payload": lambdaPayloads},
	KindRoute: {"ordering": orderings, "format": formats, "retry.jitter": jitters, "on_exhausted": onExhausteds},
}

// The patterns of texts.
const (
	referencePattern = `\$\{(env|file|sealed|aws-secretsmanager|aws-ssm):[^}]+\}`
	durationPattern  = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern      = `^[0-9]+(TiB|GiB|MiB|KiB|B)?$`
	nameSchema       = `^[a-z0-9][a-z0-9_-]{0,62}$`
)

type schemas struct{ kind Kind }

// field is the schema of one value, without null.
func (s schemas) field(path string, t reflect.Type) map[string]any {
	switch t {
	case durationType:
		return textSchema(map[string]any{"pattern": durationPattern})
	case sizeType:
		return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 0},
			textSchema(map[string]any{"pattern": sizePattern})}}
	case secretType:
		return map[string]any{"type": "string", "format": "password"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.field(path, t.Elem())
	case reflect.Struct:
		return s.structure(path, t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.field(path, t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
		}
		return map[string]any{"type": "object"}
	case reflect.Bool:
		return scalar("boolean")
	case reflect.Int:
		return scalar("integer")
	case reflect.Float64:
		return scalar("number")
	case reflect.String:
		return s.word(path)
	}
	return map[string]any{"type": "object"} // pattern
}

// word is the schema of a text: an enumeration, the name, or any.
func (s schemas) word(path string) map[string]any {
	words := fieldWords[s.kind][path]
	switch {
	case words != nil:
		return textSchema(map[string]any{"enum": words})
	case path == "name" && s.kind != KindQueue:
		return map[string]any{"type": "string", "pattern": nameSchema}
	case path == "name" || path == "queue" || path == "group":
		return map[string]any{"type": "string", "minLength": 1, "maxLength": 255}
	}
	return map[string]any{"type": "string"}
}

// textSchema is a text of some form, or a reference.
func textSchema(form map[string]any) map[string]any {
	form = maps.Clone(form)
	form["type"] = "string"
	return map[string]any{"anyOf": []any{form, reference()}}
}

// scalar is a value of another type, or a reference to its text.
func scalar(name string) map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": name}, reference()}}
}

func reference() map[string]any {
	return map[string]any{"type": "string", "pattern": referencePattern}
}

func (s schemas) structure(path string, t reflect.Type) map[string]any {
	properties := map[string]any{}
	for name, i := range fields(t) {
		property := maps.Clone(nullable(s.field(atKey(path, name), t.Field(i).Type)))
		if text := Description(t, t.Field(i)); text != "" {
			property["description"] = text
		}
		properties[name] = property
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// nullable also takes null.
func nullable(schema map[string]any) map[string]any {
	null := map[string]any{"type": "null"}
	if any, ok := schema["anyOf"].([]any); ok {
		schema = maps.Clone(schema)
		schema["anyOf"] = append(slices.Clone(any), null)
		return schema
	}
	return map[string]any{"anyOf": []any{schema, null}}
}
