package ingress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
)

// The benchmarks send 1 KiB webhooks over 64 loopback connections; every
// accepted one is stored in a broker in memory before it is answered. The bare
// baseline is an Echo handler that reads the body and computes the HMAC, under
// the same load by the same client. Compare requests per second; B/op and
// allocs/op are those of client and server together, and the client has none.

const (
	benchSecret      = "benchmark-secret"
	benchConnections = 64
	idDigits         = 12
)

func BenchmarkBareEcho(b *testing.B) {
	load(b, bareServer(b, new(atomic.Int64)), githubLoad)
}

// bareServer reads a body and computes the HMAC, and counts the requests that
// it is reading.
func bareServer(b *testing.B, reading *atomic.Int64) string {
	b.Helper()
	e := echo.New()
	e.POST("/in/:source", func(c echo.Context) error {
		reading.Add(1)
		defer reading.Add(-1)
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, []byte(benchSecret))
		mac.Write(body)
		want, _ := hex.DecodeString(strings.TrimPrefix(c.Request().Header.Get("X-Hub-Signature-256"), "sha256="))
		if !hmac.Equal(mac.Sum(nil), want) {
			return c.NoContent(http.StatusUnauthorized)
		}
		return c.NoContent(http.StatusOK)
	})
	l := listenLoopback(b)
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

func BenchmarkIngress(b *testing.B) {
	simple := func(scheme string) bridge.Source {
		return bridge.Source{Name: "hook", Scheme: scheme, Secrets: []bridge.Secret{benchSecret}, PublicURL: "https://hooks.example.com/in/hook"}
	}
	grid, topic := fixedSignature(sendGrid(b)), fixedSignature(sns(b))
	for _, bm := range []struct {
		name    string
		source  bridge.Source
		newLoad func() *webhook
	}{
		{"github", simple("github"), githubLoad}, {"stripe", simple("stripe"), stripeLoad}, {"twilio", simple("twilio"), func() *webhook { return twilioLoad(b) }},
		{"sendgrid-100-items", grid.source, func() *webhook { return signedLoad(b, grid, sendGridBody(100)) }},
		{"sns", topic.source, func() *webhook { return signedLoad(b, topic, `{"Message":"`+strings.Repeat("x", 600)+`"}`) }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			load(b, benchServer(b, ingress.Config{Sources: []bridge.Source{bm.source}, Queen: benchQueen(b)}), bm.newLoad)
		})
	}
}

// BenchmarkSpool is the same while Queen is away: each request is answered
// when its event is synced to disk.
func BenchmarkSpool(b *testing.B) {
	c := ingress.Config{Queen: newAwayQueen(true), Sources: []bridge.Source{
		{Name: "hook", Scheme: "github", Secrets: []bridge.Secret{benchSecret}, Spool: true}}}
	c.Settings.Spool.Dir = b.TempDir()
	load(b, benchServer(b, c), githubLoad)
}

// benchServer runs a server until the benchmark ends and returns its address.
func benchServer(b *testing.B, c ingress.Config) string {
	b.Helper()
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	s, err := ingress.New(c)
	if err != nil {
		b.Fatal(err)
	}
	l := listenLoopback(b)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return l.Addr().String()
}

