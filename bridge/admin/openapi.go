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

// apiText is the description of the whole.
const apiText = "Sources, targets, routes and queues, with the fields of a configuration file, and what becomes of deliveries.\n\n" +
	"Every request but those from loopback to a bridge without tokens takes `Authorization: Bearer TOKEN`, of the role that the operation names: a viewer reads, " +
	"an operator also pauses, tests and redrives, an admin also changes resources.\n\n" +
	"A resource that the configuration file has is read-only here (409 `managed_by_file`). The others are stored in Queen, so that all processes share them. " +
	"An ETag changes with each change: `If-Match` writes only what was read (412 else), `If-None-Match: *` only what is not there yet.\n\n" +
	"A secret is never returned. A literal one is sealed when it is written and reads as `${sealed:ID}`; writing that back keeps it. References such as " +
	"`${env:NAME}` read as they were written.\n\n" +
	"Errors are `application/problem+json` (RFC 9457): `code` is for programs, `problems` lists all that is wrong, each with its path."

// object is a part of the document.
type object = map[string]any

// document makes the OpenAPI 3.1 document of the table of endpoints and the Go
// types they name.
func (s *Server) document() ([]byte, error) {
	d := openAPI{schemas: object{}}
	d.schema(reflect.TypeFor[adminapi.Error]())
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
			"description": apiText,
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
	patch["description"] = "Fields to change: null takes a field away, what is not mentioned stays (RFC 7396)."
	d.schemas[name+"Patch"] = patch

	answer := maps.Clone(patch)
	properties = maps.Clone(properties)
	meta := maps.Clone(d.schema(reflect.TypeFor[adminapi.Meta]()))
	meta["description"] = adminapi.Description(reflect.TypeFor[adminapi.Meta](), reflect.StructField{})
	properties[metaField] = meta
	answer["properties"], answer["required"] = properties, []string{"name", metaField}
	answer["description"] = write["description"].(string) + " As it was written, without its secrets."
	delete(answer, "additionalProperties") // what a newer bridge stored is shown as it is
	d.schemas[name] = answer
	d.schemas[name+"Page"] = object{"type": "object", "required": []string{"items", "next_page_token"},
		"description": "One page of " + string(kind) + ", in the order of their names.",
		"properties": object{"items": object{"type": "array", "items": ref(name), "description": "The " + string(kind) + " of this page."},
			"next_page_token": object{"type": "string", "description": "`page_token` of the next page; empty on the last one."}}}
}

func (d openAPI) operation(e endpoint) object {
	op := object{"operationId": e.id, "summary": e.summary, "tags": []string{e.tag()}, "responses": d.responses(e)}
	op["description"] = strings.TrimSpace(e.text + " Takes the role " + e.role + ".")
	var parameters []any
	for _, segment := range strings.Split(e.path, "/") {
		if name, isVar := strings.CutPrefix(segment, "{"); isVar {
			name = strings.TrimSuffix(name, "}")
			schema := object{"type": "string", "minLength": 1}
			if name == "name" {
				schema = nameSchema(e.kind)
			}
			parameters = append(parameters, object{"name": name, "in": "path", "required": true, "description": pathText(e, name), "schema": schema})
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
	return object{"application/json": object{"schema": d.request(reflect.TypeOf(e.body))}}
}

// request is the schema of a body: no field is needed, and null is as good as
// none.
func (d openAPI) request(t reflect.Type) object {
	schema := d.structure(t)
	schema["additionalProperties"] = false
	delete(schema, "required")
	properties := schema["properties"].(object)
	for name, field := range properties {
		form := maps.Clone(field.(object))
		text := form["description"]
		delete(form, "description")
		if len(form) > 0 {
			form = object{"anyOf": []any{form, object{"type": "null"}}}
		}
		form["description"] = text
		properties[name] = form
	}
	d.schemas[t.Name()] = schema
	return ref(t.Name())
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
		said := codeTexts(status, codes)
		out[strconv.Itoa(status)] = object{"description": http.StatusText(status) + ": " + said + ".",
			"content": object{"application/problem+json": object{"schema": ref("Error")}}}
	}
	return out
}

// codeTexts are the codes that a status may stand for, with what they mean.
func codeTexts(status int, codes []adminapi.Code) string {
	var all []string
	for _, code := range codes {
		if text := "`" + string(code) + "`"; statuses[code] == status && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func (d openAPI) response(status int, body any) object {
	out := object{"description": http.StatusText(status)}
	var schema object
	switch b := body.(type) {
	case nil:
		return out
	case bridge.Kind:
		schema = ref(componentName(b))
		out["headers"] = object{"ETag": object{"description": "The version, in quotes: for `If-Match`.", "schema": object{"type": "string"}}}
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
		if _, known := d.schemas[t.Name()]; !known {
			d.schemas[t.Name()] = nil // being made
			d.schemas[t.Name()] = d.structure(t)
		}
		return ref(t.Name())
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
		property := maps.Clone(d.schema(f.Type))
		property["description"] = adminapi.Description(t, f)
		properties[name] = property
		if options == "" {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required,
		"description": adminapi.Description(t, reflect.StructField{})}
}
