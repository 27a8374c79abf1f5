package ingress_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func bufReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

func hmacHex(secret string, parts ...[]byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, p := range parts {
		mac.Write(p)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// blockUntil holds every push until leave is closed and says that it came.
func blockUntil(entered chan<- struct{}, leave <-chan struct{}) func(context.Context, []queen.Item) error {
	return func(ctx context.Context, _ []queen.Item) error {
		entered <- struct{}{}
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func jsonLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