func listenLoopback(b *testing.B) net.Listener {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// webhook is one request made again and again with another id, in place.
type webhook struct {
	wire      []byte
	id        []byte // part of wire
	body      []byte // part of wire
	signature []byte // part of wire, hex
	mac       hash.Hash
	prefix    string // signed in front of the body
	signed    bool   // the id is in the signed part
}

// fixedSignature is for schemes whose signatures take the sender longer than
// us: the same request again and again, each a new event.
func fixedSignature(s signer) signer {
	s.source.Dedup = bridge.DedupOff
	return s
}

// signedLoad sends one signed request as it is.
func signedLoad(b *testing.B, s signer, body string) *webhook {
	b.Helper()
	r := s.delivery(b, body)
	var headers strings.Builder
	for name, values := range r.Header {
		headers.WriteString(name + ": " + values[0] + "\r\n")
	}
	return &webhook{wire: []byte(fmt.Sprintf("POST /in/hook HTTP/1.1\r\nHost: hooks.example.com\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		headers.String(), len(r.Body), r.Body))}
}

// twilioLoad is a form; the id is a header that is not signed.
func twilioLoad(b *testing.B) *webhook {
	b.Helper()
	s := of("twilio")
	s.source.Secrets, s.source.PublicURL = []bridge.Secret{benchSecret}, "https://hooks.example.com/in/hook"
	body := "AccountSid=AC0123456789abcdef0123456789abcdef&ApiVersion=2010-04-01&From=%2B15017122661&MessageSid=SM0123456789abcdef0123456789abcdef&MessageStatus=delivered&SmsSid=SM0123456789abcdef0123456789abcdef&SmsStatus=delivered&To=%2B15558675310"
	r := s.delivery(b, body, "Content-Type", "application/x-www-form-urlencoded")
	wire := []byte(fmt.Sprintf("POST /in/hook HTTP/1.1\r\nHost: hooks.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Twilio-Signature: %s\r\n"+
		"I-Twilio-Idempotency-Token: %s\r\nContent-Length: %d\r\n\r\n%s", r.Header.Get("X-Twilio-Signature"), strings.Repeat("i", 24), len(body), body))
	at := bytes.Index(wire, []byte(strings.Repeat("i", 24)))
	return &webhook{wire: wire, id: wire[at : at+24]}
}

func sendGridBody(items int) string {
	var all []string
	for i := range items {
		all = append(all, fmt.Sprintf(`{"email":"user%d@example.com","timestamp":1700000000,"smtp-id":"<14c5d75ce93.dfd.64b469@ismtpd-555>","event":"delivered","category":["cat facts"],"sg_event_id":"ZGVsaXZlcmVkLTAtMTY0%04d","sg_message_id":"14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0","response":"250 OK"}`, i, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// next gives the request another id, where it has one.
func (w *webhook) next(n int64) []byte {
	if w.id == nil {
		return w.wire
	}
	text := strconv.AppendInt(make([]byte, 0, 20), n, 10)
	copy(w.id[len(w.id)-len(text):], text)
	if w.signed {
		w.sign()
	}
	return w.wire
}

func (w *webhook) sign() {
	w.mac.Reset()
	_, _ = io.WriteString(w.mac, w.prefix)
	w.mac.Write(w.body)
	var sum [sha256.Size]byte
	hex.Encode(w.signature, w.mac.Sum(sum[:0]))
}

func benchBody() string {
	return `{"id":"evt_` + strings.Repeat("0", idDigits) + `","type":"push","pad":"` + strings.Repeat("café <x> ", 110) + `"}`
}

func newWebhook(header, body, prefix string) *webhook {
	wire := []byte("POST /in/hook HTTP/1.1\r\nHost: hooks.example.com\r\nUser-Agent: GitHub-Hookshot/044aadd\r\nAccept: */*\r\nContent-Type: application/json\r\n" +
		header + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	w := &webhook{wire: wire, body: wire[len(wire)-len(body):], mac: hmac.New(sha256.New, []byte(benchSecret)), prefix: prefix}
	at := bytes.Index(wire, []byte(strings.Repeat("s", 64)))
	w.signature = wire[at : at+64]
	return w
}

func githubLoad() *webhook {
	w := newWebhook("X-GitHub-Event: push\r\nX-GitHub-Hook-ID: 292430182\r\nX-GitHub-Delivery: "+strings.Repeat("i", 24)+"\r\nX-Hub-Signature-256: sha256="+strings.Repeat("s", 64)+"\r\n", benchBody(), "")
	at := bytes.Index(w.wire, []byte(strings.Repeat("i", 24)))
	w.id = w.wire[at : at+24]
	w.sign()
	return w
}

func stripeLoad() *webhook {
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	w := newWebhook("Stripe-Signature: t="+stamp+",v1="+strings.Repeat("s", 64)+"\r\n", benchBody(), stamp+".")
	at := bytes.Index(w.body, []byte("evt_")) + 4
	w.id, w.signed = w.body[at:at+idDigits], true
	return w
}

// load sends b.N requests over the connections and checks every answer.
func load(b *testing.B, addr string, newLoad func() *webhook) {
	b.Helper()
	var n atomic.Int64
	b.SetBytes(int64(len(newLoad().wire)))
	b.ReportAllocs()
	b.SetParallelism(benchConnections / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		w, r := newLoad(), bufio.NewReader(c)
		for pb.Next() {
			if _, err := c.Write(w.next(n.Add(1))); err != nil {
				b.Error(err)
				return
			}
			if status, err := readAnswer(r); err != nil || status != 200 {
				b.Errorf("answer %d, %v; want 200", status, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// readAnswer reads one answer without allocating.
func readAnswer(r *bufio.Reader) (status int, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimSpace(line)
		switch {
		case first && len(line) >= 12:
			status = int(line[9]-'0')*100 + int(line[10]-'0')*10 + int(line[11]-'0')
		case len(line) == 0:
			_, err = r.Discard(length)
			return status, err
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			for _, d := range line[len("Content-Length: "):] {
				length = length*10 + int(d-'0')
			}
		}
	}
}

// BenchmarkHandler is the handler alone, one request after the other: what a
// request costs without network and without company in its batch.
func BenchmarkHandler(b *testing.B) {
	s, err := ingress.New(ingress.Config{
		Sources: []bridge.Source{{Name: "hook", Scheme: "github", Secrets: []bridge.Secret{benchSecret}}}, Queen: benchQueen(b)})
	if err != nil {
		b.Fatal(err)
	}
	h, body := s.Handler(), benchBody()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/in/hook", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RequestURI = "/in/hook"
	r.ContentLength = int64(len(body))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hmacHex(benchSecret, []byte(body)))
	r.Header.Set("Content-Type", "application/json")
	reader := strings.NewReader(body)
	r.Body = io.NopCloser(reader)
	w := &discardWriter{header: http.Header{}}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		r.Header["X-Github-Delivery"] = []string{fmt.Sprint("id-", n)}
		reader.Reset(body)
		clear(w.header)
		h.ServeHTTP(w, r)
		if w.status != 200 {
			b.Fatalf("status %d", w.status)
		}
	}
}

type discardWriter struct {
	header http.Header
	status int
}

func (w *discardWriter) Header() http.Header         { return w.header }
func (w *discardWriter) WriteHeader(status int)      { w.status = status }
func (w *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
