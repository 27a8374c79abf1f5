package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/aws"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/spf13/cobra"
)

// streams are the standard streams of one run.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// lookup reads one environment variable.
type lookup func(string) (string, bool)

// program is one run: what every command needs.
type program struct {
	streams
	env lookup
	aws *aws.Session
}

// usageError is wrong usage or configuration: exit code 2. Hint is what to
// type next.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// hintedError is any other failure, with what to do next: exit code 1.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

func run(ctx context.Context, args []string, s streams, env lookup) int {
	p := &program{streams: s, env: env, aws: new(aws.Session)}
	root := p.root()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	return p.exit(root.ExecuteContext(ctx))
}

// exit prints an error with what to type, and returns the exit code.
func (p *program) exit(err error) int {
	if err == nil {
		return 0
	}
	if _, listed := errors.AsType[*configfile.Error](err); listed { // each line begins with the file's name
		_, _ = fmt.Fprintln(p.err, err.Error())
	} else {
		_, _ = fmt.Fprintln(p.err, "queenbridge: "+err.Error())
	}
	code, hint := 1, ""
	if usage, ok := errors.AsType[*usageError](err); ok {
		code, hint = 2, usage.hint
	} else if hinted, ok := errors.AsType[*hintedError](err); ok {
		hint = hinted.hint
	}
	if hint != "" {
		_, _ = fmt.Fprintln(p.err, "hint: "+hint)
	}
	return code
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "queenbridge",
		Short: "Signed webhooks into Queen MQ, events from Queen to HTTP functions",
		Long: "queenbridge receives signed webhooks into Queen MQ and calls HTTP functions with what its queues hold:\n" +
			"verified, stored before the answer, delivered at least once, retried by durable timers.",
		Example:       "  queenbridge dev\n  queenbridge serve --config bridge.yaml",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err: err, hint: fmt.Sprintf("run %q", cmd.CommandPath()+" --help")}
	})
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(p.devCommand(), p.serveCommand(), p.queenCommand(), p.sendCommand(), p.signCommand(), p.verifyCommand(),
		p.schemesCommand(), p.sourcesCommand(), p.kindCommand(bridge.KindTarget),
		p.kindCommand(bridge.KindRoute), p.kindCommand(bridge.KindQueue), p.applyCommand(""), p.diffCommand(""), p.exportCommand(),
		p.statusCommand(), p.rulesCommand(), p.deliveriesCommand(), p.deadLettersCommand(), p.retriesCommand(),
		p.spoolCommand(),
		p.configCommand(), p.versionCommand())
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	root.Args = unknownCommand
	return root
}

// unknownCommand refuses words that are no command, with the nearest one.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := `run "queenbridge --help"`
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", "queenbridge "+near[0])
	}
	return &usageError{err: fmt.Errorf("unknown command %q", args[0]), hint: hint}
}

// wrapArgs turns a command's complaint about its arguments, or about flags that
// do not go together, into wrong usage.
func wrapArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			err = cmd.ValidateFlagGroups() // cobra asks later, and in words of its own
		}
		if err != nil {
			return &usageError{err: err, hint: fmt.Sprintf("run %q", cmd.CommandPath()+" --help")}
		}
		return nil
	}
}
