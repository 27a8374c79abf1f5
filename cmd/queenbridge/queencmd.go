package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/spf13/cobra"
)

// queenOptions are the flags of `queenbridge queen`.
type queenOptions struct {
	addr   string
	data   string
	memory bool
	log    logFlags
}

func (p *program) queenCommand() *cobra.Command {
	var o queenOptions
	c := &cobra.Command{
		Use:   "queen",
		Short: "Run the embedded broker alone, for any Queen client",
		Long: "queen serves Queen's HTTP API over a durable store in one directory: every answer that acknowledges\n" +
			"something is sent after it is on disk. QUEENBRIDGE_QUEEN_TOKEN makes it ask for that bearer token.",
		Example: "  queenbridge queen --addr 127.0.0.1:6632 --data ./queen-data\n  queenbridge queen --memory",
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.queen(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.addr, "addr", "127.0.0.1:6632", "listen address")
	c.Flags().StringVar(&o.data, "data", "./queenbridge-data", "directory of the durable store")
	c.Flags().BoolVar(&o.memory, "memory", false, "keep everything in memory: gone when the process ends")
	c.MarkFlagsMutuallyExclusive("data", "memory")
	o.log.bindLog(c.Flags())
	return c
}

func (p *program) queen(ctx context.Context, o queenOptions) error {
	logging, err := p.logging(o.log)
	if err != nil {
		return err
	}
	log := newLogger(p.err, logging)
	token, _ := p.env("QUEENBRIDGE_QUEEN_TOKEN")
	dir, where := o.data, "data in "+o.data
	if o.memory {
		dir, where = "", "in memory"
	}
	broker, err := devbroker.Open(devbroker.Config{Dir: dir, Token: strings.TrimSpace(token), Logger: log})
	if err != nil {
		return unusable(fmt.Errorf("open the broker's store: %w", err), "--data")
	}
	defer func() { _ = broker.Close() }()
	l, err := listen(ctx, "--addr", o.addr)
	if err != nil {
		return err
	}
	log.Info("embedded broker listening", "url", "http://"+l.Addr().String(), "store", where)
	err = runServices(ctx, service{"broker", func(ctx context.Context) error {
		return serveHTTP(ctx, l, broker, 5*time.Second)
	}})
	log.Info("embedded broker stopped")
	return err
}
