package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/aws"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/ingress"
)

// lookup reads one environment variable.
type lookup func(string) (string, bool)

// start is what Lambda calls the init phase: the configuration is read, the
// queues are set up, and the function is ready for its first event.
func start(ctx context.Context, logs io.Writer, env lookup) (*function, error) {
	if api, _ := env("AWS_LAMBDA_RUNTIME_API"); api == "" {
		return nil, errors.New(`this program runs in AWS Lambda alone: run "queenbridge serve --only ingress" anywhere else`)
	}
	path, err := configPath(env)
	if err != nil {
		return nil, err
	}
	loaded, err := configfile.Load(configfile.Options{Path: path, References: references(ctx)})
	if err != nil {
		return nil, err
	}
	c := loaded.Config
	log := c.Log.Logger(logs, false) // CloudWatch reads JSON
	for _, w := range loaded.Warnings {
		log.WarnContext(ctx, "configuration", "problem", w.String())
	}
	if err := refuse(c); err != nil {
		return nil, err
	}
	client, err := connect(c.Queen, log)
	if err != nil {
		return nil, err
	}
	f, err := newFunction(ingress.Config{Sources: c.Sources, Settings: c.Ingress, Queen: client, Logger: log})
	if err != nil {
		return nil, err
	}
	setUp(ctx, c, client, log)
	log.InfoContext(ctx, "ready", "version", version, "sources", len(c.Sources), "queen", strings.Join(c.Queen.URLs, ", "))
	return f, nil
}

// references are the kinds of reference that AWS resolves, with the function's
// own role. They are read once, in the init phase.
func references(ctx context.Context) map[string]configfile.Lookup {
	found := aws.NewReferences(new(aws.Session))
	return map[string]configfile.Lookup{
		"aws-secretsmanager": func(name string) (string, error) { return found.SecretsManager(ctx, name) },
		"aws-ssm":            func(name string) (string, error) { return found.SSM(ctx, name) },
	}
}

// configPath is QUEENBRIDGE_CONFIG, else bridge.yaml beside the program: what
// was packed into one archive stays together.
func configPath(env lookup) (string, error) {
	if path, _ := env("QUEENBRIDGE_CONFIG"); path != "" {
		return path, nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the configuration beside the program: %w", err)
	}
	return filepath.Join(filepath.Dir(program), configfile.DefaultPath), nil
}

// connect makes the client of Queen. Nothing is sent yet.
func connect(c bridge.QueenConfig, log *slog.Logger) (*queen.Client, error) {
	return queen.New(queen.Config{
		URLs: c.URLs, Strategy: queen.Strategy(c.Strategy), Token: c.Token.Reveal(), CA: c.TLS.CA, Logger: log,
	})
}

// refuse names what a function cannot keep.
func refuse(c bridge.Config) error {
	var problems []error
	if c.Queen.Embedded != "" {
		problems = append(problems, errors.New("queen.embedded: a function has neither a disk nor a memory that lasts, "+
			"so no broker can be embedded in it: set queen.urls (QUEENBRIDGE_QUEEN_URLS)"))
	}
	if c.Ingress.Spool.Dir != "" {
		problems = append(problems, errors.New("ingress.spool.dir: a function has no disk that lasts, so there is no spool"))
	}
	for i, s := range c.Sources {
		if s.Spool {
			problems = append(problems, fmt.Errorf("sources[%d].spool: a function has no disk that lasts, so there is no spool", i))
		}
	}
	if len(c.Sources) == 0 {
		problems = append(problems, errors.New("sources: there is none, so every request would be answered 404"))
	}
	return errors.Join(problems...)
}

// setUpTime bounds the set-up of the queues: an event is waiting, and a start
// that is repeated counts against the timeout of the function.
const setUpTime = time.Second

// setUp sets the options of the queues that the sources feed, as "queenbridge
// serve" does. A Queen that is away is no reason not to start: the next process
// sets them up, and the events say for themselves whether they were stored.
func setUp(ctx context.Context, c bridge.Config, client *queen.Client, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	c.Routes = nil // their queues are the dispatcher's
	for _, q := range c.ManagedQueues() {
		err := client.Configure(ctx, queen.QueueOptions{
			Queue: q.Name, Namespace: q.Namespace, Task: q.Task, Lease: q.Lease, RetryLimit: q.RetryLimit,
			DedupWindow: q.DedupWindow, Retention: q.Retention, CompletedRetention: q.CompletedRetention,
		})
		if err == nil {
			continue
		}
		log.WarnContext(ctx, "queue not configured", "queue", q.Name, "error", err)
		if queen.Temporary(err) || ctx.Err() != nil {
			return
		}
	}
}
