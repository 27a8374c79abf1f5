package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// queenLink is the way to Queen: a client, and the embedded broker when it
// runs in this process.
type queenLink struct {
	client *queen.Client
	broker *devbroker.Broker // nil: Queen is elsewhere
	where  string            // for people
	log    *slog.Logger
	token  atomic.Pointer[string]
}

// setToken makes the requests from now on carry another bearer token.
func (l *queenLink) setToken(token bridge.Secret) {
	text := token.Reveal()
	l.token.Store(&text)
}

// currentToken is a queen.TokenSource.
func (l *queenLink) currentToken(context.Context, string) (string, error) {
	return *l.token.Load(), nil
}

func openQueen(c bridge.QueenConfig, log *slog.Logger) (*queenLink, error) {
	if c.Embedded == "" {
		l := &queenLink{where: strings.Join(c.URLs, ", "), log: log}
		l.setToken(c.Token)
		var err error
		l.client, err = queen.New(queen.Config{
			URLs: c.URLs, Strategy: queen.Strategy(c.Strategy), TokenSource: l.currentToken, CA: c.TLS.CA, Logger: log,
		})
		return l, err
	}
	dir, where := c.Embedded, "the embedded broker in "+c.Embedded
	if dir == "memory" {
		dir, where = "", "the embedded broker in memory"
	}
	broker, err := devbroker.Open(devbroker.Config{Dir: dir, Token: c.Token.Reveal(), Logger: log})
	if err != nil {
		return nil, unusable(fmt.Errorf("open the embedded broker: %w", err), "queen.embedded")
	}
	client, err := queen.New(queen.Config{
		URLs: []string{"http://embedded"}, Token: c.Token.Reveal(), Logger: log, Transport: broker.Transport(),
	})
	if err != nil {
		_ = broker.Close()
		return nil, err
	}
	return &queenLink{client: client, broker: broker, where: where, log: log}, nil
}

func (l *queenLink) close() {
	l.client.Close()
	if l.broker == nil {
		return
	}
	if err := l.broker.Close(); err != nil {
		l.log.Error("closing the embedded broker's store", "error", err)
	}
}
