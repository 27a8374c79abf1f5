package httptarget_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A reply carries the function's own bytes, whatever coding they came in.
func TestCompressedAnswers(t *testing.T) {
	t.Parallel()
	random := make([]byte, 1<<18)
	_, _ = rand.Read(random)
	bomb := make([]byte, 16<<20)
	whole := zipped(t, []byte(`{"ok":true}`))
	for _, tt := range []struct {
		name, coding   string
		body           []byte
		capture        int64
		want           string // the body; "" with size
		size           int
		truncated, cut bool
		keeps          bool // the Content-Encoding
	}{
		{name: "captured", coding: "gzip", body: whole, capture: 1 << 20, want: `{"ok":true}`},
		{name: "head", coding: "gzip", body: whole, want: `{"ok":true}`},
		{name: "old name, upper case", coding: " X-GZIP", body: whole, capture: 100, want: `{"ok":true}`},
		{name: "incompressible, just fits", coding: "gzip", body: zipped(t, random), capture: 1 << 18, want: string(random)},
		{name: "larger than captured", coding: "gzip", body: whole, capture: 5, want: `{"ok"`, truncated: true},
		{name: "bomb, captured", coding: "gzip", body: zipped(t, bomb), capture: 1 << 20, size: 1 << 20, truncated: true},
		{name: "bomb, head", coding: "gzip", body: zipped(t, bomb), size: 64 << 10, truncated: true},
		{name: "endless nothing", coding: "gzip", body: bytes.Repeat(zipped(t, nil), 1<<14), capture: 100, size: 0, truncated: true},
		{name: "half, captured", coding: "gzip", body: whole[:len(whole)-9], capture: 100, want: `{"ok":true}`, cut: true},
		{name: "no gzip, captured", coding: "gzip", body: []byte("plain"), capture: 100, want: "plain", cut: true, keeps: true},
		{name: "no gzip, head", coding: "gzip", body: []byte("plain"), want: "plain", keeps: true},
		{name: "empty", coding: "gzip", capture: 100},
		{name: "other coding", coding: "br", body: []byte("\x0b\x02\x80{}\x03"), capture: 100, want: "\x0b\x02\x80{}\x03", keeps: true},
		{name: "two codings", coding: "gzip, gzip", body: whole, capture: 100, want: string(whole), keeps: true},
		{name: "identity", coding: "identity", body: []byte("plain"), capture: 100, want: "plain", keeps: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept-Encoding"); got != "identity" {
					t.Errorf("Accept-Encoding = %q, want identity", got)
				}
				w.Header().Set("Content-Encoding", tt.coding)
				_, _ = w.Write(tt.body)
			})
			r := request()
			r.Capture = tt.capture
			resp := send(t, newSender(t, url, nil), r)
			if resp.Status != 200 || resp.Truncated != tt.truncated || resp.Cut != tt.cut {
				t.Errorf("Send = %d, truncated %v, cut %v, %v; want 200, %v, %v", resp.Status, resp.Truncated, resp.Cut, resp.Err, tt.truncated, tt.cut)
			}
			if tt.size > 0 && len(resp.Body) != tt.size || tt.size == 0 && string(resp.Body) != tt.want {
				t.Errorf("%d bytes of body %.40q, want %.40q", len(resp.Body), resp.Body, tt.want)
			}
			if keeps := resp.Header.Get("Content-Encoding") != ""; keeps != tt.keeps && tt.name != "empty" {
				t.Errorf("Content-Encoding %q, want kept %v", resp.Header.Get("Content-Encoding"), tt.keeps)
			}
		})
	}
}

