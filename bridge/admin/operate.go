package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// ErrNotFound is what Letters and Tester answer, wrapped, where there is no such
// dead letter, retry or route; ErrConflict, where the route's state forbids it.
// The text of an ErrConflict is shown.
var (
	ErrNotFound = errors.New("there is no such thing")
	ErrConflict = errors.New("it cannot be done in this state")
)

// Letters are the dead letters and pending retries of routes, in Queen: no
// dispatcher need run. Routes may be gone; that is no error. Its methods may be
// called at once.
type Letters interface {
	// List returns a page from an offset on, and the offset of the next one, 0
	// behind the last.
	List(ctx context.Context, route string, s adminapi.Selection, size, offset int) (items []adminapi.DeadLetter, next int, err error)
	// Read returns one, with its payload.
	Read(ctx context.Context, route, id string) (adminapi.DeadLetter, error)
	Redrive(ctx context.Context, route string, o adminapi.Order) (adminapi.OrderResult, error)
	Delete(ctx context.Context, route string, o adminapi.Order) (adminapi.OrderResult, error)
	// Retries returns a page from behind the key after, and the next one's.
	Retries(ctx context.Context, route, after string, size int, details bool) (items []adminapi.Retry, next string, err error)
	RetryNow(ctx context.Context, route, key string) error
	// Replay lets a paused route deliver again what its queue holds since a time;
	// zero is its beginning.
	Replay(ctx context.Context, route string, since time.Time) (adminapi.ReplayResult, error)
}

// Tester calls the target of a route with an event as a first delivery would,
// with the guards of real ones. A failed call is no error.
type Tester interface {
	TestFire(ctx context.Context, route string, e bridge.Event) (adminapi.TestResult, error)
}

var errNotServed = problem(adminapi.CodeNotServed, "this process does not run the part that can do it")

func (s *Server) operateEndpoints() []endpoint {
	const route = "/v1/routes/{name}"
	const letters = route + "/dead-letters"
	missing := []adminapi.Code{adminapi.CodeNotFound}
	refused := []adminapi.Code{adminapi.CodeInvalid, adminapi.CodeConflict, adminapi.CodeNotFound}
	all := []endpoint{
		{method: "GET", path: letters, role: bridge.RoleViewer, id: "list_dead_letters", summary: "List dead letters of a route, newest first",
			text: "Also of a route that is gone.",
			query: []parameter{pageSize, pageToken, {"class", "Only of this class.", map[string]any{"type": "string", "enum": bridge.FailureClasses()}}, {"event", "Only of this transaction id.", textSchema},
				{"since", "Only those that failed then or later.", timeSchema}, {"until", "Only those that failed before.", timeSchema}},
			answers: map[int]any{200: adminapi.DeadLetterPage{}}, errors: missing, serve: s.deadLetters},
		{method: "GET", path: letters + "/{id}", role: bridge.RoleViewer, id: "read_dead_letter", summary: "Read a dead letter",
			query:   []parameter{{"payload", "With what was pushed; takes the role operator.", booleanSchema}},
			answers: map[int]any{200: adminapi.DeadLetter{}}, errors: missing, serve: s.deadLetter},
		{method: "DELETE", path: letters + "/{id}", role: bridge.RoleOperator, id: "delete_dead_letter", summary: "Delete a dead letter for good",
			answers: map[int]any{204: nil}, errors: missing, serve: s.deleteDeadLetter},
		{method: "POST", path: letters + "/redrive", role: bridge.RoleOperator, id: "redrive_dead_letters", summary: "Deliver dead letters again",
			text: "At most 1000 in one request: repeat it until `done` is 0. Each begins its retry policy anew and keeps its webhook-id; it goes to the route alone, " +
				"not to others that read its queue. Repeating does nothing twice. Refused with 409 while the route drains, is gone or not in use.",
			body: adminapi.Order{}, answers: map[int]any{200: adminapi.OrderResult{}}, errors: refused, serve: s.redrive},
		{method: "POST", path: letters + "/delete", role: bridge.RoleOperator, id: "delete_dead_letters", summary: "Delete dead letters for good",
			text: "At most 1000 in one request: repeat it until `done` is 0.",
			body: adminapi.Order{}, answers: map[int]any{200: adminapi.OrderResult{}}, errors: refused, serve: s.deleteDeadLetters},
		{method: "GET", path: route + "/retries", role: bridge.RoleViewer, id: "list_retries", summary: "List pending retries of a route",
			query:   []parameter{pageSize, pageToken, {"details", "With the event and the last failure of each.", booleanSchema}},
			answers: map[int]any{200: adminapi.RetryPage{}}, errors: missing, serve: s.retries},
		{method: "POST", path: route + "/retries/{key}/now", role: bridge.RoleOperator, id: "retry_now", summary: "Let a pending retry be due at once",
			text:    "In the process that answers, a target that is held or whose breaker is open is tried again, too.",
			answers: map[int]any{204: nil}, errors: missing, serve: s.retryNow},
		{method: "POST", path: route + "/test", role: bridge.RoleOperator, id: "test_fire", summary: "Call the route's target with a test event",
			text: "As a first delivery would, with filter, transform, credentials and guards; nothing is stored. Also while the route is paused.",
			body: adminapi.TestEvent{}, bodyOptional: true, answers: map[int]any{200: adminapi.TestResult{}},
			errors: refused, serve: s.testFire},
	}
	all = append(all, s.replayEndpoint())
	for i := range all {
		all[i].kind = bridge.KindRoute
		all[i].errors = append(slices.Clone(all[i].errors), adminapi.CodeNotServed)
	}
	return all
}

