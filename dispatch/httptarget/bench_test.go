package httptarget_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// BenchmarkSend is one attempt, beside the same POST by a bare net/http client
// against the same function. Both count the function's own allocations.
func BenchmarkSend(b *testing.B) {
	body := []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	b.Run("bare", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			resp, err := client.Post(server.URL, "application/json", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	b.Run("send", func(b *testing.B) {
		s, err := httptarget.New(bridge.Target{HTTP: &bridge.HTTPTarget{URL: server.URL, Timeout: 30 * time.Second}}, httptarget.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		r := request()
		r.Body = body
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			if resp := s.Send(ctx, r); resp.Status != 200 {
				b.Fatal(resp.Err)
			}
		}
	})
}
