package devbroker

import (
	"crypto/subtle"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// maxBody is the largest request body, Queen's default.
const maxBody = 64 << 20

// params are the values of the variable parts of a path, in order.
type params []string

type handler func(http.ResponseWriter, *http.Request, params)

// route is one method of one path. A segment ":" takes any one segment, "*"
// the rest of the path.
type route struct {
	method, path string
	serve        handler
}

// router finds routes: whole paths at once, the others by their segments.
type router struct {
	fixed  map[string][]route
	shaped []shapedRoute
}

type shapedRoute struct {
	route
	segments []string
}

func newRouter(routes []route) router {
	rt := router{fixed: map[string][]route{}}
	for _, r := range routes {
		if strings.ContainsAny(r.path, ":*") {
			rt.shaped = append(rt.shaped, shapedRoute{r, strings.Split(r.path, "/")})
		} else {
			rt.fixed[r.path] = append(rt.fixed[r.path], r)
		}
	}
	return rt
}

// find returns the handler of a request, or the methods its path has.
func (rt *router) find(method, path string) (serve handler, p params, allow []string) {
	for _, r := range rt.fixed[path] {
		if r.method == method {
			return r.serve, nil, nil
		}
		allow = append(allow, r.method)
	}
	if allow != nil {
		return nil, nil, allow
	}
	segments := strings.Split(path, "/")
	for _, r := range rt.shaped {
		p, ok := match(r.segments, segments)
		if !ok {
			continue
		}
		if r.method == method {
			return r.serve, p, nil
		}
		allow = append(allow, r.method)
	}
	return nil, nil, allow
}

func match(pattern, path []string) (p params, ok bool) {
	for i, want := range pattern {
		if i >= len(path) {
			return nil, false
		}
		switch {
		case want == "*":
			rest, err := url.PathUnescape(strings.Join(path[i:], "/"))
			return append(p, rest), err == nil && rest != ""
		case want == ":":
			value, err := url.PathUnescape(path[i])
			if err != nil || value == "" {
				return nil, false
			}
			p = append(p, value)
		case want != path[i]:
			return nil, false
		}
	}
	return p, len(pattern) == len(path)
}

// ServeHTTP answers one request. Requests run side by side; a long poll ends
// when its context does, and then has taken nothing.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	b.requests.Add(1)
	if b.cfg.Token != "" && !public(path) && !b.authorized(w, r) {
		return
	}
	if b.cfg.Intercept != nil {
		b.dispatchFaulty(w, r, path)
		return
	}
	b.dispatch(w, r, path)
}

func (b *Broker) dispatch(w http.ResponseWriter, r *http.Request, path string) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http and the in-process transport drop the body
	}
	serve, p, allow := b.routes.find(method, path)
	switch {
	case serve != nil:
		serve(w, r, p)
	case allow != nil:
		w.Header().Set("Allow", allowHeader(allow))
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet && !strings.HasPrefix(path, "/api/"):
		page(w)
	default:
		answer(w, http.StatusNotFound, []byte(`{"error":"Not Found","code":"no_such_route"}`))
	}
}

func allowHeader(methods []string) string {
	out := make([]string, 0, len(methods)+1)
	for _, m := range methods {
		if out = append(out, m); m == http.MethodGet {
			out = append(out, http.MethodHead)
		}
	}
	return strings.Join(out, ",")
}

// page is what a browser gets; the real broker serves its console there.
func page(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html><title>Queen Bridge</title><p>The embedded Queen broker. Its API is under /api/v1.\n")
}

func public(path string) bool {
	return path == "/health" || strings.HasPrefix(path, "/metrics")
}

func (b *Broker) authorized(w http.ResponseWriter, r *http.Request) bool {
	header := r.Header.Get("Authorization")
	token, ok := strings.CutPrefix(header, "Bearer ")
	switch {
	case header == "":
		failure(w, http.StatusUnauthorized, "Authentication required")
	case !ok:
		failure(w, http.StatusUnauthorized, "Bad token header")
	case subtle.ConstantTimeCompare([]byte(token), []byte(b.cfg.Token)) != 1:
		failure(w, http.StatusUnauthorized, "Invalid token signature")
	default:
		return true
	}
	return false
}

// answer writes a JSON answer.
func answer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON, typed as JSON
}

// plainText is how 1.3.0 answers what its framework refused.
func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) //nolint:gosec // plain text, and none of it comes from the request
}

func failure(w http.ResponseWriter, status int, text string) {
	answer(w, status, new(jsonObject).str("error", text).bytes())
}

func badBody(w http.ResponseWriter, err error) {
	failure(w, http.StatusBadRequest, "bad body: "+err.Error())
}

func badQuery(w http.ResponseWriter, err error) {
	plainText(w, http.StatusBadRequest, "Failed to deserialize query string: "+err.Error())
}

// limitOffset reads limit and offset; what cannot be read is not there (measured
// 1.3.0).
func limitOffset(r *http.Request, most int64) (limit, offset int64) {
	q := r.URL.Query()
	if n, err := strconv.ParseInt(q.Get("limit"), 10, 64); err == nil {
		most = n
	}
	offset, err := strconv.ParseInt(q.Get("offset"), 10, 64)
	if err != nil {
		offset = 0
	}
	return most, offset
}

// unavailable says that nothing can be stored, and why.
func unavailable(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusServiceUnavailable,
		new(jsonObject).str("error", err.Error()).str("code", "unavailable").bytes())
}

// requestBody is a body read whole, in memory that is used again.
type requestBody struct {
	bytes []byte
	pool  *sync.Pool
}

// keepBody is the largest buffer worth keeping.
const keepBody = 1 << 20

func (b requestBody) free() {
	if b.pool != nil && cap(b.bytes) <= keepBody {
		buf := b.bytes[:0]
		b.pool.Put(&buf)
	}
}

// readBody reads the body, or answers why it cannot.
func (b *Broker) readBody(w http.ResponseWriter, r *http.Request) (body requestBody, ok bool) {
	if r.Body == nil {
		return requestBody{}, true
	}
	if r.ContentLength > maxBody {
		tooLarge(w, r)
		return requestBody{}, false
	}
	var buf []byte
	if kept, ok := b.bodies.Get().(*[]byte); ok {
		buf = *kept
	}
	buf, err := readAll(buf, r)
	switch {
	case err != nil:
		failure(w, http.StatusBadRequest, "bad body: "+err.Error())
	case len(buf) > maxBody:
		tooLarge(w, r)
	default:
		return requestBody{buf, &b.bodies}, true
	}
	return requestBody{}, false
}

func readAll(buf []byte, r *http.Request) ([]byte, error) {
	if n := int(r.ContentLength); n >= cap(buf) {
		buf = make([]byte, 0, n+1)
	}
	for len(buf) <= maxBody {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// tooLarge refuses a body. It reads on for a while, or a client that is still
// writing would see a reset connection instead of the answer.
func tooLarge(w http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, maxBody)
	w.Header().Set("Connection", "close")
	plainText(w, http.StatusRequestEntityTooLarge, "Failed to buffer the request body: length limit exceeded")
}
