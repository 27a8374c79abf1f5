package queen_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// roundTripper is an in-process transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

func fixedAnswer(status int, body string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return response(r, status, body), nil
	})
}

// rawServer speaks TCP: handle gets each request whole and the connection.
func rawServer(t *testing.T, handle func(n int32, conn net.Conn, r *http.Request)) (url string, requests *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = &atomic.Int32{}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveRaw(conn, requests, handle)
		}
	}()
	return "http://" + l.Addr().String(), requests
}

func serveRaw(conn net.Conn, requests *atomic.Int32, handle func(n int32, conn net.Conn, r *http.Request)) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		handle(requests.Add(1), conn, r)
	}
}

func write(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }

const queuedAnswer = "HTTP/1.1 201 Created\r\nContent-Length: 21\r\n\r\n[{\"status\":\"queued\"}]"

// A connection that dies after the request was read must not make net/http
// send the POST again: one call, one request.
func TestPostIsNeverResentSilently(t *testing.T) {
	t.Parallel()
	url, requests := rawServer(t, func(n int32, conn net.Conn, _ *http.Request) {
		if n == 1 {
			write(conn, queuedAnswer)
			return
		}
		_ = conn.Close() // on the reused connection, after the request came whole
	})
	c := client(t, queen.Config{URLs: []string{url}})
	if _, err := c.Push(t.Context(), items("a")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Push(t.Context(), items("b"))
	var call *queen.CallError
	if !errors.As(err, &call) || !call.Sent || !queen.Uncertain(err) || !queen.Temporary(err) {
		t.Errorf("Push() error = %v; want an uncertain *CallError", err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the server saw %d requests; want 2", n)
	}
}

func TestCutAnswersAreUncertain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"body shorter than said": "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n[{\"status\":\"queued\"}]",
		"chunk cut":              "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n[{\"status\":\"queued\"}]\r\n",
		"no answer":              "",
		"half a header":          "HTTP/1.1 201 Cre",
		"garbage":                "\x00\x01\x02\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := rawServer(t, func(_ int32, conn net.Conn, _ *http.Request) {
				write(conn, answer)
				_ = conn.Close()
			})
			c := client(t, queen.Config{URLs: []string{url}})
			if got, err := c.Push(t.Context(), items("a")); !queen.Uncertain(err) {
				t.Errorf("Push() = %v, %v; want an uncertain error", got, err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("the server saw %d requests; want 1", n)
			}
		})
	}
}

func TestUnreachableNodeIsCertain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	_ = l.Close()
	c := client(t, queen.Config{URLs: []string{dead}})
	_, err = c.Push(t.Context(), items("a"))
	if err == nil || queen.Uncertain(err) || !queen.Temporary(err) {
		t.Errorf("Push() error = %v; want certain and temporary", err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for name, chunked := range map[string]bool{"length told": false, "length not told": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, func(w http.ResponseWriter, _ *http.Request) {
				if chunked {
					w.(http.Flusher).Flush()
				}
				_, _ = io.WriteString(w, popped(message("a", `"`+strings.Repeat("x", 1000)+`"`)))
			})
			c := client(t, queen.Config{URLs: []string{b.URL}, MaxAnswer: 1000})
			_, err := c.Pop(t.Context(), popRequest())
			var bad *queen.BadBodyError
			if !errors.As(err, &bad) || !bad.TooLarge || !queen.Uncertain(err) || queen.Temporary(err) {
				t.Fatalf("Pop() error = %v; want a *BadBodyError, too large", err)
			}
			if bad.Lease != (queen.Lease{ID: "L", Group: "g", Node: b.URL}) || bad.PartitionID != "pid" || bad.TransactionID != "a" {
				t.Errorf("the error tells %+v", bad)
			}
		})
	}
}

func TestErrorsAreBoundedAndShowNoSecret(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = fmt.Fprintf(w, "<html>\x00\x1b[31m you sent %s %s", r.Header.Get("Authorization"), strings.Repeat("é", 5000))
	})
	c := client(t, queen.Config{URLs: []string{strings.Replace(b.URL, "http://", "http://user:hunter2@", 1)}, Token: "tok-secret"})
	_, err := c.Push(t.Context(), items("a"))
	if err == nil {
		t.Fatal("no error")
	}
	text := err.Error()
	for _, secret := range []string{"tok-secret", "hunter2", "user", "\x00", "\x1b", "\n"} {
		if strings.Contains(text, secret) {
			t.Errorf("error shows %q: %s", secret, text)
		}
	}
	if len(text) > 600 {
		t.Errorf("error has %d bytes", len(text))
	}
}

