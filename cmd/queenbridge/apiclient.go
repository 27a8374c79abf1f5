package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// apiFlags are those of every command that asks the admin API.
type apiFlags struct {
	endpoint string
	asJSON   bool
}

func (f *apiFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoint, "endpoint", "", "URL of the admin API (QUEENBRIDGE_ENDPOINT, else "+adminapi.DefaultEndpoint+")")
	fs.BoolVar(&f.asJSON, "json", false, "print JSON")
}

// client is the admin API, as flags and environment say. The token comes from
// the environment alone: others see a command line.
func (p *program) client(f apiFlags) (*adminapi.Client, error) {
	env := func(name string) string { v, _ := p.env(name); return v }
	c, err := adminapi.NewClient(adminapi.Config{
		Endpoint:  orDefault(f.endpoint, env("QUEENBRIDGE_ENDPOINT")),
		Token:     bridge.Secret(env("QUEENBRIDGE_TOKEN")),
		UserAgent: "queenbridge/" + versionText(),
	})
	if err != nil {
		return nil, &usageError{err: err, hint: "set QUEENBRIDGE_ENDPOINT or --endpoint"}
	}
	return c, nil
}

// apiHints say what to do about an answer of the admin API.
var apiHints = map[adminapi.Code]string{
	adminapi.CodeUnauthenticated: "set QUEENBRIDGE_TOKEN to one of admin.tokens or QUEENBRIDGE_ADMIN_TOKEN of the bridge",
	adminapi.CodeForbidden:       "use a token of another role",
	adminapi.CodeManagedByFile:   `change it in the bridge's configuration file; "queenbridge apply --migrate" takes it over`,
	adminapi.CodePrecondition:    "somebody else changed it: look at it again, and repeat",
	adminapi.CodeUnavailable:     "repeat it: nothing is done twice",
	adminapi.CodeNewerVersion:    "use the newer version of the bridge",
	adminapi.CodeDraining:        `"queenbridge status" says what still drains`,
}

// apiError adds what to do to an error of the client.
func apiError(err error) error {
	if err == nil {
		return nil
	}
	if answer, ok := errors.AsType[*adminapi.Error](err); ok {
		return &hintedError{err: err, hint: apiHints[answer.Code]}
	}
	if _, unreached := errors.AsType[*url.Error](err); unreached {
		return &hintedError{err: fmt.Errorf("ask the admin API: %w", err), hint: "is the bridge running? QUEENBRIDGE_ENDPOINT or --endpoint says where"}
	}
	return err
}

// apiCommand finishes a command that asks the admin API: its flags, and what to
// do about its errors.
func (p *program) apiCommand(c *cobra.Command, run func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error) *cobra.Command {
	var f apiFlags
	f.bind(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := p.client(f)
		if err != nil {
			return err
		}
		return apiError(run(cmd, client, f.asJSON, args))
	}
	return c
}
