package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
	"github.com/queenbridge/queenbridge/dispatch"
)

func (p *program) replayCommand() *cobra.Command {
	var since string
	c := p.apiCommand(&cobra.Command{
		Use:   "replay NAME --since TIME",
		Short: "Deliver again what was pushed to a route's queue since a time",
		Long: "replay lets a paused route begin again at a time: what its queue still holds from then on is delivered once it is\n" +
			"resumed, in order and to this route alone. Each event keeps the webhook-id it had, so a function that knows what it\n" +
			"has done does it once; one that does not does it twice. Retries that wait, and dead letters, stay as they are.",
		Example: "  queenbridge routes pause pushes-to-ci\n  queenbridge routes replay pushes-to-ci --since 2h\n  queenbridge routes resume pushes-to-ci",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		at, err := replayTime(since, time.Now())
		if err != nil {
			return err
		}
		r, err := client.ReplayRoute(cmd.Context(), args[0], at)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.out, r)
		}
		_, err = fmt.Fprintf(p.out, "replayed %s: %d events are pending in %d partitions\n", args[0], r.Pending, r.Partitions)
		return err
	})
	c.Flags().StringVar(&since, "since", "", "a time such as 2026-01-02T15:04:05Z, a duration before now such as 2h, or beginning")
	return c
}

// replayTime reads --since; zero is the beginning.
func replayTime(text string, now time.Time) (time.Time, error) {
	switch text {
	case "":
		return time.Time{}, &usageError{err: errors.New("since when: --since takes a time, a duration before now such as 2h, or beginning")}
	case adminapi.ReplayBeginning:
		return time.Time{}, nil
	}
	return sinceTime(text, now)
}

// Replay moves a route that the catalog has and that is used.
func (l letters) Replay(ctx context.Context, name string, since time.Time) (adminapi.ReplayResult, error) {
	l.rules.Sync(ctx)
	catalog := l.rules.Catalog()
	if _, known := catalog.Entry(bridge.Resource{Kind: bridge.KindRoute, Name: name}); !known {
		return adminapi.ReplayResult{}, rules.ErrNotFound
	}
	r, ok := routeOf(catalog.Config, name)
	if !ok {
		return adminapi.ReplayResult{}, apiKind(fmt.Errorf("%w: it is not in use: mend it first", dispatch.ErrReplayRefused))
	}
	result, err := l.operator.Replay(ctx, r, since)
	if err != nil {
		return adminapi.ReplayResult{}, apiKind(err)
	}
	return adminapi.ReplayResult{Since: since, Partitions: result.Partitions, Pending: result.Pending}, nil
}

func routeOf(c bridge.Config, name string) (bridge.Route, bool) {
	for _, r := range c.Routes {
		if r.Name == name {
			return r, true
		}
	}
	return bridge.Route{}, false
}
