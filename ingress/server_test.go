package ingress_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// world is a running server and what it stands between.
type world struct {
	*ingress.Server
	queen *queentest.Shelf
	addr  string
	logs  *logBuffer
	stop  func() error
}

// logBuffer collects log lines.
type logBuffer struct {
	mu  sync.Mutex
	out strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// newServer makes a server, over a fake Queen where none is given, without a
// listener.
func newServer(t *testing.T, c ingress.Config) (*ingress.Server, *queentest.Shelf) {
	t.Helper()
	if c.Queen == nil {
		c.Queen = &queentest.Shelf{}
	}
	q, _ := c.Queen.(*queentest.Shelf)
	s, err := ingress.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s, q
}

// serve runs a server on a loopback port until the test ends.
func serve(t *testing.T, c ingress.Config) *world {
	t.Helper()
	w := &world{logs: &logBuffer{}}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w.Server, w.queen = newServer(t, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, l) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return w
}

// raw sends bytes as they are on a connection of its own and reads the
// answers until the server closes it or enough have come.
func (w *world) raw(t *testing.T, answers int, parts ...string) []*http.Response {
	t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, p := range parts {
		if _, err := io.WriteString(c, p); err != nil {
			break // refused early: the answer says why
		}
	}
	return readAnswers(t, c, answers)
}

func readAnswers(t *testing.T, c net.Conn, answers int) []*http.Response {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	var out []*http.Response
	r := bufio.NewReader(c)
	for len(out) < answers {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", len(out)+1, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("body of answer %d: %v", len(out)+1, err)
		}
		res.Body = io.NopCloser(strings.NewReader(string(body)))
		out = append(out, res)
	}
	return out
}

// post sends one request over the network and returns the answer with its
// body read.
func (w *world) post(t *testing.T, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	return w.send(t, http.MethodPost, path, body, headers...)
}

func (w *world) send(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(got)
}

// call handles one request without a network.
func call(h http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// open is a source that takes everything; ids come from the header X-Id.
func open(name string) bridge.Source {
	return bridge.Source{Name: name, Scheme: "none", TransactionID: "header:X-Id"}
}

func sources(list ...bridge.Source) ingress.Config { return ingress.Config{Sources: list} }
