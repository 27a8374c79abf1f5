package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/spf13/cobra"
)

func (p *program) deadLettersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead-letters",
		Short: "Look at deliveries that were given up; deliver them again, or delete them",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(p.deadLettersListCommand(), p.deadLettersShowCommand(), p.redriveCommand(), p.deadLettersDeleteCommand())
	return c
}

// selectionFlags choose dead letters.
type selectionFlags struct {
	class, event string
	limit        int
}

func (f *selectionFlags) bind(c *cobra.Command, limit string) {
	c.Flags().StringVar(&f.class, "class", "", "only those of this class, such as http_4xx")
	c.Flags().StringVar(&f.event, "event", "", "only those of this transaction id")
	c.Flags().IntVar(&f.limit, "limit", 0, limit)
}

func (f *selectionFlags) selection(ids []string) adminapi.Selection {
	s := adminapi.Selection{IDs: ids, Event: f.event}
	if f.class != "" {
		s.Classes = []string{f.class}
	}
	return s
}

func (p *program) deadLettersListCommand() *cobra.Command {
	var f selectionFlags
	c := p.apiCommand(&cobra.Command{
		Use:     "list ROUTE",
		Short:   "List the dead letters of a route, newest first",
		Example: "  queenbridge dead-letters list pushes-to-ci --class http_4xx",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		page, err := client.DeadLetters(cmd.Context(), args[0], f.selection(nil), adminapi.ListOptions{Size: f.limit})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.out, page.Items)
		}
		w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tFAILED\tCLASS\tSTATUS\tATTEMPTS\tEVENT\tERROR")
		for _, l := range page.Items {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", l.ID, when(l.Failed), l.Reason.Class, l.Reason.Status, l.Reason.Attempts, l.Event.ID, shortened(l.Reason.Error))
		}
		if err := w.Flush(); err != nil || page.NextPageToken == "" {
			return err
		}
		_, err = fmt.Fprintln(p.err, "there are more: --limit 1000, --class or --event")
		return err
	})
	f.bind(c, "at most so many (100)")
	return c
}

func (p *program) deadLettersShowCommand() *cobra.Command {
	var payload bool
	c := p.apiCommand(&cobra.Command{
		Use:     "show ROUTE ID",
		Short:   "Show one dead letter",
		Example: "  queenbridge dead-letters show pushes-to-ci ID --payload",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		l, err := client.DeadLetter(cmd.Context(), args[0], args[1], payload)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.out, l)
		}
		return printFields(p.out, l.ID, letterFields(l))
	})
	c.Flags().BoolVar(&payload, "payload", false, "with what was pushed; takes an operator's token")
	return c
}

func letterFields(l adminapi.DeadLetter) []field {
	redrive := ""
	if !l.Redrivable {
		redrive = "not possible: somebody else put it there"
	}
	return []field{
		{"route", l.Route}, {"failed", when(l.Failed)}, {"class", l.Reason.Class}, {"status", zeroEmpty(l.Reason.Status)},
		{"error", l.Reason.Error}, {"response", l.Reason.Response}, {"attempts", zeroEmpty(l.Reason.Attempts)},
		{"first failed", when(l.Reason.First)}, {"delivery", l.Delivery}, {"event", l.Event.ID}, {"type", l.Event.Type},
		{"source", l.Event.Source}, {"received", when(l.Event.Received)}, {"content type", l.Event.ContentType},
		{"queue", l.Origin.Queue}, {"partition", l.Origin.Partition}, {"redrive", redrive},
		{"payload", l.Payload}, {"no payload", l.PayloadError},
	}
}

func zeroEmpty(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (p *program) redriveCommand() *cobra.Command {
	return p.orderCommand("redrive", "Deliver dead letters of a route again", "redriven",
		"redrive lets dead letters be delivered again with the whole retry policy before them, and the same webhook-id.\n"+
			"It may be repeated: nothing is done twice.",
		(*adminapi.Client).Redrive)
}

func (p *program) deadLettersDeleteCommand() *cobra.Command {
	return p.orderCommand("delete", "Delete dead letters of a route for good", "deleted",
		"delete deletes dead letters for good.", (*adminapi.Client).DeleteDeadLetters)
}

// orderFunc carries out an order.
type orderFunc func(*adminapi.Client, context.Context, string, adminapi.Order) (adminapi.OrderResult, error)

// orderCommand does something with many dead letters.
func (p *program) orderCommand(use, short, done, long string, order orderFunc) *cobra.Command {
	var f selectionFlags
	var all, dry bool
	var perSecond float64
	c := p.apiCommand(&cobra.Command{
		Use: use + " ROUTE [ID...]", Short: short, Long: long + " Name ids, or choose with --class and --event, or take --all.",
		Example: fmt.Sprintf("  queenbridge dead-letters %[1]s pushes-to-ci ID\n  queenbridge dead-letters %[1]s pushes-to-ci --class timeout --dry-run", use),
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		s := f.selection(args[1:])
		if len(s.IDs) == 0 && len(s.Classes) == 0 && s.Event == "" && !all {
			return &usageError{err: fmt.Errorf("nothing is chosen"), hint: "name ids, --class, --event or --all"}
		}
		r, err := order(client, cmd.Context(), args[0], adminapi.Order{Selection: s, Limit: f.limit, PerSecond: perSecond, DryRun: dry})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.out, r)
		}
		return p.printOrder(r, done, dry)
	})
	f.bind(c, "at most so many (1000)")
	c.Flags().BoolVar(&all, "all", false, "all dead letters of the route")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say how many")
	c.Flags().Float64Var(&perSecond, "per-second", 0, "spread them: so many each second")
	return c
}

func (p *program) printOrder(r adminapi.OrderResult, done string, dry bool) error {
	if dry {
		done = "would be " + done
	}
	line := fmt.Sprintf("%d %s", r.Done, done)
	if r.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped: somebody else put them there", r.Skipped)
	}
	if _, err := fmt.Fprintln(p.out, line); err != nil || r.Failed == 0 {
		return err
	}
	return fmt.Errorf("%d failed:\n%s", r.Failed, strings.Join(r.Problems, "\n"))
}
