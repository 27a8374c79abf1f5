package main

import (
	"fmt"
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
