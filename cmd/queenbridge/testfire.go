package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/spf13/cobra"
)

// testFlags are the event of a test-fire.
type testFlags struct {
	event   adminapi.TestEvent
	headers []string
	body    string
	file    string
}

func (p *program) testFireCommand() *cobra.Command {
	var f testFlags
	c := p.apiCommand(&cobra.Command{
		Use:   "test NAME",
		Short: "Call a route's target with a test event, as a first delivery would",
		Long: "test calls the function of a route once, with the route's filter, transform, credentials and guards, and shows what\n" +
			"it answered. Nothing is stored. Its exit code is 1 where the event was not delivered.",
		Example: "  queenbridge routes test pushes-to-ci --type push --body '{\"ref\":\"refs/heads/main\"}'",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, args []string) error {
		event, err := p.testEvent(f)
		if err != nil {
			return &usageError{err: err}
		}
		r, err := client.TestFire(cmd.Context(), args[0], event)
		if err != nil {
			return err
		}
		return p.printTest(r, asJSON)
	})
	c.Flags().StringVar(&f.event.Type, "type", "", "the event's type")
	c.Flags().StringVar(&f.event.Source, "source", "", "the name of the source it came from")
	c.Flags().StringVar(&f.event.ContentType, "content-type", "", "of the body (application/json)")
	c.Flags().StringArrayVarP(&f.headers, "header", "H", nil, "a header, such as 'X-GitHub-Event: push'; may be repeated")
	c.Flags().StringVar(&f.body, "body", "", "the body ({})")
	c.Flags().StringVarP(&f.file, "file", "f", "", "a file with the body; - is standard input")
	return c
}

func (p *program) testEvent(f testFlags) (adminapi.TestEvent, error) {
	e := f.event
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return e, fmt.Errorf("--header must be 'Name: value', got %q", line)
		}
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	body, err := p.testBody(f)
	if err != nil || body == "" {
		return e, err
	}
	e.Body, err = json.Marshal(body) // as text: every byte stays
	return e, err
}

func (p *program) testBody(f testFlags) (string, error) {
	if f.file == "" {
		return f.body, nil
	}
	if f.body != "" {
		return "", errors.New("--body and --file exclude each other")
	}
	in := p.in
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return "", fmt.Errorf("read the body: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	const most = 192 << 10 // a request of the admin API takes 256 KiB
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the body: %w", err)
	case len(data) > most:
		return "", fmt.Errorf("read the body: more than %d KiB", most>>10)
	case !utf8.Valid(data):
		return "", errors.New("read the body: it must be UTF-8")
	}
	return string(data), nil
}

func (p *program) printTest(r adminapi.TestResult, asJSON bool) error {
	failed := error(nil)
	if !r.Filtered && r.Outcome != "delivered" {
		failed = fmt.Errorf("not delivered: %s", strings.TrimPrefix(r.Class+": "+r.Error, ": "))
	}
	if asJSON {
		return errors.Join(printJSON(p.out, r), failed)
	}
	title := r.Outcome
	if r.Filtered {
		title = "filtered: the route does not want this event"
	}
	body := r.Body
	if r.Truncated {
		body += " …"
	}
	return errors.Join(printFields(p.out, title, []field{{"status", zeroEmpty(r.Status)}, {"elapsed", r.Elapsed}, {"again in", r.Delay}, {"answer", body}}), failed)
}
