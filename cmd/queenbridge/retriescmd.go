package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/spf13/cobra"
)

func (p *program) retriesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "retries",
		Short: "Look at deliveries that wait for their next attempt",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(p.retriesListCommand(), p.retriesNowCommand())
	return c
}

func (p *program) retriesNowCommand() *cobra.Command {
	var all bool
	c := p.apiCommand(&cobra.Command{
		Use:   "now ROUTE [KEY...]",
		Short: "Let retries be due at once",
		Long: "now lets retries be due at once, and a target be tried again that is held or whose breaker is open\n" +
			"(in the process that answers; another one waits for its own breaker). Name keys, or take --all.",
		Example: "  queenbridge retries now pushes-to-ci KEY\n  queenbridge retries now pushes-to-ci --all",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		route, keys := args[0], args[1:]
		if all == (len(keys) > 0) {
			return &usageError{err: errors.New("which retries: name keys, or take --all"), hint: `"queenbridge retries list ` + route + `" shows the keys`}
		}
		if all {
			var err error
			if keys, err = retryKeys(cmd.Context(), client, route); err != nil {
				return err
			}
		}
		return p.hasten(cmd.Context(), client, hastening{route, keys, all, asJSON})
	})
	c.Flags().BoolVar(&all, "all", false, "all pending retries of the route")
	return c
}

// retryPage is how many retries are asked for at once.
const retryPage = 100

// retryKeys are the keys of a route's retries that wait now.
func retryKeys(ctx context.Context, client *adminapi.Client, route string) (keys []string, err error) {
	for o := (adminapi.ListOptions{Size: retryPage}); ; {
		page, err := client.Retries(ctx, route, false, o)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Items {
			keys = append(keys, r.Key)
		}
		if page.NextPageToken == "" {
			return keys, nil
		}
		o.Token = page.NextPageToken
	}
}

// hastening is what "retries now" is to do.
type hastening struct {
	route  string
	keys   []string
	all    bool // one that has become due meanwhile is no mistake
	asJSON bool
}

func (p *program) hasten(ctx context.Context, client *adminapi.Client, h hastening) error {
	due := []string{}
	for _, key := range h.keys {
		switch err := client.RetryNow(ctx, h.route, key); {
		case err == nil:
			due = append(due, key)
		case !h.all || !adminapi.IsCode(err, adminapi.CodeNotFound):
			return err
		}
		if !h.asJSON && !h.all {
			_, _ = fmt.Fprintf(p.out, "due %s\n", key)
		}
	}
	switch {
	case h.asJSON:
		return printJSON(p.out, due)
	case h.all:
		_, err := fmt.Fprintf(p.out, "%d due\n", len(due))
		return err
	}
	return nil
}

func (p *program) retriesListCommand() *cobra.Command {
	var limit int
	c := p.apiCommand(&cobra.Command{
		Use:     "list ROUTE",
		Short:   "List pending retries of a route",
		Example: "  queenbridge retries list pushes-to-ci",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		page, err := client.Retries(cmd.Context(), args[0], true, adminapi.ListOptions{Size: limit})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.out, page.Items)
		}
		w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "KEY\tDUE\tATTEMPTS\tEVENT\tLAST")
		for _, r := range page.Items {
			event, last := "-", "-"
			if r.Event != nil {
				event, last = r.Event.ID, strings.TrimSpace(r.Last.Class+" "+zeroEmpty(r.Last.Status))
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", r.Key, when(r.Due), r.Attempt, event, last)
		}
		return w.Flush()
	})
	c.Flags().IntVar(&limit, "limit", 20, "at most so many")
	return c
}
