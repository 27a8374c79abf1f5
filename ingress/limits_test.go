package ingress_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

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
	if n := len(w.queen.Items()); n != 1 {
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
	if n := len(w.queen.Items()); n != 0 {
		t.Errorf("%d items stored, want 0", n)
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
	if got := storedEvents(t, w.queen)[0].Body; !bytes.Equal(got, []byte(body)) {
		t.Errorf("body of %d bytes, want %d", len(got), len(body))
	}
}

func TestLimitsAnswerEarly(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	q := &queentest.Shelf{Before: blockUntil(entered, leave)}
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
