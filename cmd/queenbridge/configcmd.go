package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/spf13/cobra"
)

func (p *program) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration, print it with every default, or print the schema of all",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		p.configSub("check", "List everything that is wrong, with file and line", p.check),
		p.configSub("print", "Print the effective value of every field; secrets as ***", p.print),
		p.schemaCommand(),
	)
	return c
}

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files, for editors",
		Long: "schema prints a JSON Schema (2020-12) of all fields, with what each is for. Editors check and complete a file with it:\n" +
			"its first line then is  # yaml-language-server: $schema=queenbridge.schema.json",
		Example: "  queenbridge config schema > queenbridge.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printJSON(p.out, plainTexts(bridge.ConfigSchema()))
		},
	}
}

// plainTexts takes Markdown's escapes out of descriptions: those of a JSON
// Schema are plain text.
func plainTexts(node any) any {
	switch n := node.(type) {
	case []any:
		for i := range n {
			n[i] = plainTexts(n[i])
		}
	case map[string]any:
		for name, value := range n {
			if text, ok := value.(string); ok && name == "description" {
				value = strings.NewReplacer(`\<`, "<", `\*`, "*").Replace(text)
			}
			n[name] = plainTexts(value)
		}
	}
	return node
}

func (p *program) configSub(name, short string, do func(configfile.Result) error) *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:     name + " [FILE]",
		Short:   short,
		Example: "  queenbridge config " + name + " bridge.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				s.config = args[0]
			}
			r, err := p.result(cmd.Context(), &s)
			if err != nil {
				return err
			}
			return do(r)
		},
	}
	s.bindConfig(c.Flags())
	return c
}

func (p *program) check(r configfile.Result) error {
	c := r.Config
	_, err := fmt.Fprintf(p.out, "%s: ok: %s, %s, %s, %s\n", r.Path,
		count(len(c.Sources), "source"), count(len(c.Targets), "target"), count(len(c.Routes), "route"), count(len(c.Queues), "queue"))
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p *program) print(r configfile.Result) error {
	_, err := p.out.Write(r.Print())
	return err
}

// load is the configuration of a command that is not about it: what is only
// warned of is told by config check and serve.
func (p *program) load(ctx context.Context, s *settings) (bridge.Config, error) {
	r, err := p.read(ctx, s)
	return r.Config, err
}

// configHint is what to do about a configuration that cannot be used.
func configHint(err error) string {
	if problems, ok := errors.AsType[*configfile.Error](err); ok {
		return fmt.Sprintf("%s to mend; \"queenbridge config check\" looks again", count(len(problems.Problems), "problem"))
	}
	return `name the file with --config, or run "queenbridge dev" to try without one`
}

// read loads a configuration.
func (p *program) read(ctx context.Context, s *settings) (configfile.Result, error) {
	r, err := loadConfig(ctx, p.aws, s)
	if err != nil {
		return r, &usageError{err: err, hint: configHint(err)}
	}
	return r, nil
}

// result loads a configuration and prints its warnings.
func (p *program) result(ctx context.Context, s *settings) (configfile.Result, error) {
	r, err := p.read(ctx, s)
	for _, w := range r.Warnings {
		_, _ = fmt.Fprintln(p.err, "warning: "+strings.TrimSpace(w.String()))
	}
	return r, err
}
