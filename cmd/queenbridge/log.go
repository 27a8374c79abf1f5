package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/queenbridge/queenbridge/bridge"
)

// newLogger makes the process's logger. Format "" is text on a terminal, json
// elsewhere.
func newLogger(w io.Writer, c bridge.LogConfig) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated before; info otherwise
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.Format == "text" || c.Format == "" && terminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// readable writes durations as 1.5s, also in JSON.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
