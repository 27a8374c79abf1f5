package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/signing"
)

// BenchmarkAcceptToCall measures one event at a time from the moment its
// webhook is posted to the moment the function is called: through a bare
// relay (read, call, answer), and through the bridge on the embedded broker
// in memory and on disk. p50 and p99 are reported beside the mean.
func BenchmarkAcceptToCall(b *testing.B) {
	calls := make(chan time.Time, 1)
	fn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		calls <- at
	}))
	defer fn.Close()
	b.Run("bare", func(b *testing.B) {
		relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			resp, err := http.Post(fn.URL, "application/json", bytes.NewReader(body))
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_ = resp.Body.Close()
		}))
		defer relay.Close()
		measure(b, relay.URL, calls)
	})
	b.Run("memory", func(b *testing.B) { measure(b, startBridge(b, "memory", fn.URL)+"/in/bench", calls) })
	b.Run("durable", func(b *testing.B) { measure(b, startBridge(b, b.TempDir(), fn.URL)+"/in/bench", calls) })
}

func measure(b *testing.B, url string, calls <-chan time.Time) {
	b.Helper()
	var took []time.Duration
	client := &http.Client{}
	for n := 0; b.Loop(); n++ {
		req := signedEvent(b, url, n)
		sent := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			b.Fatalf("answered %s", resp.Status)
		}
		took = append(took, (<-calls).Sub(sent))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func signedEvent(b *testing.B, url string, n int) *http.Request {
	b.Helper()
	body := fmt.Appendf(nil, `{"n":%d,"pad":"%0900d"}`, n, n)
	r := &signing.Request{Method: http.MethodPost, Header: http.Header{"X-Github-Delivery": {fmt.Sprintf("%d-%d", b.N, n)}}, Body: body, Now: time.Now()}
	if err := signing.Forge(signing.Options{Scheme: "github", Secrets: []string{hexSecret}}, r); err != nil {
		b.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header = r.Header
	return req
}

// startBridge runs a whole bridge in this process until the benchmark ends;
// it returns the webhook listener's URL.
func startBridge(b *testing.B, store, function string) string {
	b.Helper()
	r, err := configfile.Load(configfile.Options{Path: "bench.yaml", Data: fmt.Appendf(nil, `
queen: {embedded: %q}
ingress: {addr: "127.0.0.1:0"}
admin: {addr: "127.0.0.1:0"}
sources: [{name: bench, scheme: github, secrets: [%q]}]
targets: [{name: bench, http: {url: %q}}]
routes: [{name: bench, queue: bench, target: bench}]
`, store, hexSecret, function)})
	if err != nil {
		b.Fatal(err)
	}
	up := make(chan addrs, 1)
	process := &bridgeProcess{cfg: r.Config, log: slog.New(slog.DiscardHandler), reg: newRegistry(), started: func(a addrs) { up <- a }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- process.run(ctx, nil) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	select {
	case a := <-up:
		return "http://" + a.ingress.String()
	case err := <-done:
		b.Fatal(err)
		return ""
	}
}
