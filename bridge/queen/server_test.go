package queen_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// exchange is one recorded request and answer of a real Queen 1.3.0.
type exchange struct {
	Name    string `json:"name"`
	Request struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Body   json.RawMessage `json:"body"`
	} `json:"request"`
	Response struct {
		Status   int               `json:"status"`
		Headers  map[string]string `json:"headers"`
		Body     json.RawMessage   `json:"body"`
		BodyText string            `json:"body_text"`
	} `json:"response"`
}

// recorded finds an exchange in testdata/recorded.
func recorded(t testing.TB, file, name string) exchange {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []exchange
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no exchange %q in %s.json", name, file)
	return exchange{}
}

// serve answers as recorded. Text answers stand as JSON strings in the files.
func (e exchange) serve(w http.ResponseWriter) {
	for k, v := range e.Response.Headers {
		w.Header().Set(k, v)
	}
	body := []byte(e.Response.BodyText)
	if len(body) == 0 {
		body = e.Response.Body
	}
	if strings.HasPrefix(e.Response.Headers["content-type"], "text/plain") {
		var text string
		_ = json.Unmarshal(e.Response.Body, &text)
		body = []byte(text)
	}
	w.WriteHeader(e.Response.Status)
	_, _ = w.Write(body)
}

// broker is a server that answers in a set way and keeps what it was asked.
type broker struct {
	*httptest.Server
	mu   sync.Mutex
	seen []sent
}

type sent struct {
	method, uri, body string
	header            http.Header
	length            int64
}

func newBroker(t testing.TB, answer http.HandlerFunc) *broker {
	t.Helper()
	b := &broker{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.seen = append(b.seen, sent{r.Method, r.RequestURI, string(body), r.Header.Clone(), r.ContentLength})
		b.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *broker) requests() []sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sent(nil), b.seen...)
}

func (b *broker) last(t testing.TB) sent {
	t.Helper()
	all := b.requests()
	if len(all) == 0 {
		t.Fatal("the broker was not asked")
	}
	return all[len(all)-1]
}

// answering makes a client of a broker with one fixed answer.
func answering(t testing.TB, status int, body string) (*queen.Client, *broker) {
	t.Helper()
	b := newBroker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	return client(t, queen.Config{URLs: []string{b.URL}}), b
}

// replaying makes a client of a broker that answers as recorded.
func replaying(t testing.TB, file, name string) (*queen.Client, *broker) {
	t.Helper()
	e := recorded(t, file, name)
	b := newBroker(t, func(w http.ResponseWriter, _ *http.Request) { e.serve(w) })
	return client(t, queen.Config{URLs: []string{b.URL}}), b
}

func client(t testing.TB, cfg queen.Config) *queen.Client {
	t.Helper()
	c, err := queen.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// sameJSON compares two JSON texts by their values.
func sameJSON(t testing.TB, what, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v in %s", what, err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	gb, _ := json.Marshal(g)
	wb, _ := json.Marshal(w)
	if !bytes.Equal(gb, wb) {
		t.Errorf("%s =\n%s\nwant\n%s", what, gb, wb)
	}
}
