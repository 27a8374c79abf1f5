package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

func (s *Server) serveOpenAPI(*request) (answer, error) {
	return answer{status: http.StatusOK, body: json.RawMessage(s.openAPI)}, nil
}

// object is a part of the document.
type object = map[string]any

// document makes the OpenAPI 3.1 document of the table of endpoints and the Go
// types they name.
func (s *Server) document() ([]byte, error) {
	d := openAPI{schemas: object{}}
	d.schemas["Error"] = d.structure(reflect.TypeFor[adminapi.Error]())
	for _, kind := range bridge.Kinds() {
		d.resource(kind)
	}
	paths := object{}
	for _, e := range s.table {
		item, _ := paths[e.path].(object)
		if item == nil {
			item = object{}
			paths[e.path] = item
		}
		item[strings.ToLower(e.method)] = d.operation(e)
	}
	data, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{"title": "Queen Bridge admin API", "version": "1",
			"description": "Sources, targets, routes and queues as they are in a configuration file; see the package documentation of bridge/adminapi for what becomes of secrets.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers":    []any{object{"url": "/"}},
		"security":   []any{object{"token": []any{}}},
		"paths":      paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return append(data, '\n'), nil
}

// openAPI collects the schemas that a document refers to.
type openAPI struct{ schemas object }

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// componentName is Source, Target, Route or Queue.
func componentName(kind bridge.Kind) string {
	word := kind.Singular()
	return strings.ToUpper(word[:1]) + word[1:]
}

// resource adds a kind's schemas: what may be written, what a patch may hold,
// what is answered, and a page of it.
func (d openAPI) resource(kind bridge.Kind) {
	name := componentName(kind)
	write := bridge.Schema(kind)
	properties := maps.Clone(write["properties"].(object))
	properties[metaField] = object{"type": "object", "description": "Ignored: a resource may be written back as it was read."}
	write["properties"] = properties
	d.schemas[name+"Document"] = write

	patch := maps.Clone(write)
	delete(patch, "required")
	d.schemas[name+"Patch"] = patch

	answer := maps.Clone(patch)
	properties = maps.Clone(properties)
	properties[metaField] = d.schema(reflect.TypeFor[adminapi.Meta]())
	answer["properties"], answer["required"] = properties, []string{"name", metaField}
	delete(answer, "additionalProperties") // what a newer bridge stored is shown as it is
	d.schemas[name] = answer
	d.schemas[name+"Page"] = object{"type": "object", "required": []string{"items", "next_page_token"},
		"properties": object{"items": object{"type": "array", "items": ref(name)}, "next_page_token": object{"type": "string"}}}
}

func (d openAPI) operation(e endpoint) object {
	op := object{"operationId": e.id, "summary": e.summary, "description": "Takes the role " + e.role + ".", "responses": d.responses(e)}
	var parameters []any
	for _, segment := range strings.Split(e.path, "/") {
		if name, isVar := strings.CutPrefix(segment, "{"); isVar {
			name = strings.TrimSuffix(name, "}")
			schema := object{"type": "string", "minLength": 1}
			if name == "name" {
				schema = nameSchema(e.kind)
			}
			parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": schema})
		}
	}
	for _, p := range e.query {
		parameters = append(parameters, object{"name": p.name, "in": "query", "description": p.text, "schema": p.schema})
	}
	for _, p := range e.headers {
		parameters = append(parameters, object{"name": p.name, "in": "header", "description": p.text, "schema": p.schema})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if e.body != nil {
		op["requestBody"] = object{"required": !e.bodyOptional, "content": d.bodyContent(e)}
	}
	return op
}

func nameSchema(kind bridge.Kind) object {
	if kind == bridge.KindQueue {
		return object{"type": "string", "minLength": 1, "maxLength": 255}
	}
	return object{"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"}
}

func (d openAPI) bodyContent(e endpoint) object {
	kind, isResource := e.body.(bridge.Kind)
	switch {
	case isResource && e.patch:
		schema := object{"schema": ref(componentName(kind) + "Patch")}
		return object{mergePatch: schema, "application/json": schema}
	case isResource:
		return object{"application/json": object{"schema": ref(componentName(kind) + "Document")}}
	}
	schema := d.schema(reflect.TypeOf(e.body))
	schema["additionalProperties"] = false
	delete(schema, "required")
	for name, field := range schema["properties"].(object) {
		if len(field.(object)) > 0 { // null is as good as nothing
			schema["properties"].(object)[name] = object{"anyOf": []any{field, object{"type": "null"}}}
		}
	}
	return object{"application/json": object{"schema": schema}}
}

// commonErrors may be answered to any request.
var commonErrors = []adminapi.Code{adminapi.CodeMalformed, adminapi.CodeUnauthenticated, adminapi.CodeForbidden,
	adminapi.CodeRateLimited, adminapi.CodeInternal, adminapi.CodeUnavailable}

func (d openAPI) responses(e endpoint) object {
	out := object{}
	for status, body := range e.answers {
		out[strconv.Itoa(status)] = d.response(status, body)
	}
	codes := slices.Concat(commonErrors, e.errors)
	if e.body != nil {
		codes = append(codes, adminapi.CodeTooLarge, adminapi.CodeMediaType)
	}
	for _, code := range codes {
		status := statuses[code]
		out[strconv.Itoa(status)] = object{"description": http.StatusText(status),
			"content": object{"application/problem+json": object{"schema": ref("Error")}}}
	}
	return out
}

func (d openAPI) response(status int, body any) object {
	out := object{"description": http.StatusText(status)}
	var schema object
	switch b := body.(type) {
	case nil:
		return out
	case bridge.Kind:
		schema = ref(componentName(b))
		out["headers"] = object{"ETag": object{"description": "The version, in quotes.", "schema": object{"type": "string"}}}
	case pageOf:
		schema = ref(componentName(bridge.Kind(b)) + "Page")
	default:
		schema = d.schema(reflect.TypeOf(b))
	}
	out["content"] = object{"application/json": object{"schema": schema}}
	return out
}

// schema is that of a type of package adminapi.
func (d openAPI) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return d.schema(t.Elem())
	case t.Kind() == reflect.Struct:
		return d.structure(t)
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		return object{"type": "object"}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return object{"type": "integer"}
	case t.Kind() == reflect.Float64:
		return object{"type": "number"}
	}
	return object{"type": "string"}
}

func (d openAPI) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous {
			inner := d.structure(f.Type)
			maps.Copy(properties, inner["properties"].(object))
			required = append(required, inner["required"].([]string)...)
			continue
		}
		properties[name] = d.schema(f.Type)
		if options == "" {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}
