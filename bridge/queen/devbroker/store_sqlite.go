package devbroker

import (
	"errors"
	"log/slog"
)

func openSQLite(string, *slog.Logger) (store, error) { return nil, errors.New("coming") }
