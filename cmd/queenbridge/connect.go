package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// connection is the process's link to Queen, and what is wrong with it.
type connection struct {
	client *queen.Client
	where  string // for people: the URLs, or the embedded broker
	log    *slog.Logger
	wrong  atomic.Pointer[string]
}

func newConnection(client *queen.Client, where string, log *slog.Logger) *connection {
	c := &connection{client: client, where: where, log: log}
	c.set("not connected yet to Queen at " + where)
	return c
}

func (c *connection) set(wrong string) { c.wrong.Store(&wrong) }

// establish waits for a Queen that can do what the bridge needs. An
// unreachable one is said once and tried again; one without timers is an
// error that names its version.
func (c *connection) establish(ctx context.Context) (queen.Health, error) {
	said := false
	for wait := patience(); ; {
		health, err := c.client.Probe(ctx)
		if err == nil {
			c.log.Info("queen connected", "queen", c.where, "engine", health.Engine, "version", health.Version)
			c.set("")
			return health, nil
		}
		if unsupported, ok := errors.AsType[*queen.UnsupportedError](err); ok {
			return health, unsupported
		}
		c.set("cannot reach Queen at " + c.where + ": " + err.Error())
		if !said && ctx.Err() == nil {
			said = true
			c.log.Error("cannot reach queen; trying again until it answers", "queen", c.where, "error", err)
		}
		if err := pause(ctx, wait.NextBackOff()); err != nil {
			return queen.Health{}, err
		}
	}
}

// configure sets the options of the queues the bridge manages. What fails for
// now is tried again; what Queen refuses is logged and left, for a consumer
// does not need it.
func (c *connection) configure(ctx context.Context, queues []bridge.ManagedQueue) error {
	for _, q := range queues {
		for wait := patience(); ; {
			err := c.client.Configure(ctx, queueOptions(q))
			if err == nil {
				break
			}
			if !queen.Temporary(err) {
				c.log.Warn("queue not configured", "queue", q.Name, "error", err)
				break
			}
			if err := pause(ctx, wait.NextBackOff()); err != nil {
				return err
			}
		}
	}
	return nil
}

func queueOptions(q bridge.ManagedQueue) queen.QueueOptions {
	return queen.QueueOptions{
		Queue: q.Name, Namespace: q.Namespace, Task: q.Task, Lease: q.Lease, RetryLimit: q.RetryLimit,
		DedupWindow: q.DedupWindow, Retention: q.Retention, CompletedRetention: q.CompletedRetention,
	}
}

// ready asks Queen itself: an empty pop may mean that its database is away.
func (c *connection) ready(ctx context.Context) string {
	if wrong := *c.wrong.Load(); wrong != "" {
		return wrong
	}
	health, err := c.client.Health(ctx)
	switch {
	case err != nil:
		return "cannot reach Queen at " + c.where + ": " + err.Error()
	case !health.Healthy:
		return "Queen at " + c.where + " says it is not healthy: " + health.Detail
	}
	return ""
}

// patience yields waits of 250 ms to 10 s, without end.
func patience() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