// The head of an answer is read first and the rest never: what a function
// sends must not fill our memory.
func TestAnswerOf10GiBIsNotReadIntoMemory(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	done := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(done)
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 10 << 10 {
			n, err := w.Write(block)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	resp := send(t, newSender(t, url, nil), request())
	if resp.Status != 200 || len(resp.Body) != 64<<10 || !resp.Truncated || resp.Cut {
		t.Errorf("Send = %d, %d bytes, truncated %v, cut %v, %v", resp.Status, len(resp.Body), resp.Truncated, resp.Cut, resp.Err)
	}
	<-done
	if n := written.Load(); n > 64<<20 {
		t.Errorf("the function could send %d bytes", n)
	}
}

// raw serves connections by hand; handle gets the request's head.
func raw(t *testing.T, handle func(conn net.Conn, head string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			head := make([]byte, 4096)
			n, _ := conn.Read(head)
			handle(conn, string(head[:n]))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestEndlessAnswersAreBounded(t *testing.T) {
	t.Parallel()
	endless := func(head, line string) func(net.Conn, string) {
		return func(conn net.Conn, _ string) {
			_, err := io.WriteString(conn, head)
			for block := strings.Repeat(line, 1+4096/len(line)); err == nil; {
				_, err = io.WriteString(conn, block)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		handle func(net.Conn, string)
		status int // 0: a sent failure
	}{
		{"headers", endless("HTTP/1.1 200 OK\r\n", "x-a: b\r\n"), 0},
		{"one header", endless("HTTP/1.1 200 OK\r\nx-a: ", "bbbbbbbb"), 0},
		{"status line", endless("HTTP/1.1 200 ", "OK"), 0},
		{"informational answers", endless("", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"), 0},
		{"folded lines", endless("HTTP/1.1 200 OK\r\nx-a: b\r\n", " c\r\n"), 0},
		{"no HTTP", endless("", "220 smtp.example.com ready\r\n"), 0},
		{"trailers", endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", "x-a: b\r\n"), 200},
		{"chunk extension", endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", "x=y;"), 200},
		{"empty chunks", endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n"), 200},
		{"body", endless("HTTP/1.1 200 OK\r\n\r\n", "x"), 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t, raw(t, tt.handle), nil)
			begun := time.Now()
			resp := send(t, s, request())
			failed := resp.Err != nil && resp.Sent
			if resp.Status != tt.status || failed != (tt.status == 0) || len(resp.Body) > 64<<10 {
				t.Errorf("Send = %d, sent %v, %d bytes, %v; want %d", resp.Status, resp.Sent, len(resp.Body), resp.Err, tt.status)
			}
			if resp.Err != nil && len(resp.Err.Error()) > 16<<10 {
				t.Errorf("a text of %d bytes", len(resp.Err.Error()))
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("Send took %v", took)
			}
		})
	}
}

// Many small headers count as much as a few large ones.
func TestHugeHeaderCountIsBounded(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20_000 {
				w.Header().Set(fmt.Sprint("x-", i), "")
			}
		}))
		quiet(server)
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		if resp := send(t, newSender(t, server.URL, trusting(t, server)), request()); resp.Err == nil || !resp.Sent {
			t.Errorf("HTTP/2 %v: Send = %d with %d headers, %v; want a sent failure", http2, resp.Status, len(resp.Header), resp.Err)
		}
	}
}

// Headers that drip end with the attempt, too.
func TestDrippingHeadersEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	url := raw(t, func(conn net.Conn, _ string) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for tick := time.NewTicker(5 * time.Millisecond); err == nil; <-tick.C {
			_, err = io.WriteString(conn, "x: y\r\n")
		}
	})
	s := newSender(t, url, func(t *bridge.Target) { t.HTTP.Timeout = time.Second })
	begun := time.Now()
	resp := s.Send(t.Context(), request())
	if resp.Err == nil || !resp.Sent || resp.Class != bridge.FailureTimeout || time.Since(begun) > 5*time.Second {
		t.Errorf("Send = %d, class %q, sent %v, %v after %v; want a timeout", resp.Status, resp.Class, resp.Sent, resp.Err, time.Since(begun))
	}
}

// A captured answer that ends with the attempt is cut, not truncated.
func TestCapturedAnswerThatDripsIsCut(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"half":`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s := newSender(t, url, func(t *bridge.Target) { t.HTTP.Timeout = time.Second })
	r := request()
	r.Capture = 1 << 20
	resp := s.Send(t.Context(), r)
	if resp.Status != 200 || !resp.Cut || resp.Truncated || resp.Err != nil || string(resp.Body) != `{"half":` {
		t.Errorf("Send = %d, %q, cut %v, truncated %v, %v; want a cut 200", resp.Status, resp.Body, resp.Cut, resp.Truncated, resp.Err)
	}
}

// A function may answer before it has read all. From then on the event's body
// is the dispatcher's again; -race tells whether it is still being sent.
func TestBodyIsGivenBackWithAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }))
		quiet(server)
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		s := newSender(t, server.URL, trusting(t, server))
		for range 3 {
			r := request()
			r.Body = make([]byte, 16<<20)
			resp := send(t, s, r)
			clear(r.Body)
			if resp.Status != 400 && !resp.Sent {
				t.Errorf("HTTP/2 %v: Send = %d, sent %v, %v; want the 400", http2, resp.Status, resp.Sent, resp.Err)
			}
		}
	}
}
