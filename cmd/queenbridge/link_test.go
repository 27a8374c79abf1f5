package main

import (
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// TestLinkOverTLS: queen.tls.ca, queen.token and queen.strategy reach the
// client.
func TestLinkOverTLS(t *testing.T) {
	t.Parallel()
	broker, err := devbroker.Open(devbroker.Config{Token: "tok"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	server := httptest.NewTLSServer(broker)
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := bridge.QueenConfig{URLs: []string{server.URL}, Token: "tok", Strategy: bridge.StrategySession, TLS: bridge.QueenTLS{CA: ca}}
	link, err := openQueen(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.close)
	if _, err := link.client.Probe(t.Context()); err != nil {
		t.Errorf("Probe() = %v", err)
	}
	cfg.Strategy = "chance"
	if _, err := openQueen(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "chance") {
		t.Errorf("openQueen() error = %v, want one that names the strategy", err)
	}
}
