package bridge

import (
	"io"
	"log/slog"
)

// Logger returns a logger that writes to w: text where Format says so, or
// where it is empty and w is a terminal, else JSON.
func (c LogConfig) Logger(w io.Writer, terminal bool) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated before; info otherwise
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readableDuration}
	if c.Format == "text" || c.Format == "" && terminal {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// readableDuration writes durations as 1.5s, also in JSON.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}
