package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/spf13/cobra"
)

// followEvery is how often deliveries --follow asks.
const followEvery = time.Second

type deliveriesFlags struct {
	query  adminapi.DeliveryQuery
	since  string
	limit  int
	follow bool
}

func (f *deliveriesFlags) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.query.Route, "route", "", "only those of this route")
	c.Flags().StringVar(&f.query.Target, "target", "", "only those of this target")
	c.Flags().StringVar(&f.query.Event, "event", "", "only those of this transaction id")
	c.Flags().StringVar(&f.query.Delivery, "delivery", "", "only those of this webhook-id")
	c.Flags().StringVar(&f.query.Outcome, "outcome", "", "only these: delivered, retry, hold, dead or dead_letter")
	c.Flags().StringVar(&f.since, "since", "", "only those since a time, or of the last 10m")
	c.Flags().IntVar(&f.limit, "limit", 20, "at most so many, 1 to 1000")
	c.Flags().BoolVar(&f.follow, "follow", false, "go on with new ones until interrupted")
}

func (p *program) deliveriesCommand() *cobra.Command {
	var f deliveriesFlags
	c := p.apiCommand(&cobra.Command{
		Use:   "deliveries",
		Short: "List recent attempts to deliver, and why they failed",
		Long: "deliveries lists the attempts and dead letters that the process at the endpoint remembers: its last 4096. The log and the\n" +
			"metrics of the processes have all. The newest is the last line.",
		Example: "  queenbridge deliveries --route pushes-to-ci --since 10m\n  queenbridge deliveries --outcome dead_letter --follow",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, _ []string) error {
		var err error
		if f.query.Since, err = sinceTime(f.since, time.Now()); err != nil {
			return err
		}
		if f.limit < 1 || f.limit > 1000 {
			return &usageError{err: fmt.Errorf("--limit must be 1 to 1000, got %d", f.limit)}
		}
		page, err := client.Deliveries(cmd.Context(), f.query, adminapi.ListOptions{Size: f.limit})
		if err != nil {
			return err
		}
		slices.Reverse(page.Items)
		if asJSON && !f.follow {
			return printJSON(p.out, page.Items)
		}
		if err := p.printDeliveries(page.Items, asJSON); err != nil || !f.follow {
			return err
		}
		return p.followDeliveries(cmd.Context(), client, asJSON, f.query, page.Items)
	})
	f.bind(c)
	return c
}

// sinceTime reads a time, or a duration before now.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &usageError{err: fmt.Errorf("--since must be a duration such as 10m, or a time such as 2026-01-02T15:04:05Z, got %q", text)}
	}
	return at, nil
}

// followDeliveries prints what comes after the last ones until ctx ends.
func (p *program) followDeliveries(ctx context.Context, client *adminapi.Client, asJSON bool, q adminapi.DeliveryQuery, last []adminapi.Delivery) error {
	for {
		if len(last) > 0 {
			q.After = last[len(last)-1].ID
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
		var err error
		if last, err = newDeliveries(ctx, client, q); err == nil {
			err = p.printDeliveries(last, asJSON)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// newDeliveries are all that fit, the oldest first: as many pages as the bridge
// remembers.
func newDeliveries(ctx context.Context, client *adminapi.Client, q adminapi.DeliveryQuery) (all []adminapi.Delivery, err error) {
	for o := (adminapi.ListOptions{Size: 1000}); ; {
		page, err := client.Deliveries(ctx, q, o)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if o.Token = page.NextPageToken; o.Token == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// printDeliveries prints a line for each: columns, or JSON.
func (p *program) printDeliveries(all []adminapi.Delivery, asJSON bool) error {
	out := json.NewEncoder(p.out)
	out.SetEscapeHTML(false)
	for _, d := range all {
		if asJSON {
			if err := out.Encode(d); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(p.out, "%s  %-11s  %-3s  %-20s  #%-2d  %s%s\n",
			d.Time.UTC().Format("2006-01-02T15:04:05.000Z"), d.Outcome, orDefault(zeroEmpty(d.Status), "-"), d.Route, d.Attempt, d.Event, deliveryRest(d)); err != nil {
			return err
		}
	}
	return nil
}

// deliveryRest says why, and what is next.
func deliveryRest(d adminapi.Delivery) string {
	var b strings.Builder
	if d.Class != "" {
		fmt.Fprintf(&b, "  %s: %s", d.Class, d.Error)
	}
	if d.Delay != "" {
		fmt.Fprintf(&b, ", again in %s", d.Delay)
	}
	if d.Elapsed != "" {
		fmt.Fprintf(&b, "  (%s)", d.Elapsed)
	}
	return b.String()
}
