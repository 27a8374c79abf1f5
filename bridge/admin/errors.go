package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// problem makes an error with a sentence for the one who asked.
func problem(code adminapi.Code, format string, args ...any) error {
	return &adminapi.Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// statuses are the HTTP statuses of the codes.
var statuses = map[adminapi.Code]int{
	adminapi.CodeMalformed: http.StatusBadRequest, adminapi.CodeUnauthenticated: http.StatusUnauthorized,
	adminapi.CodeForbidden: http.StatusForbidden, adminapi.CodeNotFound: http.StatusNotFound,
	adminapi.CodeMethod: http.StatusMethodNotAllowed, adminapi.CodeConflict: http.StatusConflict,
	adminapi.CodeManagedByFile: http.StatusConflict, adminapi.CodeInUse: http.StatusConflict,
	adminapi.CodeDraining: http.StatusConflict, adminapi.CodeNewerVersion: http.StatusConflict,
	adminapi.CodePrecondition: http.StatusPreconditionFailed, adminapi.CodeTooLarge: http.StatusRequestEntityTooLarge,
	adminapi.CodeMediaType: http.StatusUnsupportedMediaType, adminapi.CodeInvalid: http.StatusUnprocessableEntity,
	adminapi.CodeRateLimited: http.StatusTooManyRequests, adminapi.CodeInternal: http.StatusInternalServerError,
	adminapi.CodeUnavailable: http.StatusServiceUnavailable, adminapi.CodeNotServed: http.StatusServiceUnavailable,
}

// failure is the answer to an error: the only place where errors become
// statuses.
func (s *Server) failure(q *request, err error) answer {
	e := s.translate(q, err)
	e.Type, e.RequestID = "about:blank", q.id
	if e.Status == 0 {
		e.Status = statuses[e.Code]
	}
	e.Title = http.StatusText(e.Status)
	h := http.Header{"Content-Type": {"application/problem+json"}}
	switch e.Code {
	case adminapi.CodeUnauthenticated:
		h.Set("WWW-Authenticate", `Bearer realm="queenbridge"`)
	case adminapi.CodeMethod:
		h.Set("Allow", e.Detail)
		e.Detail = "allowed here: " + e.Detail
	case adminapi.CodeMediaType:
		if q.Method == http.MethodPatch {
			h.Set("Accept-Patch", mergePatch+", application/json")
		}
	case adminapi.CodeRateLimited, adminapi.CodeUnavailable:
		h.Set("Retry-After", strconv.Itoa(int(max(e.RetryAfter, time.Second).Seconds())))
	}
	return answer{status: e.Status, header: h, body: e}
}

// translate finds the words for an error.
func (s *Server) translate(q *request, err error) *adminapi.Error {
	if e, ok := errors.AsType[*adminapi.Error](err); ok {
		copied := *e
		return &copied
	}
	if invalid, ok := errors.AsType[*rules.InvalidError](err); ok {
		return &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of " + q.resource().String(), Problems: problems(invalid.Problems, q.body)}
	}
	if newer, ok := errors.AsType[*rules.NewerError](err); ok {
		return &adminapi.Error{Code: adminapi.CodeNewerVersion, Detail: newer.Error(), Problems: problems(newer.Problems, bridge.Node{})}
	}
	for _, known := range []struct {
		is   bool
		code adminapi.Code
	}{
		{errors.Is(err, rules.ErrNotFound), adminapi.CodeNotFound},
		{errors.Is(err, ErrNotFound), adminapi.CodeNotFound},
		{errors.Is(err, ErrConflict), adminapi.CodeConflict},
		{errors.Is(err, rules.ErrManagedByFile), adminapi.CodeManagedByFile},
		{errors.Is(err, rules.ErrDraining), adminapi.CodeDraining},
		{errors.Is(err, rules.ErrNoKey), adminapi.CodeConflict},
		{isType[*rules.PreconditionError](err), adminapi.CodePrecondition},
		{isType[*rules.InUseError](err), adminapi.CodeInUse},
		{isType[*rules.TooLargeError](err), adminapi.CodeTooLarge},
		{isType[*rules.SealedError](err), adminapi.CodeConflict},
	} {
		if known.is {
			return &adminapi.Error{Code: known.code, Detail: err.Error()}
		}
	}
	return s.unavailable(q, err)
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// unavailable is what an error of Queen's, or of ours, becomes: a fixed
// sentence for the caller, the rest for the log under the same id.
func (s *Server) unavailable(q *request, err error) *adminapi.Error {
	s.log.Error("admin request failed", "request", q.id, "method", q.Method, "path", q.template(), "error", err)
	if errors.Is(err, errInternal) {
		return &adminapi.Error{Code: adminapi.CodeInternal, Detail: "the log has more under this request id"}
	}
	detail := "Queen did not take the change, or did not say so: it may have been made; read it again, or repeat it"
	if q.Method == http.MethodGet || q.Method == http.MethodHead {
		detail = "Queen did not answer"
	}
	if errors.Is(err, rules.ErrBusy) {
		detail = rules.ErrBusy.Error() + "; repeat it"
	}
	if errors.Is(err, context.Canceled) {
		detail = "the request was given up"
	}
	return &adminapi.Error{Code: adminapi.CodeUnavailable, Detail: detail, RetryAfter: queen.RetryAfter(err)}
}

var errInternal = errors.New("internal")

// problems are the problems of a resource in the words of the API, with what
// stands there in the document that was sent.
func problems(list []bridge.Problem, doc bridge.Node) []adminapi.Problem {
	var all []adminapi.Problem
	for _, p := range list {
		all = append(all, adminapi.Problem{Path: p.Path, Text: p.Text, Warning: p.Warning, Value: valueAt(doc, p.Path)})
	}
	return all
}

// valueAt is a short scalar of a document that is no text: texts may be
// secrets in the wrong place.
func valueAt(doc bridge.Node, path string) string {
	n, found := doc.At(path)
	if !found || path == "" || n.Kind != bridge.NodeNumber && n.Kind != bridge.NodeBool {
		return ""
	}
	return clip(n.Text)
}
