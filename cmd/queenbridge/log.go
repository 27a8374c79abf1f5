package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/queenbridge/queenbridge/bridge"
)

func newLogger(w io.Writer, c bridge.LogConfig) *slog.Logger {
	f, ok := w.(*os.File)
	return c.Logger(w, ok && isatty.IsTerminal(f.Fd()))
}
