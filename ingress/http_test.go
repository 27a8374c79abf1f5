package ingress_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// request is an HTTP/1.1 request as text.
func request(line string, body string, headers ...string) string {
	out := line + " HTTP/1.1\r\nHost: h\r\n"
	for _, h := range headers {
		out += h + "\r\n"
	}
	if !strings.Contains(strings.ToLower(out), "transfer-encoding:") && !strings.Contains(strings.ToLower(out), "content-length:") {
		out += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return out + "\r\n" + body
}

func readBody(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPathsAreNeverCleanedNorRedirected(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	for _, tc := range []struct {
		target string
		status int
	}{
		{"/in/a", 200}, {"/in/a/", 200}, {"/in/a?x=1", 200}, {"/in/a/?x=1", 200},
		{"http://h/in/a", 200}, // absolute form
		{"//in/a", 404}, {"/in//a", 404}, {"/in/a//", 404}, {"/in/../in/a", 404}, {"/./in/a", 404},
		{"/in/%2e%2e%2fetc", 404}, {"/in/a%2Fb", 404}, {"/in/a%2F", 404}, {"/in/a/b", 404}, {"/IN/a", 404},
		{"/in/A", 404}, {"/in/", 404}, {"/in", 404}, {"/", 404}, {"/in/b", 404}, {"/metrics", 404}, {"/in/a;x", 404},
	} {
		res := w.raw(t, 1, request("POST "+tc.target, "{}"))[0]
		if res.StatusCode != tc.status {
			t.Errorf("POST %s = %d, want %d", tc.target, res.StatusCode, tc.status)
		}
		if tc.status == 404 {
			if body := readBody(t, res); body != "not found\n" {
				t.Errorf("POST %s: body %q, want the same short text for every path", tc.target, body)
			}
		}
		checkPlain(t, tc.target, res)
	}
}

// checkPlain checks what every answer has and has not.
func checkPlain(t *testing.T, what string, res *http.Response) {
	t.Helper()
	if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("%s: X-Content-Type-Options = %q, want nosniff", what, got)
	}
	if res.Header.Get("Content-Length") == "" && res.StatusCode != 204 {
		t.Errorf("%s: no Content-Length", what)
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		t.Errorf("%s: status %d is a redirect", what, res.StatusCode)
	}
	for _, name := range []string{"Set-Cookie", "Location"} {
		if got := res.Header.Values(name); got != nil {
			t.Errorf("%s: %s = %q, want none", what, name, got)
		}
	}
	if strings.Contains(res.Header.Get("Content-Type"), "html") {
		t.Errorf("%s: content type %q", what, res.Header.Get("Content-Type"))
	}
}

func TestOtherMethodsAre405WithAllow(t *testing.T) {
	t.Parallel()
	put := open("put")
	put.Methods = []string{"PUT"}
	twilio := bridge.Source{Name: "twilio", Scheme: "twilio", Secrets: []bridge.Secret{"s"}, PublicURL: "https://h.example/in/twilio"}
	w := serve(t, sources(open("a"), put, twilio))
	for _, tc := range []struct {
		line, allow string
		status      int
	}{
		{"GET /in/a", "POST", 405}, {"HEAD /in/a", "POST", 405}, {"OPTIONS /in/a", "POST", 405},
		{"BREW /in/a", "POST", 405}, {"post /in/a", "POST", 405}, {"PUT /in/a", "POST", 405},
		{"PUT /in/put", "", 200}, {"POST /in/put", "", 200}, {"DELETE /in/put", "POST, PUT", 405},
		{"GET /in/twilio", "", 401}, {"PUT /in/twilio", "POST, GET", 405},
		{"GET /in/none", "", 404}, {"OPTIONS *", "", 404}, {"GET /", "", 404},
	} {
		req := request(tc.line, "")
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, req)
		res, err := http.ReadResponse(bufReader(c), &http.Request{Method: strings.Fields(tc.line)[0]})
		if err != nil {
			t.Fatalf("%s: %v", tc.line, err)
		}
		_ = c.Close()
		if res.StatusCode != tc.status || res.Header.Get("Allow") != tc.allow {
			t.Errorf("%s = %d, Allow %q; want %d, %q", tc.line, res.StatusCode, res.Header.Get("Allow"), tc.status, tc.allow)
		}
		checkPlain(t, tc.line, res)
	}
}

