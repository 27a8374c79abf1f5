package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// endpoint is one method of one path. The table of them is the API: requests
// are served by it, and the OpenAPI document is made of it.
type endpoint struct {
	method, path string // path holds {name}, a whole segment
	role         string
	kind         bridge.Kind // "" where the path names none
	id, summary  string      // of the OpenAPI document
	text         string      // what the summary leaves out
	query        []parameter
	headers      []parameter
	// body and answer are Go types, or bridge.Kind for a resource's document.
	// Nil: there is none.
	body         any
	bodyOptional bool
	patch        bool
	answers      map[int]any
	errors       []adminapi.Code
	serve        func(*request) (answer, error)
}

// parameter is one of the query or a header.
type parameter struct {
	name, text string
	schema     map[string]any
}

var (
	booleanSchema = map[string]any{"type": "boolean"}
	textSchema    = map[string]any{"type": "string"}
	timeSchema    = map[string]any{"type": "string", "format": "date-time"}
)

var (
	validateOnly = parameter{"validate_only", "Report what the request would do, and change nothing.", booleanSchema}
	pageSize     = parameter{"page_size", "At most so many; 100 without it.", map[string]any{"type": "integer", "minimum": 1, "maximum": maxPage}}
	pageToken    = parameter{"page_token", "next_page_token of the page before.", textSchema}
	storedToo    = parameter{"stored", "Delete what is stored under a name that the configuration file has, too.", booleanSchema}
	storedWrite  = parameter{"stored", "Write under a name that the configuration file has, too; it comes into use when the file no longer has it.", booleanSchema}
	drainToo     = parameter{"drain", "Where routes use the target, delete them, too: they drain, and the target goes with the last of them.", booleanSchema}
	drainAnyway  = parameter{"drain", "A route drains in any case.", booleanSchema}
	ifMatch      = parameter{"If-Match", "ETags that the resource may have, or *.", map[string]any{"type": "string", "pattern": etagPattern}}
	ifNoneMatch  = parameter{"If-None-Match", "* writes only what is not there yet.", map[string]any{"type": "string", "const": "*"}}
	ifChanged    = parameter{"If-None-Match", "ETags that the caller has: 304 where the resource has one of them.", textSchema}
)

// endpoints is the table.
func (s *Server) endpoints() []endpoint {
	all := []endpoint{
		{method: "GET", path: "/v1/status", role: bridge.RoleViewer, id: "status", summary: "State of the process that answers",
			answers: map[int]any{200: adminapi.Status{}}, serve: s.status},
		{method: "GET", path: "/v1/schemes", role: bridge.RoleViewer, id: "schemes", summary: "Every preset and generic verifier",
			answers: map[int]any{200: adminapi.SchemeList{}}, serve: s.schemes},
		{method: "GET", path: "/v1/openapi.json", role: bridge.RoleViewer, id: "openapi", summary: "This document",
			answers: map[int]any{200: map[string]any{}}, serve: s.serveOpenAPI},
		{method: "POST", path: "/v1/reseal", role: bridge.RoleAdmin, id: "reseal", summary: "Seal every secret under the newest encryption key",
			text:    "The middle of replacing `QUEENBRIDGE_ENCRYPTION_KEY`: put the new key in front of the old one on every process, reseal, take the old one away.",
			answers: map[int]any{200: adminapi.Resealed{}}, errors: []adminapi.Code{adminapi.CodeConflict, adminapi.CodePrecondition}, serve: s.reseal},
	}
	for _, kind := range bridge.Kinds() {
		all = append(all, s.resourceEndpoints(kind)...)
	}
	return append(append(all, s.deliveryEndpoint()), s.operateEndpoints()...)
}

