package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/spf13/cobra"
)

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
func (p *program) orderCommand(use, short, done, long string, carry orderFunc) *cobra.Command {
	var f selectionFlags
	var all, dry bool
	var perSecond float64
	c := p.apiCommand(&cobra.Command{
		Use: use + " ROUTE [ID...]", Short: short,
		Long:    long + " Name ids, or choose with --class and --event, or take --all: those that there are now, however many.",
		Example: fmt.Sprintf("  queenbridge dead-letters %[1]s pushes-to-ci ID\n  queenbridge dead-letters %[1]s pushes-to-ci --class timeout --dry-run", use),
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		s := f.selection(args[1:])
		switch {
		case len(s.IDs) == 0 && len(s.Classes) == 0 && s.Event == "" && !all:
			return &usageError{err: fmt.Errorf("nothing is chosen"), hint: "name ids, --class, --event or --all"}
		case perSecond < 0 || f.limit < 0:
			return &usageError{err: fmt.Errorf("--limit and --per-second must be 0 or more")}
		}
		o := bulk{client: client, carry: carry, route: args[0], perSecond: perSecond, dry: dry}
		r, err := o.run(cmd.Context(), s, f.limit)
		if asJSON {
			return errors.Join(printJSON(p.out, r), err, failedOrder(r))
		}
		return p.printOrder(r, done, dry, err)
	})
	f.bind(c, "at most so many (0: all)")
	c.Flags().BoolVar(&all, "all", false, "all dead letters of the route")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say how many")
	c.Flags().Float64Var(&perSecond, "per-second", 0, "spread them: so many each second")
	return c
}

// bulk is an order for any number of dead letters, carried out in parts: a
// request touches at most 1000, and must end before its client's patience.
type bulk struct {
	client    *adminapi.Client
	carry     orderFunc
	route     string
	perSecond float64
	dry       bool
}

// Bounds of one part.
const (
	partSize = 200
	partTime = 10 * time.Second
)

// run begins with the list of what is meant: what dies anew meanwhile is not
// redriven again. The result is what was done until an error.
func (b bulk) run(ctx context.Context, s adminapi.Selection, limit int) (total adminapi.OrderResult, err error) {
	total.Problems = []string{}
	ids := s.IDs
	if len(ids) == 0 {
		if ids, err = b.list(ctx, s, limit); err != nil {
			return total, err
		}
		if len(ids) == 0 { // is there such a route at all, and would it be done?
			_, err = b.carry(b.client, ctx, b.route, adminapi.Order{Selection: s, Limit: 1, DryRun: true})
			return total, err
		}
	}
	named := len(s.IDs)
	for part := range slices.Chunk(ids, b.partSize()) {
		begun := time.Now()
		r, err := b.carry(b.client, ctx, b.route, adminapi.Order{Selection: adminapi.Selection{IDs: part}, PerSecond: b.perSecond, DryRun: b.dry})
		total.Done, total.Skipped, total.Failed = total.Done+r.Done, total.Skipped+r.Skipped, total.Failed+r.Failed
		total.Problems = append(total.Problems, r.Problems...)
		if err == nil {
			err = b.rest(ctx, begun, len(part))
		}
		if err != nil {
			return total, err
		}
	}
	if missing := named - total.Done - total.Skipped - total.Failed; missing > 0 {
		return total, fmt.Errorf("%d of the %d named are not among the dead letters of %s (any more)", missing, named, b.route)
	}
	return total, nil
}

// list are the ids of the dead letters that there are now, newest first.
func (b bulk) list(ctx context.Context, s adminapi.Selection, limit int) (ids []string, err error) {
	for o := (adminapi.ListOptions{Size: partSize}); ; {
		page, err := b.client.DeadLetters(ctx, b.route, s, o)
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			if ids = append(ids, l.ID); len(ids) == limit {
				return ids, nil
			}
		}
		if o.Token = page.NextPageToken; o.Token == "" {
			slices.Sort(ids) // what came meanwhile moved some to the next page
			return slices.Compact(ids), nil
		}
	}
}

// partSize is how many fit into one request.
func (b bulk) partSize() int {
	if b.perSecond <= 0 {
		return partSize
	}
	return max(1, int(min(partSize, b.perSecond*partTime.Seconds())))
}

// rest waits until another part may begin, where they are spread.
func (b bulk) rest(ctx context.Context, begun time.Time, done int) error {
	if b.perSecond <= 0 || b.dry {
		return nil
	}
	return pause(ctx, time.Until(begun.Add(time.Duration(float64(done)/b.perSecond*float64(time.Second)))))
}

func failedOrder(r adminapi.OrderResult) error {
	if r.Failed == 0 {
		return nil
	}
	const most = 20
	problems := r.Problems[:min(most, len(r.Problems))]
	return fmt.Errorf("%d failed:\n%s", r.Failed, strings.Join(problems, "\n"))
}

func (p *program) printOrder(r adminapi.OrderResult, done string, dry bool, err error) error {
	if dry {
		done = "would be " + done
	}
	line := fmt.Sprintf("%d %s", r.Done, done)
	if r.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped: somebody else put them there", r.Skipped)
	}
	if err == nil || r.Done+r.Skipped > 0 {
		if _, printErr := fmt.Fprintln(p.out, line); printErr != nil {
			return printErr
		}
	}
	return errors.Join(err, failedOrder(r))
}
