package admin

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// request is one request on its way through the server.
type request struct {
	*http.Request
	id       string // also in the answer and the log
	who      identity
	endpoint *endpoint
	vars     map[string]string // of the path
	query    url.Values
	body     bridge.Node                        // NodeAbsent where there is none
	paused   map[bridge.Resource]adminapi.Pause // once it was asked for
}

func newRequestID() string { return strings.ToLower(rand.Text()) }

func (q *request) template() string {
	if q.endpoint == nil {
		return "none"
	}
	return q.endpoint.path
}

// knownMethod is the method for metrics: those of strangers are many.
func (q *request) knownMethod() string {
	if q.endpoint == nil {
		return "none"
	}
	return q.endpoint.method
}

// resource is the resource that the path names.
func (q *request) resource() bridge.Resource {
	return bridge.Resource{Kind: q.endpoint.kind, Name: q.vars["name"]}
}

// read reads query and body, as far as the endpoint takes them.
func (q *request) read() error {
	var err error
	if q.query, err = url.ParseQuery(q.URL.RawQuery); err != nil {
		return problem(adminapi.CodeMalformed, "the query cannot be read")
	}
	for name, values := range q.query {
		switch {
		case !slices.ContainsFunc(q.endpoint.query, func(p parameter) bool { return p.name == name }):
			return q.unknownParameter(name)
		case len(values) > 1:
			return problem(adminapi.CodeMalformed, "query parameter %q stands there more than once", clip(name))
		}
	}
	return q.readBody()
}

func (q *request) unknownParameter(name string) error {
	var known []string
	for _, p := range q.endpoint.query {
		known = append(known, p.name)
	}
	meant := bridge.Nearest(strings.ReplaceAll(name, "-", "_"), known)
	if meant != "" {
		meant = fmt.Sprintf(" (did you mean %q?)", meant)
	}
	return problem(adminapi.CodeMalformed, "there is no query parameter %q here%s", clip(name), meant)
}

func (q *request) readBody() error {
	data, err := io.ReadAll(io.LimitReader(q.Body, maxBody+1))
	switch {
	case err != nil:
		return problem(adminapi.CodeMalformed, "the body cannot be read")
	case len(data) > maxBody:
		return problem(adminapi.CodeTooLarge, "the body is larger than %s", bridge.Size(maxBody))
	}
	needed := q.endpoint.body != nil && !q.endpoint.bodyOptional
	if writes(q.Method) && (needed || len(data) > 0) && !q.isJSON() {
		return problem(adminapi.CodeMediaType, "the Content-Type must be %s", q.mediaType())
	}
	if len(bytes.TrimSpace(data)) == 0 {
		if needed {
			return problem(adminapi.CodeMalformed, "a body is needed")
		}
		return nil
	}
	if q.endpoint.body == nil {
		return problem(adminapi.CodeMalformed, "no body is taken here")
	}
	if q.body, err = bridge.ParseJSON(data); err != nil {
		return problem(adminapi.CodeMalformed, "%s", err)
	}
	if q.body.Kind != bridge.NodeMap {
		return problem(adminapi.CodeMalformed, "the body must be an object of fields")
	}
	return nil
}

// decode reads the body strictly into v, a pointer to a struct of package
// adminapi. A field that is null is as good as none; an entry of a list or map
// that is null is not.
func (q *request) decode(v any) error {
	if q.body.Kind == bridge.NodeAbsent {
		return nil
	}
	for _, m := range q.body.Members {
		if m.Key != "body" && slices.ContainsFunc(entries(m.Value), func(n bridge.Node) bool { return n.Kind == bridge.NodeAbsent }) {
			return &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of the body",
				Problems: []adminapi.Problem{{Path: clip(m.Key), Text: "must not hold null"}}}
		}
	}
	err := jsonv2.Unmarshal(q.body.AppendJSON(nil), v, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	p := adminapi.Problem{Text: "is not of the type that the OpenAPI document says"}
	if wrong, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		p.Path = strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", ".")
		if errors.Is(err, jsonv2.ErrUnknownName) {
			p.Text = "is unknown"
		}
	}
	return &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of the body", Problems: []adminapi.Problem{p}}
}

// entries are the values of a list or map.
func entries(n bridge.Node) []bridge.Node {
	all := slices.Clone(n.Items)
	for _, m := range n.Members {
		all = append(all, m.Value)
	}
	return all
}

const mergePatch = "application/merge-patch+json"

// isJSON says that the body is said to be JSON. A form, which a browser may send
// for any page, is not.
func (q *request) isJSON() bool {
	media, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || media == mergePatch && q.Method == http.MethodPatch)
}

func writes(method string) bool {
	return method == http.MethodPut || method == http.MethodPatch || method == http.MethodPost
}

func (q *request) mediaType() string {
	if q.Method == http.MethodPatch {
		return mergePatch + " or application/json"
	}
	return "application/json"
}

// flag reads a boolean query parameter.
func (q *request) flag(name string) (bool, error) {
	switch q.query.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		if !q.query.Has(name) {
			return false, nil
		}
	}
	return false, problem(adminapi.CodeMalformed, "query parameter %q must be true or false", name)
}

// answer is what is sent back. A body is written as JSON.
type answer struct {
	status int
	header http.Header
	body   any
}

func (s *Server) write(w http.ResponseWriter, q *request, a answer) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Request-Id", q.id)
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	data, err := encode(a.body)
	if err != nil { // only a resource whose document is none, which the catalog never holds
		s.log.Error("admin answer not written", "request", q.id, "error", err)
		a.status, data = http.StatusInternalServerError, []byte("{}\n")
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	if q.Method != http.MethodHead {
		_, _ = w.Write(data) // a client that is gone is no error of ours
	}
}

func encode(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// clip bounds what an error repeats of a request.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