func TestCutBodyIs400AndNotQueued(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	for name, req := range map[string]string{
		"length":  request("POST /in/a", "ab", "Content-Length: 10"),
		"chunk":   request("POST /in/a", "5\r\nab", "Transfer-Encoding: chunked"),
		"no end":  request("POST /in/a", "2\r\nab\r\n", "Transfer-Encoding: chunked"),
		"garbage": request("POST /in/a", "zz\r\nab\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
	} {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, req)
		_ = c.(*net.TCPConn).CloseWrite()
		if res := readAnswers(t, c, 1)[0]; res.StatusCode != 400 {
			t.Errorf("%s: status %d, want 400", name, res.StatusCode)
		}
		_ = c.Close()
	}
	if n := len(w.queen.Items()); n != 0 {
		t.Errorf("%d items stored, want 0", n)
	}
}

func TestContentLengthWithChunkedIs400(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	body := "2\r\n{}\r\n0\r\n\r\n"
	for name, req := range map[string]string{
		"length first":   request("POST /in/a", body, "Content-Length: 2", "Transfer-Encoding: chunked"),
		"length last":    request("POST /in/a", body, "Transfer-Encoding: chunked", "content-length: 12"),
		"second request": request("POST /in/a", "{}") + request("POST /in/a", body, "Transfer-Encoding: chunked", "Content-Length: 2"),
		// Read ahead with the second one, the first is not trusted either.
		"length after a chunked": request("POST /in/a", body, "Transfer-Encoding: chunked") + request("POST /in/a", body, "Content-Length: 2", "Transfer-Encoding: chunked"),
	} {
		answers := 1
		if !strings.HasPrefix(name, "length") {
			answers = 2
		}
		got := w.raw(t, answers, req)
		if last := got[answers-1]; last.StatusCode != 400 || !last.Close {
			t.Errorf("%s: status %d, close %v; want 400, true", name, last.StatusCode, last.Close)
		}
	}
	// Alone each is fine, also one after the other.
	good := request("POST /in/a", body, "Transfer-Encoding: chunked") + request("POST /in/a", "{}") +
		request("POST /in/a", body, "Transfer-Encoding: chunked")
	for i, res := range w.raw(t, 3, good) {
		if res.StatusCode != 200 {
			t.Errorf("request %d: status %d, want 200", i+1, res.StatusCode)
		}
	}
}

func TestOddHeadersAndBodiesArriveByteForByte(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	bodies := []string{
		`{"a":"\u0000","b":"\ud800","c":9007199254740993}`, "\x00", "\xff\xfe", "", "\xef\xbb\xbf{}",
		`{"note":"café 💩 日本語 <&>   \/"}`, "not json", "a=1;b=2&c=%zz", strings.Repeat("é", 200<<10),
	}
	for i, body := range bodies {
		res, _ := w.post(t, "/in/a", body, "X-Id", strconv.Itoa(i), "X-Latin", "caf\xe9", "X-Dup", "one", "x-dup", "two",
			"Content-Type", "text/plain; charset=utf-16", "Content-Encoding", "gzip")
		if res.StatusCode != 200 {
			t.Fatalf("body %.20q: status %d, want 200", body, res.StatusCode)
		}
	}
	events := storedEvents(t, w.queen)
	for i, e := range events {
		if string(e.Body) != bodies[i] {
			t.Errorf("body %d = %.40q, want %.40q", i, e.Body, bodies[i])
		}
		var got []bridge.Header
		for _, h := range e.Headers {
			if strings.HasPrefix(h.Name, "x-") || h.Name == "content-encoding" {
				got = append(got, h)
			}
		}
		want := []bridge.Header{{Name: "content-encoding", Value: "gzip"}, {Name: "x-dup", Value: "one"}, {Name: "x-dup", Value: "two"}, {Name: "x-id", Value: strconv.Itoa(i)}, {Name: "x-latin", Value: "caf\xe9"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
	}
	if len(events) != len(bodies) {
		t.Errorf("%d events, want %d", len(events), len(bodies))
	}
}

func TestHeaderWithNULIs400(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	if res := w.raw(t, 1, request("POST /in/a", "{}", "X-A: a\x00b"))[0]; res.StatusCode != 400 {
		t.Errorf("status %d, want 400", res.StatusCode)
	}
}

func TestConfigurationMistakesAreAllReported(t *testing.T) {
	t.Parallel()
	_, err := ingress.New(ingress.Config{Queen: &queentest.Shelf{}, Sources: []bridge.Source{
		{Name: "a", Scheme: "githup"},
		{Name: "b", Scheme: "github"},
		{Name: "c", Scheme: "none", TransactionID: "literal:x", Partition: "boody:x", AllowIPs: []string{"10.0.0.0/33"}, Spool: true},
		open("d"), open("d"),
	}})
	if err == nil {
		t.Fatal("New = nil, want an error")
	}
	for _, want := range []string{"githup", `"b": secrets`, "transaction_id", "partition", "allow_ips", "spool", `"d": the name is used twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to name %s", err, want)
		}
	}
}
