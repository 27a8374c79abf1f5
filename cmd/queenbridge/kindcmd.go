package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/spf13/cobra"
)

// kindCommand is the command of one kind of resources.
func (p *program) kindCommand(kind bridge.Kind) *cobra.Command {
	c := &cobra.Command{
		Use:   string(kind),
		Short: "Read and change " + string(kind) + " over the admin API",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(p.getCommand(kind), p.applyCommand(kind), p.diffCommand(kind), p.deleteCommand(kind))
	if kind != bridge.KindQueue {
		c.AddCommand(p.pauseCommand(kind), p.resumeCommand(kind))
	}
	if kind == bridge.KindRoute {
		c.AddCommand(p.testFireCommand(), p.replayCommand())
	}
	return c
}

func (p *program) getCommand(kind bridge.Kind) *cobra.Command {
	return p.apiCommand(&cobra.Command{
		Use:     "get [NAME]",
		Short:   "List " + string(kind) + ", or show one as it was written",
		Example: fmt.Sprintf("  queenbridge %[1]s get\n  queenbridge %[1]s get NAME --json", kind),
		Args:    cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		if len(args) == 0 {
			return p.list(cmd, client, kind, asJSON)
		}
		r, err := client.Read(cmd.Context(), kind, args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(p.out, r)
		}
		return p.show(r)
	})
}

func (p *program) list(cmd *cobra.Command, client *adminapi.Client, kind bridge.Kind, asJSON bool) error {
	all := []adminapi.Resource{}
	for r, err := range client.List(cmd.Context(), kind) {
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	if asJSON {
		return printJSON(p.out, all)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tOWNER\tSTATE\tUPDATED\tBY")
	for _, r := range all {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name(), r.Meta.ManagedBy, stateOf(r.Meta), when(r.Meta.Updated), orDefault(r.Meta.UpdatedBy, "-"))
	}
	return w.Flush()
}

func stateOf(m adminapi.Meta) string {
	if m.Paused != nil {
		return string(m.State) + ", paused"
	}
	return string(m.State)
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// show prints one resource as YAML, with what is to be known in comments.
func (p *program) show(r adminapi.Resource) error {
	doc, err := bridge.ParseJSON(r.Document)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# managed by %s, %s, version %s\n", r.Meta.ManagedBy, stateOf(r.Meta), r.Meta.Version)
	if r.Meta.Paused != nil {
		fmt.Fprintf(&b, "# paused by %s since %s: %s\n", r.Meta.Paused.By, when(r.Meta.Paused.Since), r.Meta.Paused.Reason)
	}
	for _, problem := range r.Meta.Problems {
		fmt.Fprintf(&b, "# %s\n", problem)
	}
	_, err = fmt.Fprintf(p.out, "%s%s", b.String(), configfile.Format(doc))
	return err
}

func (p *program) deleteCommand(kind bridge.Kind) *cobra.Command {
	var drain bool
	c := p.apiCommand(&cobra.Command{
		Use:     "delete NAME...",
		Short:   "Delete " + string(kind),
		Long:    "delete deletes what the admin API made and no other resource needs. A route first lets its retries and dead letters run out.",
		Example: fmt.Sprintf("  queenbridge %s delete NAME", kind),
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		did := []applied{}
		for _, name := range args {
			remove := func() (bool, error) { return client.Delete(cmd.Context(), kind, name, "") }
			if drain {
				remove = func() (bool, error) { return client.DeleteTarget(cmd.Context(), name, "") }
			}
			gone, err := remove()
			if err != nil {
				return err
			}
			action := "deleted"
			if !gone {
				action = "draining"
			}
			did = append(did, applied{Resource: bridge.Resource{Kind: kind, Name: name}.String(), Action: action, Fields: []string{}})
		}
		return p.printApplied(did, asJSON)
	})
	if kind == bridge.KindTarget {
		c.Flags().BoolVar(&drain, "drain", false, "also the routes that use it: they drain, and the target goes with the last of them")
	}
	return c
}

func (p *program) pauseCommand(kind bridge.Kind) *cobra.Command {
	var reason string
	c := p.apiCommand(&cobra.Command{
		Use:     "pause NAME",
		Short:   "Pause a " + kind.Singular() + ", in every process, until it is resumed",
		Example: fmt.Sprintf("  queenbridge %s pause NAME --reason \"they deploy\"", kind),
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		r, err := client.Pause(cmd.Context(), kind, args[0], reason)
		return p.printPaused(r, "paused", asJSON, err)
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for those who find it paused")
	return c
}

func (p *program) resumeCommand(kind bridge.Kind) *cobra.Command {
	return p.apiCommand(&cobra.Command{
		Use:     "resume NAME",
		Short:   "Resume a " + kind.Singular() + " that was paused",
		Example: fmt.Sprintf("  queenbridge %s resume NAME", kind),
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		r, err := client.Resume(cmd.Context(), kind, args[0])
		return p.printPaused(r, "resumed", asJSON, err)
	})
}

func (p *program) printPaused(r adminapi.Resource, word string, asJSON bool, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(p.out, r)
	}
	_, err = fmt.Fprintf(p.out, "%s %s\n", word, r.Name())
	return err
}
