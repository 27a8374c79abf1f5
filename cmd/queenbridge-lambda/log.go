package main

import (
	"io"
	"log/slog"

	"github.com/queenbridge/queenbridge/bridge"
)

// newLogger writes JSON, which CloudWatch reads, unless text is asked for.
func newLogger(w io.Writer, c bridge.LogConfig) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated before; info otherwise
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// readable writes durations as 1.5s.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}
