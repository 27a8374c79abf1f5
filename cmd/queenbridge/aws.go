package main

import (
	"context"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/aws"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget"
)

// loadConfig loads the configuration of a command line. References to AWS are
// looked up anew by each load, within ctx.
func loadConfig(ctx context.Context, session *aws.Session, s *settings) (configfile.Result, error) {
	return configfile.Load(configfile.Options{Path: s.config, Flags: s.apply, References: awsReferences(ctx, session)})
}

// awsReferences are the kinds of reference that AWS resolves (config.md).
func awsReferences(ctx context.Context, session *aws.Session) map[string]configfile.Lookup {
	found := aws.NewReferences(session)
	return map[string]configfile.Lookup{
		"aws-secretsmanager": func(name string) (string, error) { return found.SecretsManager(ctx, name) },
		"aws-ssm":            func(name string) (string, error) { return found.SSM(ctx, name) },
	}
}

// newLambdaSender makes the Sender of a Lambda target. Its addresses pass the
// same guard as those of HTTP targets: an endpoint is a URL like any other.
func (b *bridgeProcess) newLambdaSender(ctx context.Context, t bridge.Target) (dispatch.Sender, error) {
	dial, err := httptarget.GuardedDial(t.Network)
	if err != nil {
		return nil, err
	}
	return lambdatarget.New(ctx, t, lambdatarget.Options{Config: b.aws.Config, Dial: dial, Logger: b.log})
}