func (s *Server) resourceEndpoints(kind bridge.Kind) []endpoint {
	list, one := "/v1/"+string(kind), "/v1/"+string(kind)+"/{name}"
	word := kind.Singular()
	answers := map[int]any{200: kind}
	all := []endpoint{
		{method: "GET", path: list, role: bridge.RoleViewer, id: "list_" + string(kind), summary: "List " + string(kind),
			text:  "In the order of their names, those of the configuration file included.",
			query: []parameter{pageSize, pageToken}, answers: map[int]any{200: pageOf(kind)}, serve: s.list},
		{method: "GET", path: one, role: bridge.RoleViewer, id: "read_" + word, summary: "Read a " + word,
			text:    "As it was written: `60s` stays `60s`. A literal secret reads as `${sealed:ID}`; writing that back keeps the secret.",
			headers: []parameter{ifChanged}, answers: map[int]any{200: kind, 304: nil}, errors: []adminapi.Code{adminapi.CodeNotFound}, serve: s.read},
		{method: "PUT", path: one, role: bridge.RoleAdmin, id: "put_" + word, summary: "Make a " + word + " what the body says",
			text: "Writing the same again changes nothing. It is checked together with all other resources; every problem is reported, with its path. " +
				"In use at once in the process that answers, within 3 seconds in all others.",
			query: []parameter{validateOnly, storedWrite}, headers: []parameter{ifMatch, ifNoneMatch}, body: kind,
			answers: map[int]any{200: kind, 201: kind}, errors: append([]adminapi.Code{adminapi.CodeNotFound}, changeErrors...), serve: s.put},
		{method: "PATCH", path: one, role: bridge.RoleAdmin, id: "patch_" + word, summary: "Change fields of a " + word + " (RFC 7396)",
			text:  "A field that is null goes back to its default, one that is not mentioned stays; lists are replaced whole.",
			query: []parameter{validateOnly, storedWrite}, headers: []parameter{ifMatch}, body: kind, patch: true,
			answers: answers, errors: append([]adminapi.Code{adminapi.CodeNotFound}, changeErrors...), serve: s.patch},
		{method: "DELETE", path: one, role: bridge.RoleAdmin, id: "delete_" + word, summary: "Delete a " + word, text: deleteTexts[kind],
			query: deleteQueries(kind), headers: []parameter{ifMatch}, answers: map[int]any{202: kind, 204: nil},
			errors: []adminapi.Code{adminapi.CodeNotFound, adminapi.CodeManagedByFile, adminapi.CodeInUse, adminapi.CodePrecondition}, serve: s.delete},
	}
	if kind != bridge.KindQueue {
		all = append(all, s.pauseEndpoints(kind)...)
	}
	for i := range all {
		all[i].kind = kind
	}
	return all
}

// deleteTexts say what deleting does.
var deleteTexts = map[bridge.Kind]string{
	bridge.KindSource: "Its webhooks are answered 404 from then on. What it put into its queue stays.",
	bridge.KindTarget: "Refused with 409 while a route uses it, unless asked to drain. 202: its routes drain, and it goes with the last of them.",
	bridge.KindRoute: "202: it drains. It takes no new events, its retries and dead letters run on, and it is gone (404) once none is left and every process knows. " +
		"204: it was not in use and is gone.",
	bridge.KindQueue: "Deletes the options alone: the queue and its events stay. Refused with 409 while a source or route uses it.",
}

// deleteQueries are the parameters of deleting.
func deleteQueries(kind bridge.Kind) []parameter {
	switch kind {
	case bridge.KindTarget:
		return []parameter{storedToo, drainToo}
	case bridge.KindRoute:
		return []parameter{storedToo, drainAnyway}
	}
	return []parameter{storedToo}
}

// pauseTexts say what pausing does.
var pauseTexts = map[bridge.Kind]string{
	bridge.KindSource: "Its webhooks are answered 503 with Retry-After. It is the field `paused` that changes, so a source of the configuration file cannot be paused here.",
	bridge.KindTarget: "Its events wait, whatever the route. Kept beside the document, in every process: a target of the configuration file can be paused, too.",
	bridge.KindRoute:  "Its events wait in the queue. Kept beside the document, in every process: a route of the configuration file can be paused, too.",
}