func (s *Server) deadLetters(q *request) (answer, error) {
	size, after, err := paging(q)
	if err != nil {
		return answer{}, err
	}
	selection, err := selectionOf(q)
	if err != nil {
		return answer{}, err
	}
	offset := 0
	if after != "" {
		if offset, err = strconv.Atoi(after); err != nil || offset < 0 {
			return answer{}, problem(adminapi.CodeMalformed, "page_token is none that this API gave out")
		}
	}
	if s.config.Letters == nil {
		return answer{}, errNotServed
	}
	items, next, err := s.config.Letters.List(q.Context(), q.vars["name"], selection, size, offset)
	if err != nil {
		return answer{}, err
	}
	page := adminapi.DeadLetterPage{Items: append([]adminapi.DeadLetter{}, items...)}
	for i := range page.Items {
		q.shorten(&page.Items[i], false)
	}
	if next > 0 {
		page.NextPageToken = token(strconv.Itoa(next))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// shorten takes out what the caller may not see, or did not ask for.
func (q *request) shorten(l *adminapi.DeadLetter, payload bool) {
	if !payload {
		l.Payload, l.PayloadError = "", ""
	}
	if !q.who.may(bridge.RoleOperator) {
		l.Reason.Response = ""
	}
}

// unknownClass says what is wrong with classes: one that there is not would
// choose nothing, without a word.
func unknownClass(classes []string) string {
	var known []string
	for _, class := range bridge.FailureClasses() {
		known = append(known, string(class))
	}
	for _, class := range classes {
		if slices.Contains(known, class) {
			continue
		}
		if near := bridge.Nearest(class, known); near != "" {
			return fmt.Sprintf("%q is unknown (did you mean %q?)", clip(class), near)
		}
		return fmt.Sprintf("%q is unknown: it must be one of %s", clip(class), strings.Join(known, ", "))
	}
	return ""
}

func selectionOf(q *request) (adminapi.Selection, error) {
	s := adminapi.Selection{Event: q.query.Get("event")}
	if q.query.Has("class") {
		s.Classes = []string{q.query.Get("class")}
	}
	if wrong := unknownClass(s.Classes); wrong != "" {
		return s, problem(adminapi.CodeMalformed, "class %s", wrong)
	}
	var err error
	if s.Since, err = q.time("since"); err != nil {
		return s, err
	}
	s.Until, err = q.time("until")
	return s, err
}

// time is a parameter that is a time; zero: it is not there.
func (q *request) time(name string) (time.Time, error) {
	if !q.query.Has(name) {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, q.query.Get(name))
	if err != nil {
		return at, problem(adminapi.CodeMalformed, "%s must be an RFC 3339 time such as 2026-01-02T15:04:05Z", name)
	}
	return at, nil
}

func (s *Server) deadLetter(q *request) (answer, error) {
	payload, err := q.flag("payload")
	switch {
	case err != nil:
		return answer{}, err
	case payload && !q.who.may(bridge.RoleOperator):
		return answer{}, problem(adminapi.CodeForbidden, "token %q has the role %s; a payload takes operator", q.who.name, q.who.role)
	case s.config.Letters == nil:
		return answer{}, errNotServed
	}
	l, err := s.config.Letters.Read(q.Context(), q.vars["name"], q.vars["id"])
	if err != nil {
		return answer{}, err
	}
	q.shorten(&l, payload)
	return answer{status: http.StatusOK, body: l}, nil
}

func (s *Server) deleteDeadLetter(q *request) (answer, error) {
	if s.config.Letters == nil {
		return answer{}, errNotServed
	}
	order := adminapi.Order{Selection: adminapi.Selection{IDs: []string{q.vars["id"]}}, Limit: 1}
	result, err := s.config.Letters.Delete(q.Context(), q.vars["name"], order)
	switch {
	case err != nil:
		return answer{}, err
	case result.Failed > 0:
		return answer{}, errors.New("delete a dead letter: " + result.Problems[0])
	case result.Done == 0:
		return answer{}, ErrNotFound
	}
	s.recordOrder(q, "dead letters deleted", order, result)
	return answer{status: http.StatusNoContent}, nil
}

func (s *Server) redrive(q *request) (answer, error) {
	return s.order(q, "dead letters redriven", Letters.Redrive)
}

func (s *Server) deleteDeadLetters(q *request) (answer, error) {
	return s.order(q, "dead letters deleted", Letters.Delete)
}

// maxOrder is the most that one request touches.
const maxOrder = 1000

func (s *Server) order(q *request, action string, carry func(Letters, context.Context, string, adminapi.Order) (adminapi.OrderResult, error)) (answer, error) {
	var o adminapi.Order
	if err := q.decode(&o); err != nil {
		return answer{}, err
	}
	if o.Limit < 0 || o.Limit > maxOrder || o.PerSecond < 0 {
		return answer{}, &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of the body",
			Problems: []adminapi.Problem{{Path: "limit", Text: "must be 0 to 1000, and per_second 0 or more"}}}
	}
	if wrong := unknownClass(o.Classes); wrong != "" {
		return answer{}, &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of the body",
			Problems: []adminapi.Problem{{Path: "classes", Text: wrong}}}
	}
	if o.Limit == 0 {
		o.Limit = maxOrder
	}
	if s.config.Letters == nil {
		return answer{}, errNotServed
	}
	result, err := carry(s.config.Letters, q.Context(), q.vars["name"], o)
	if result.Done > 0 && !o.DryRun {
		s.recordOrder(q, action, o, result)
	}
	if err != nil {
		return answer{}, err
	}
	result.Problems = append([]string{}, result.Problems...)
	return answer{status: http.StatusOK, body: result}, nil
}

