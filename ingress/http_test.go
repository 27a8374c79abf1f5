package ingress_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
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

func TestBodyOverTheCapIs413AndNotQueued(t *testing.T) {
	t.Parallel()
	a := open("a")
	a.MaxBody = 64
	w := serve(t, sources(a))
	chunks := "1e\r\n" + strings.Repeat("x", 30) + "\r\n1e\r\n" + strings.Repeat("x", 30) + "\r\n1e\r\n" + strings.Repeat("x", 30) + "\r\n0\r\n\r\n"
	for name, req := range map[string]string{
		"declared": request("POST /in/a", strings.Repeat("x", 65)),
		"chunked":  request("POST /in/a", chunks, "Transfer-Encoding: chunked"),
	} {
		res := w.raw(t, 1, req)[0]
		if res.StatusCode != 413 {
			t.Errorf("%s: status %d, want 413", name, res.StatusCode)
		}
		checkPlain(t, name, res)
	}
	if res := w.raw(t, 1, request("POST /in/a", strings.Repeat("x", 64)))[0]; res.StatusCode != 200 {
		t.Errorf("body at the cap: status %d, want 200", res.StatusCode)
	}
	if n := len(w.queen.stored()); n != 1 {
		t.Errorf("%d items stored, want 1", n)
	}
}

