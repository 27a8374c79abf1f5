package devbroker

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"
)

// Fault is what Config.Intercept makes go wrong with one request. The zero
// value lets it pass.
type Fault struct {
	// Status answers with this HTTP status before anything is done, with Body
	// as JSON and, when RetryAfter is set, a Retry-After header in seconds.
	// 0: carry the request out.
	Status     int
	Body       string
	RetryAfter time.Duration
	// LoseAnswer carries the request out, waits for its commit, and then cuts
	// the connection instead of answering (http.ErrAbortHandler).
	LoseAnswer bool
	// CutAnswer sends the answer, but only its first bytes, and then cuts the
	// connection. 0: all of it.
	CutAnswer int
	// Buffered answers every item of a push with buffered and stores nothing.
	Buffered bool
	// Lease replaces the lease of this pop: it expires early. 0: as asked.
	Lease time.Duration
	// Delay holds the answer back.
	Delay time.Duration
}

type faultKey struct{}

// faultOf returns the fault of a request; the zero Fault for none.
func faultOf(r *http.Request) Fault {
	f, _ := r.Context().Value(faultKey{}).(Fault)
	return f
}

// dispatchFaulty carries a request out as its fault has it.
func (b *Broker) dispatchFaulty(w http.ResponseWriter, r *http.Request, path string) {
	f := b.cfg.Intercept(r)
	switch {
	case f == (Fault{}):
		b.dispatch(w, r, path)
		return
	case f.Status != 0:
		f.answer(w)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), faultKey{}, f))
	if !f.LoseAnswer && f.CutAnswer == 0 && f.Delay == 0 {
		b.dispatch(w, r, path)
		return
	}
	held := newRecorder()
	b.dispatch(held, r, path)
	f.release(r.Context(), w, held)
}

func (f Fault) answer(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
	}
	body := f.Body
	if body == "" {
		body = string(new(jsonObject).str("error", http.StatusText(f.Status)).bytes())
	}
	answer(w, f.Status, []byte(body))
}

// release sends a held answer on, as far as the fault lets it.
func (f Fault) release(ctx context.Context, w http.ResponseWriter, held *recorder) {
	select {
	case <-time.After(f.Delay):
	case <-ctx.Done():
	}
	if f.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	for name, values := range held.header {
		w.Header()[name] = values
	}
	w.WriteHeader(held.status)
	body := held.body.Bytes()
	if n := f.CutAnswer; n > 0 && n < len(body) {
		_, _ = w.Write(body[:n])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

// recorder is a ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	wrote  bool
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

// Header returns the header of the answer.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader sets the status; the first call counts.
func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
}

// Write appends to the body.
func (r *recorder) Write(p []byte) (int, error) {
	r.wrote = true
	return r.body.Write(p)
}