func (s *Server) recordOrder(q *request, action string, o adminapi.Order, r adminapi.OrderResult) {
	s.log.LogAttrs(q.Context(), slog.LevelInfo, "order carried out by the admin API",
		slog.String("request", q.id), slog.String("by", q.who.name), slog.String("role", q.who.role), slog.String("from", q.RemoteAddr),
		slog.String("action", action), slog.String("route", q.vars["name"]),
		slog.Int("done", r.Done), slog.Int("skipped", r.Skipped), slog.Int("failed", r.Failed), slog.Int("ids", len(o.IDs)))
}

func (s *Server) retries(q *request) (answer, error) {
	size, after, err := paging(q)
	if err != nil {
		return answer{}, err
	}
	details, err := q.flag("details")
	if err != nil {
		return answer{}, err
	}
	if s.config.Letters == nil {
		return answer{}, errNotServed
	}
	items, next, err := s.config.Letters.Retries(q.Context(), q.vars["name"], after, size, details)
	if err != nil {
		return answer{}, err
	}
	page := adminapi.RetryPage{Items: append([]adminapi.Retry{}, items...)}
	if next != "" {
		page.NextPageToken = token(next)
	}
	return answer{status: http.StatusOK, body: page}, nil
}

func (s *Server) retryNow(q *request) (answer, error) {
	if s.config.Letters == nil {
		return answer{}, errNotServed
	}
	if err := s.config.Letters.RetryNow(q.Context(), q.vars["name"], q.vars["key"]); err != nil {
		return answer{}, err
	}
	s.recordOrder(q, "retry hastened", adminapi.Order{}, adminapi.OrderResult{Done: 1})
	return answer{status: http.StatusNoContent}, nil
}

func (s *Server) testFire(q *request) (answer, error) {
	var e adminapi.TestEvent
	if err := q.decode(&e); err != nil {
		return answer{}, err
	}
	if s.config.Tester == nil {
		return answer{}, errNotServed
	}
	result, err := s.config.Tester.TestFire(q.Context(), q.vars["name"], eventOf(e))
	if err != nil {
		return answer{}, err
	}
	s.recordOrder(q, "test-fire", adminapi.Order{}, adminapi.OrderResult{Done: 1})
	return answer{status: http.StatusOK, body: result}, nil
}

// eventOf is the event of a test-fire.
func eventOf(e adminapi.TestEvent) bridge.Event {
	body := []byte(e.Body)
	var text string
	switch {
	case len(body) == 0:
		body = []byte("{}")
	case json.Unmarshal(body, &text) == nil && body[0] == '"':
		body = []byte(text)
	}
	event := bridge.Event{ID: "test", Source: e.Source, Type: e.Type, Received: time.Now().UTC(), Class: bridge.ClassNone,
		Method: http.MethodPost, Path: "/test", ContentType: e.ContentType, Body: body}
	if event.ContentType == "" {
		event.ContentType = "application/json"
	}
	for name, value := range e.Headers {
		event.Headers = append(event.Headers, bridge.Header{Name: name, Value: value})
	}
	return event
}
