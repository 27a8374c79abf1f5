package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/spf13/cobra"
)

func (p *program) statusCommand() *cobra.Command {
	return p.apiCommand(&cobra.Command{
		Use:     "status",
		Short:   "Say how the bridge is: what is not ready, which rules are in use, what routes and targets do",
		Long:    "status asks the process at the endpoint. Its exit code is 1 while that is not ready.",
		Example: "  queenbridge status",
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, _ []string) error {
		s, err := client.Status(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			err = printJSON(p.out, s)
		} else {
			err = p.printStatus(s)
		}
		if err == nil && !s.Ready {
			err = fmt.Errorf("the bridge is not ready")
		}
		return err
	})
}

func (p *program) printStatus(s adminapi.Status) error {
	if err := printFields(p.out, readyWord(s), statusFields(s)); err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if len(s.Routes) > 0 {
		_, _ = fmt.Fprintln(w, "\nROUTE\tTARGET\tSTATE\tSINCE\tRETRIES\tDETAIL")
	}
	for _, r := range s.Routes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Route, r.Target, r.State, when(r.Since), pendingWord(r.RetriesPending), r.Detail)
	}
	if err := w.Flush(); err != nil || len(s.Targets) == 0 {
		return err
	}
	_, _ = fmt.Fprintln(w, "\nTARGET\tSTATE\tIN FLIGHT\tLIMIT\tWAITING\tBREAKER\tRATE\tFAILING SINCE\tDETAIL")
	for _, t := range s.Targets {
		rate := "-"
		if t.Rate > 0 {
			rate = fmt.Sprintf("%g/s", t.Rate)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", t.Target, t.State, t.InFlight, t.Limit, t.Waiting,
			orDefault(t.Breaker, "off"), rate, when(t.FailingSince), t.Detail)
	}
	return w.Flush()
}

// pendingWord is a count of retries that may go on.
func pendingWord(n *int) string {
	switch {
	case n == nil:
		return "-"
	case *n >= dispatch.MaxRetriesPending:
		return fmt.Sprintf("%d+", dispatch.MaxRetriesPending)
	}
	return fmt.Sprint(*n)
}

func readyWord(s adminapi.Status) string {
	switch {
	case !s.Ready:
		return "not ready"
	case len(s.Problems) > 0:
		return "degraded"
	}
	return "ready"
}

func statusFields(s adminapi.Status) []field {
	var counts []string
	for _, kind := range bridge.Kinds() {
		counts = append(counts, count(s.Rules.Counts[string(kind)], kind.Singular()))
	}
	return []field{
		{"version", s.Version}, {"started", when(s.Started)}, {"parts", strings.Join(s.Parts, ", ")},
		{"problems", strings.Join(s.Problems, "\n")}, {"in use", strings.Join(counts, ", ")},
		{"not in use", strings.Join(s.Rules.Invalid, ", ")}, {"draining", strings.Join(s.Rules.Draining, ", ")},
		{"stored rules", "read " + when(s.Rules.Synced) + ", generation " + orDefault(s.Rules.Generation, "none")},
	}
}

func (p *program) rulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "Look after the rules that are stored in Queen",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(p.apiCommand(&cobra.Command{
		Use:   "reseal",
		Short: "Seal every stored secret under the newest encryption key",
		Long: "reseal is the middle of replacing QUEENBRIDGE_ENCRYPTION_KEY: put the new key in front of the old one, comma-separated,\n" +
			"on every process; reseal; take the old one away.",
		Example: "  queenbridge rules reseal",
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, _ []string) error {
		out, err := client.Reseal(cmd.Context())
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.out, out)
		}
		_, err = fmt.Fprintf(p.out, "%s sealed anew, %d up to date\n", count(len(out.Resources), "resource"), out.Current)
		return err
	}))
	return c
}