func TestCallErrorsShowNoUserOrQuery(t *testing.T) {
	t.Parallel()
	c := client(t, queen.Config{URLs: []string{"http://user:hunter2@queen:6632/base"}, Token: "tok",
		Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })})
	_, err := c.Pop(t.Context(), popRequest())
	want := "GET /api/v1/pop/queue/q: no answer from http://queen:6632/base: unexpected EOF"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v\nwant    %s", err, want)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 204, "")
	_ = c
	for _, tt := range []struct{ url, token, want string }{
		{b.URL, "", ""},
		{b.URL, "qk_1", "Bearer qk_1"},
		{strings.Replace(b.URL, "http://", "http://u:p@", 1), "", "Basic dTpw"},
		{strings.Replace(b.URL, "http://", "http://u:p@", 1), "qk_2", "Bearer qk_2"},
	} {
		c := client(t, queen.Config{URLs: []string{tt.url}, Token: tt.token})
		if _, err := c.Pop(t.Context(), popRequest()); err != nil {
			t.Fatal(err)
		}
		if got := b.last(t).header.Get("Authorization"); got != tt.want {
			t.Errorf("Authorization = %q, want %q", got, tt.want)
		}
	}
}

func TestBasePathIsKept(t *testing.T) {
	t.Parallel()
	_, b := answering(t, 204, "")
	c := client(t, queen.Config{URLs: []string{b.URL + "/queen%2Fa/"}})
	r := popRequest()
	r.Queue = "x/y"
	if _, err := c.Pop(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := b.last(t).uri; !strings.HasPrefix(got, "/queen%2Fa/api/v1/pop/queue/x%2Fy?") {
		t.Errorf("asked %s", got)
	}
}

func TestNewRefusesBadURLs(t *testing.T) {
	t.Parallel()
	for _, urls := range [][]string{nil, {""}, {"queen:6632"}, {"ftp://queen"}, {"http://"}, {"http://u:hunter2@q/%zz"}, {"http://q?token=hunter2"}, {"http://ok", "http://q#f"}} {
		_, err := queen.New(queen.Config{URLs: urls})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%q) error = %v", urls, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	c := client(t, queen.Config{URLs: []string{b.URL}})
	_, err := c.Push(t.Context(), items("a"))
	var status *queen.StatusError
	if !errors.As(err, &status) || status.Status != 307 || len(b.requests()) != 1 {
		t.Errorf("Push() error = %v after %d requests", err, len(b.requests()))
	}
}

// hang waits for the end of the request's context, as a broker that does not
// answer.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		call func(ctx context.Context, c *queen.Client) error
		want time.Duration
	}{
		{"ordinary", func(ctx context.Context, c *queen.Client) error { _, err := c.Push(ctx, items("a")); return err }, 30 * time.Second},
		{"pop", func(ctx context.Context, c *queen.Client) error {
			r := popRequest()
			r.Wait = 30 * time.Second
			_, err := c.Pop(ctx, r)
			return err
		}, 35 * time.Second},
		{"plain pop", func(ctx context.Context, c *queen.Client) error { _, err := c.Pop(ctx, popRequest()); return err }, 5 * time.Second},
		{"the caller's", func(ctx context.Context, c *queen.Client) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := c.Push(ctx, items("a"))
			return err
		}, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := client(t, queen.Config{URLs: []string{"http://queen"}, Transport: roundTripper(hang)})
				start := time.Now()
				err := tt.call(t.Context(), c)
				if !errors.Is(err, context.DeadlineExceeded) || !queen.Uncertain(err) {
					t.Errorf("error = %v; want an uncertain deadline", err)
				}
				if got := time.Since(start); got != tt.want {
					t.Errorf("gave up after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, b := answering(t, 201, `[]`)
	_, err := c.Push(ctx, items("a"))
	if !errors.Is(err, context.Canceled) || queen.Uncertain(err) || len(b.requests()) > 0 {
		t.Errorf("Push() error = %v after %d requests", err, len(b.requests()))
	}
}

// Buffers of bodies are reused; one that the transport may still read is not.
func TestReusedBuffersAreNotReadLate(t *testing.T) {
	t.Parallel()
	var held []io.ReadCloser
	var wrong atomic.Int32
	c := client(t, queen.Config{URLs: []string{"http://queen"}, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		held = append(held, r.Body) // not closed: still reading
		return response(r, 201, `[{"status":"queued"}]`), nil
	})})
	for i := range 20 {
		if _, err := c.Push(t.Context(), items(fmt.Sprint("id", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i, body := range held {
		got, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(got), fmt.Sprintf(`"id%d"`, i)) {
			wrong.Add(1)
		}
		_ = body.Close()
		if _, err := body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed body can be read")
		}
	}
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d bodies were overwritten while they could be read", n)
	}
}

func BenchmarkPush(b *testing.B) {
	for _, n := range []int{1, 100} {
		var batch []queen.Item
		var verdicts []string
		for i := range n {
			batch = append(batch, queen.Item{Queue: "github-events", Partition: "github.7", TransactionID: fmt.Sprint("github:", i),
				Payload: []byte(`{"body":"` + strings.Repeat("x", 1000) + `"}`)})
			verdicts = append(verdicts, fmt.Sprintf(`{"index":%d,"message_id":"01a22b7e-bb66-7000-8d10-858622600e0e","transaction_id":"github:%d","queueName":"github-events","status":"queued"}`, i, i))
		}
		c := client(b, queen.Config{URLs: []string{"http://queen"}, Transport: fixedAnswer(201, "["+strings.Join(verdicts, ",")+"]")})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Push(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
