package devbroker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Transport returns an http.RoundTripper that calls the broker directly,
// whatever host a request names. It lets a client in the same process use the
// broker without a listener. Safe for concurrent use.
func (b *Broker) Transport() http.RoundTripper { return &transport{b} }

type transport struct{ broker *Broker }

var errCut = errors.New("the broker cut the connection")

// RoundTrip carries the request out and returns the whole answer. It returns
// when the request's context ends, like a connection would.
func (t *transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if r.Body != nil {
		defer func() { err = errors.Join(err, r.Body.Close()) }()
	}
	w := newRecorder()
	cut := t.serve(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp = w.response(r)
	if cut {
		if !w.wrote {
			return nil, errCut
		}
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, cutReader{}))
	}
	return resp, nil
}

// serve reports whether the handler gave up the connection.
func (t *transport) serve(w *recorder, r *http.Request) (cut bool) {
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler { //nolint:errorlint // this very value
				panic(v)
			}
			cut = true
		}
	}()
	t.broker.ServeHTTP(w, r)
	return false
}

type cutReader struct{}

// Read fails the way a cut connection does.
func (cutReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (r *recorder) response(req *http.Request) *http.Response {
	r.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	body := r.body.Bytes()
	if req.Method == http.MethodHead {
		body = nil
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)),
		StatusCode: r.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        r.header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}