func (s *Server) pauseEndpoints(kind bridge.Kind) []endpoint {
	var all []endpoint
	for _, action := range []string{"pause", "resume"} {
		e := endpoint{method: "POST", path: "/v1/" + string(kind) + "/{name}/" + action, role: bridge.RoleOperator, id: action + "_" + kind.Singular(),
			summary: strings.ToUpper(action[:1]) + action[1:] + " a " + kind.Singular(), answers: map[int]any{200: kind},
			errors: append([]adminapi.Code{adminapi.CodeNotFound, adminapi.CodeNotServed}, changeErrors...), serve: s.resume}
		if action == "pause" {
			e.text = pauseTexts[kind]
			e.body, e.bodyOptional, e.serve = adminapi.PauseRequest{}, true, s.pause
		}
		all = append(all, e)
	}
	return all
}

// changeErrors are what a change of a resource may be answered, besides what
// any request may.
var changeErrors = []adminapi.Code{adminapi.CodeInvalid, adminapi.CodeManagedByFile, adminapi.CodeDraining,
	adminapi.CodeNewerVersion, adminapi.CodePrecondition, adminapi.CodeTooLarge}

// tag groups operations in the OpenAPI document.
func (e endpoint) tag() string {
	switch {
	case strings.Contains(e.path, "/dead-letters"):
		return "dead letters"
	case strings.Contains(e.path, "/retries"):
		return "retries"
	case e.kind != "":
		return string(e.kind)
	}
	return "bridge"
}

// pathText describes a variable of a path.
func pathText(e endpoint, name string) string {
	switch name {
	case "id":
		return "`id` of a dead letter, as the list of them has it."
	case "key":
		return "`key` of a retry, as the list of them has it, with its slash escaped."
	}
	return "The name of the " + e.kind.Singular() + "."
}

// pageOf stands for a page of a kind's resources.
type pageOf bridge.Kind

// find chooses the endpoint of a request.
func (s *Server) find(q *request) (*endpoint, error) {
	segments, ok := splitPath(q.URL.EscapedPath())
	if !ok {
		return nil, problem(adminapi.CodeMalformed, "the path cannot be read")
	}
	method := q.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path := s.closest(segments)
	var allowed []string
	for i := range s.table {
		e := &s.table[i]
		switch {
		case e.path != path:
		case e.method == method:
			q.vars, _ = match(strings.Split(path, "/"), segments)
			return e, nil
		default:
			allowed = append(allowed, e.method)
		}
	}
	if allowed == nil {
		return nil, problem(adminapi.CodeNotFound, "there is nothing at this path: GET /v1/openapi.json says what there is")
	}
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	return nil, problem(adminapi.CodeMethod, "%s", strings.Join(allowed, ", "))
}

// closest is the path of the table that fits with the fewest names left open:
// /dead-letters/redrive before /dead-letters/{id}.
func (s *Server) closest(segments []string) string {
	best, open := "", len(segments)+1
	for i := range s.table {
		vars, fits := match(strings.Split(s.table[i].path, "/"), segments)
		if fits && len(vars) < open {
			best, open = s.table[i].path, len(vars)
		}
	}
	return best
}

// splitPath parts an escaped path, so that a name may hold a slash.
func splitPath(escaped string) ([]string, bool) {
	parts := strings.Split(escaped, "/")
	for i := range parts {
		var err error
		if parts[i], err = url.PathUnescape(parts[i]); err != nil {
			return nil, false
		}
	}
	return parts, true
}

func match(template, segments []string) (map[string]string, bool) {
	if len(template) != len(segments) {
		return nil, false
	}
	vars := map[string]string{}
	for i, t := range template {
		name, isVar := strings.CutPrefix(t, "{")
		switch {
		case isVar && segments[i] != "":
			vars[strings.TrimSuffix(name, "}")] = segments[i]
		case isVar || t != segments[i]:
			return nil, false
		}
	}
	return vars, true
}
