package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
	"github.com/spf13/cobra"
)

// spoolOptions are the flags of the spool's commands.
type spoolOptions struct {
	settings
	dir     string
	json    bool
	timeout time.Duration
}

func (p *program) spoolCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "spool",
		Short: "Look at the events that wait on disk for Queen, or push them",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(p.spoolStatusCommand(), p.spoolDrainCommand())
	return c
}

func (p *program) spoolStatusCommand() *cobra.Command {
	var o spoolOptions
	c := &cobra.Command{
		Use:     "status",
		Short:   "Say what the spool holds, also while a bridge uses it",
		Example: "  queenbridge spool status\n  queenbridge spool status --config bridge.yaml --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, limit, err := p.spoolDir(cmd.Context(), &o)
			if err != nil {
				return err
			}
			return p.spoolStatus(dir, limit, o.json)
		},
	}
	o.bindConfig(c.Flags())
	c.Flags().StringVar(&o.dir, "dir", "", "the spool's directory (default: ingress.spool.dir)")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// spoolDir is the directory of the spool, and its bound where it is known.
func (p *program) spoolDir(ctx context.Context, o *spoolOptions) (string, bridge.Size, error) {
	if o.dir != "" {
		return o.dir, 0, nil
	}
	cfg, err := p.load(ctx, &o.settings)
	if err != nil {
		return "", 0, err
	}
	return spoolOf(cfg)
}

func spoolOf(cfg bridge.Config) (string, bridge.Size, error) {
	if cfg.Ingress.Spool.Dir == "" {
		return "", 0, &usageError{err: errors.New("the configuration has no spool"), hint: "set ingress.spool.dir, and spool: true at a source"}
	}
	return cfg.Ingress.Spool.Dir, cfg.Ingress.Spool.MaxBytes, nil
}

func (p *program) spoolStatus(dir string, limit bridge.Size, asJSON bool) error {
	status, err := ingress.ReadSpool(dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing was ever spooled
		status, err = ingress.SpoolStatus{Queues: []ingress.SpooledQueue{}}, nil
	}
	if err != nil {
		return err
	}
	status.MaxBytes = cmp.Or(status.MaxBytes, int64(limit))
	if asJSON {
		return printJSON(p.out, status)
	}
	return p.printSpool(dir, status)
}

func (p *program) printSpool(dir string, status ingress.SpoolStatus) error {
	var waiting, refused int64
	for _, q := range status.Queues {
		waiting, refused = waiting+q.Events, refused+q.Refused
	}
	bound := ""
	if status.MaxBytes > 0 {
		bound = " of " + bridge.Size(status.MaxBytes).String()
	}
	_, _ = fmt.Fprintf(p.out, "%s: %s wait, %d refused, %d bytes%s\n", dir, count(int(waiting), "event"), refused, status.Bytes, bound)
	if len(status.Queues) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "QUEUE\tWAITING\tREFUSED\tBYTES\tOLDEST")
	for _, q := range status.Queues {
		oldest := "-"
		if !q.Oldest.IsZero() {
			oldest = q.Oldest.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", q.Queue, q.Events, q.Refused, q.Bytes, oldest)
	}
	return w.Flush()
}

func (p *program) spoolDrainCommand() *cobra.Command {
	var o spoolOptions
	c := &cobra.Command{
		Use:   "drain",
		Short: "Push what the spool holds to Queen, in order, with the same ids",
		Long: "drain pushes what waits in the spool, and tries again while Queen is away. A running bridge drains its spool\n" +
			"by itself: drain is for a spool that no bridge uses any more.",
		Example: "  queenbridge spool drain --config bridge.yaml --timeout 5m",
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.spoolDrain(cmd.Context(), &o) },
	}
	o.bindConfig(c.Flags())
	o.bindLog(c.Flags())
	c.Flags().StringVar(&o.dir, "dir", "", "the spool's directory (default: ingress.spool.dir)")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after this long (default: when interrupted)")
	return c
}

func (p *program) spoolDrain(ctx context.Context, o *spoolOptions) (err error) {
	cfg, err := p.load(ctx, &o.settings)
	if err != nil {
		return err
	}
	if o.dir != "" {
		cfg.Ingress.Spool.Dir = o.dir
	}
	dir, limit, err := spoolOf(cfg)
	if err != nil {
		return err
	}
	spool, err := ingress.OpenSpool(dir, ingress.SpoolOptions{MaxBytes: int64(limit)})
	if errors.Is(err, ingress.ErrSpoolInUse) {
		return &hintedError{err: err, hint: "the bridge that runs drains it by itself"}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	link, err := openQueen(cfg.Queen, newLogger(p.err, cfg.Log))
	if err != nil {
		return err
	}
	defer link.close()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	taken, err := spool.Drain(ctx, link.client)
	_, _ = fmt.Fprintf(p.out, "%s: Queen took %s\n", dir, count(taken, "event"))
	return err
}