// TestDeclaredSizeIsRefusedBeforeTheUpload: the sender waits for a go-ahead
// that must not come.
func TestDeclaredSizeIsRefusedBeforeTheUpload(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	for _, tc := range []struct {
		target string
		length int64
		status int
	}{{"/in/a", 10<<20 + 1, 413}, {"/in/none", 100, 404}} {
		res := w.raw(t, 1, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", tc.target, tc.length))[0]
		if res.StatusCode != tc.status {
			t.Errorf("POST %s with Expect = %d first, want %d", tc.target, res.StatusCode, tc.status)
		}
	}
	answers := w.raw(t, 2, "POST /in/a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", "{}")
	if answers[0].StatusCode != 100 || answers[1].StatusCode != 200 {
		t.Errorf("accepted size: %d, %d, want 100, 200", answers[0].StatusCode, answers[1].StatusCode)
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
	if n := len(w.queen.stored()); n != 0 {
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

func TestHeaderBlockOver64KiBIs431(t *testing.T) {
	t.Parallel()
	w := serve(t, sources(open("a")))
	big := "X-Big: " + strings.Repeat("x", 64<<10)
	if res := w.raw(t, 1, request("POST /in/a", "{}", big))[0]; res.StatusCode != 431 {
		t.Errorf("64 KiB and more: status %d, want 431", res.StatusCode)
	}
	fits := "X-Big: " + strings.Repeat("x", 60<<10)
	if res := w.raw(t, 1, request("POST /in/a", "{}", fits))[0]; res.StatusCode != 200 {
		t.Errorf("60 KiB: status %d, want 200", res.StatusCode)
	}
}

// TestSlowSendersAreCutOff runs against the real deadlines: 5 s for the
// header, 10 s for a body that does not move.
func TestSlowSendersAreCutOff(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	w := serve(t, sources(open("a")))
	body := make(chan int, 1)
	go func() {
		res := w.raw(t, 1, request("POST /in/a", "ab", "Content-Length: 10"))[0]
		body <- res.StatusCode
	}()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	_, _ = io.WriteString(c, "POST /in/a HTTP/1.1\r\nHost: h\r\nX-Slow: ")
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.Copy(io.Discard, c)
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("a header that never ends held the connection %v, want 5 s", took)
	}
	if got := <-body; got != 400 {
		t.Errorf("a body that never ends: status %d, want 400", got)
	}
	if n := len(w.queen.stored()); n != 0 {
		t.Errorf("%d items stored, want 0", n)
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
	events := w.queen.events(t)
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

func TestLargeBodyOf25MiBFromGitHubFits(t *testing.T) {
	t.Parallel()
	c := sources(bridge.Source{Name: "gh", Scheme: "github", Secrets: []bridge.Secret{"s"}})
	w := serve(t, c)
	body := `{"a":"` + strings.Repeat("x", 24<<20) + `"}`
	sig := hmacHex("s", []byte(body))
	res, _ := w.post(t, "/in/gh", body, "X-Hub-Signature-256", "sha256="+sig, "X-GitHub-Delivery", "big")
	if res.StatusCode != 200 {
		t.Fatalf("status %d, want 200", res.StatusCode)
	}
	if got := w.queen.events(t)[0].Body; !bytes.Equal(got, []byte(body)) {
		t.Errorf("body of %d bytes, want %d", len(got), len(body))
	}
}

func TestLimitsAnswerEarly(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	q := &fakeQueen{before: blockUntil(entered, leave)}
	small, hub, paused := open("small"), open("open"), open("paused")
	small.MaxInFlight = 1
	paused.Paused = true
	slow := open("slow")
	slow.Rate = bridge.SourceRate{PerSecond: 0.001, Burst: 1}
	c := sources(small, hub, paused, slow)
	c.Queen = q
	c.Settings.MaxInFlight = 2
	w := serve(t, c)
	done := make(chan int, 2)
	go func() { res, _ := w.post(t, "/in/small", "{}"); done <- res.StatusCode }()
	<-entered
	check := func(path string, status int, retryAfter bool) {
		t.Helper()
		res, _ := w.post(t, path, "{}")
		if res.StatusCode != status || (res.Header.Get("Retry-After") != "") != retryAfter {
			t.Errorf("POST %s = %d, Retry-After %q; want %d, %v", path, res.StatusCode, res.Header.Get("Retry-After"), status, retryAfter)
		}
		checkPlain(t, path, res)
	}
	check("/in/small", 429, true)
	check("/in/paused", 503, true)
	go func() { res, _ := w.post(t, "/in/open", "{}"); done <- res.StatusCode }()
	<-entered
	check("/in/open", 503, true) // max_in_flight
	close(leave)
	for range 2 {
		if got := <-done; got != 200 {
			t.Errorf("status %d, want 200", got)
		}
	}
	check("/in/slow", 200, false)
	check("/in/slow", 429, true)
}

func TestAllowIPs(t *testing.T) {
	t.Parallel()
	local, remote, proxied := open("local"), open("remote"), open("proxied")
	local.AllowIPs = []string{"127.0.0.0/8"}
	remote.AllowIPs = []string{"10.0.0.0/8"}
	proxied.AllowIPs = []string{"192.0.2.0/24"}
	list := sources(local, remote, proxied)
	w := serve(t, list)
	for path, want := range map[string]int{"/in/local": 200, "/in/remote": 403, "/in/proxied": 403} {
		// X-Forwarded-For from everyone is believed from nobody.
		if res, _ := w.post(t, path, "{}", "X-Forwarded-For", "192.0.2.1", "X-Real-IP", "10.0.0.1"); res.StatusCode != want {
			t.Errorf("POST %s = %d, want %d", path, res.StatusCode, want)
		}
	}
	list.Settings.TrustedProxies = []string{"127.0.0.1"}
	w = serve(t, list)
	if res, _ := w.post(t, "/in/proxied", "{}", "X-Forwarded-For", "192.0.2.1"); res.StatusCode != 200 {
		t.Errorf("through a trusted proxy: status %d, want 200", res.StatusCode)
	}
	if res, _ := w.post(t, "/in/proxied", "{}", "X-Forwarded-For", "192.0.2.1, 198.51.100.7"); res.StatusCode != 403 {
		t.Errorf("address in front of an unknown one: status %d, want 403", res.StatusCode)
	}
}

func TestConfigurationMistakesAreAllReported(t *testing.T) {
	t.Parallel()
	_, err := ingress.New(ingress.Config{Queen: &fakeQueen{}, Sources: []bridge.Source{
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
