package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// inProcess is an http.RoundTripper that hands requests to a handler in this
// process: the embedded broker is spoken to by the same client and the same
// HTTP API as a remote one, without a socket between. The handler must honour
// the request's context.
type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "in-process"
	defer func() {
		_ = in.Body.Close()
		if p := recover(); p != nil {
			resp, err = nil, fmt.Errorf("embedded broker: panic: %v", p)
		}
	}()
	w := &answer{header: make(http.Header), status: http.StatusOK}
	t.handler.ServeHTTP(w, in)
	if err := r.Context().Err(); err != nil {
		return nil, err // as a socket would: the caller is gone
	}
	return w.response(r), nil
}

// answer collects what the handler writes.
type answer struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.wrote {
		a.status, a.wrote = status, true
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.wrote = true
	return a.body.Write(b)
}

func (a *answer) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}
}
