package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// function is the built-in function of `queenbridge dev`: it prints what
// arrives, and fails the first calls of each event when asked to.
type function struct {
	out  io.Writer
	fail int // calls of each event that get 503

	mu    sync.Mutex
	calls map[string]int // by webhook-id
}

func newFunction(out io.Writer, fail int) *function {
	return &function{out: out, fail: fail, calls: make(map[string]int)}
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	status := f.count(r.Header.Get("webhook-id"))
	f.print(r, body, status)
	w.WriteHeader(status)
}

func (f *function) count(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) > 10_000 { // a demo that runs for days stays small
		clear(f.calls)
	}
	f.calls[id]++
	if f.calls[id] <= f.fail {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (f *function) print(r *http.Request, body []byte, status int) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s  %s %s  attempt %s → %d\n", time.Now().Format("15:04:05.000"), r.Method, r.URL.Path, r.Header.Get("Queen-Attempt"), status)
	for _, name := range sortedNames(r.Header) {
		for _, v := range r.Header[name] {
			fmt.Fprintf(&b, "  %s: %s\n", strings.ToLower(name), v)
		}
	}
	fmt.Fprintf(&b, "  %s\n", shown(body))
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = io.WriteString(f.out, b.String())
}

func sortedNames(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shown is a body fit for a terminal: text as it is, anything else its size.
func shown(body []byte) string {
	const most = 4 << 10
	switch {
	case len(body) == 0:
		return "(no body)"
	case !utf8.Valid(body):
		return fmt.Sprintf("(%d bytes that are no UTF-8)", len(body))
	case len(body) > most:
		return fmt.Sprintf("%s … (%d bytes in all)", strings.ToValidUTF8(string(body[:most]), ""), len(body))
	}
	return string(body)
}
