package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

// sendOptions are the flags of `queenbridge send`.
type sendOptions struct {
	configFlag
	source, scheme, secret, publicURL string
	url, method, data, contentType    string
	headers, options                  []string
	timeout                           time.Duration
}

func (p *program) sendCommand() *cobra.Command {
	var o sendOptions
	c := &cobra.Command{
		Use:   "send",
		Short: "Sign and post a test webhook, as the provider would",
		Example: "  queenbridge send --source github --data '{\"zen\":\"Keep it logically awesome.\"}'\n" +
			"  queenbridge send --scheme stripe --secret whsec_test --url http://127.0.0.1:8080/in/stripe --data @event.json",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.send(cmd.Context(), o) },
	}
	f := c.Flags()
	o.bindConfig(f)
	f.StringVar(&o.source, "source", "", "a source of the configuration file: its scheme, secret and options are used")
	f.StringVar(&o.scheme, "scheme", "", "a scheme, instead of a source")
	f.StringVar(&o.secret, "secret", "", "the secret, with --scheme (QUEENBRIDGE_SEND_SECRET keeps it off the command line)")
	f.StringArrayVar(&o.options, "option", nil, "a scheme option, name=value, with --scheme")
	f.StringVar(&o.publicURL, "public-url", "", "the URL the provider knows, for schemes that sign it")
	f.StringVar(&o.url, "url", "", "where to post (default: the source on the ingress listener of the configuration)")
	f.StringVar(&o.method, "method", http.MethodPost, "HTTP method")
	f.StringVarP(&o.data, "data", "d", "", "the body: text, @file, or - for standard input (default: a small test event)")
	f.StringVar(&o.contentType, "content-type", "", "Content-Type (default: the scheme's)")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "one more header, \"Name: value\"")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	c.MarkFlagsMutuallyExclusive("source", "scheme")
	c.MarkFlagsOneRequired("source", "scheme")
	return c
}

func (p *program) send(ctx context.Context, o sendOptions) error {
	options, to, err := p.sender(o)
	if err != nil {
		return err
	}
	request, err := p.forge(o, options, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return p.post(ctx, request, to)
}

// sender says how to sign and where to post.
func (p *program) sender(o sendOptions) (signing.Options, string, error) {
	if o.source == "" {
		return p.senderOfScheme(o)
	}
	cfg, err := p.load(&settings{configFlag: o.configFlag})
	if err != nil {
		return signing.Options{}, "", err
	}
	var names []string
	for _, s := range cfg.Sources {
		if s.Name == o.source {
			return optionsOf(s, o), orDefault(o.url, ingressURL(cfg.Ingress.Addr, s.Name)), nil
		}
		names = append(names, s.Name)
	}
	return signing.Options{}, "", &usageError{
		err:  fmt.Errorf("the configuration has no source %q", o.source),
		hint: "its sources are: " + strings.Join(names, ", "),
	}
}

func optionsOf(s bridge.Source, o sendOptions) signing.Options {
	secrets := make([]string, len(s.Secrets))
	for i, secret := range s.Secrets {
		secrets[i] = secret.Reveal()
	}
	return signing.Options{Scheme: s.Scheme, Secrets: secrets, SchemeOptions: s.SchemeOptions, PublicURL: orDefault(o.publicURL, s.PublicURL)}
}

func (p *program) senderOfScheme(o sendOptions) (signing.Options, string, error) {
	secret := o.secret
	if secret == "" {
		secret, _ = p.env("QUEENBRIDGE_SEND_SECRET")
	}
	options := signing.Options{Scheme: o.scheme, PublicURL: o.publicURL, SchemeOptions: make(map[string]any)}
	if secret != "" {
		options.Secrets = []string{secret}
	}
	for _, option := range o.options {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			return options, "", &usageError{err: fmt.Errorf("--option must be name=value, got %q", option)}
		}
		options.SchemeOptions[name] = value
	}
	to := orDefault(o.url, ingressURL(":8080", o.scheme))
	if options.PublicURL == "" {
		options.PublicURL, _, _ = strings.Cut(to, "?")
	}
	return options, to, nil
}

// ingressURL is a source's URL on a listener of this machine.
func ingressURL(addr, source string) string {
	if strings.HasPrefix(addr, ":") || strings.HasPrefix(addr, "0.0.0.0:") || strings.HasPrefix(addr, "[::]:") {
		addr = "127.0.0.1" + addr[strings.LastIndex(addr, ":"):]
	}
	return "http://" + addr + "/in/" + source
}

// forge makes the request and signs it.
func (p *program) forge(o sendOptions, options signing.Options, to string) (*signing.Request, error) {
	target, err := url.Parse(to)
	if err != nil || target.Host == "" {
		return nil, &usageError{err: fmt.Errorf("--url must be a whole URL such as http://127.0.0.1:8080/in/github, got %q", to)}
	}
	body, err := p.body(o, options.Scheme)
	if err != nil {
		return nil, err
	}
	r := &signing.Request{
		Method: o.method, Path: target.EscapedPath(), RawQuery: target.RawQuery,
		Header: make(http.Header), Body: body, Now: time.Now(),
	}
	r.Header.Set("Content-Type", orDefault(o.contentType, contentTypeOf(o, options.Scheme)))
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, &usageError{err: fmt.Errorf("--header must be \"Name: value\", got %q", h)}
		}
		r.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if err := signing.Forge(options, r); err != nil {
		return nil, &usageError{err: fmt.Errorf("sign as %s: %w", options.Scheme, err), hint: `see "queenbridge send --help"`}
	}
	return r, nil
}

// twilioForm is a test event for schemes that sign a form.
const twilioForm = "MessageSid=SM00000000000000000000000000000001&MessageStatus=delivered&From=%2B14155550100&Body=hello"

func contentTypeOf(o sendOptions, scheme string) string {
	if scheme == "twilio" && o.data == "" {
		return "application/x-www-form-urlencoded"
	}
	return "application/json"
}

func (p *program) body(o sendOptions, scheme string) ([]byte, error) {
	switch {
	case o.data == "-":
		return io.ReadAll(p.in)
	case strings.HasPrefix(o.data, "@"):
		b, err := os.ReadFile(o.data[1:])
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("read --data: %w", err)}
		}
		return b, nil
	case o.data != "":
		return []byte(o.data), nil
	case scheme == "twilio":
		return []byte(twilioForm), nil
	}
	id := time.Now().UTC().Format("20060102150405.000000")
	return fmt.Appendf(nil, `{"id":"evt_%s","type":"queenbridge.test","message":"sent by queenbridge send"}`, id), nil
}

// post sends the request and says what was answered.
func (p *program) post(ctx context.Context, r *signing.Request, to string) error {
	base, _, _ := strings.Cut(to, "?")
	if r.RawQuery != "" {
		base += "?" + r.RawQuery
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, base, bytes.NewReader(r.Body))
	if err != nil {
		return &usageError{err: err}
	}
	req.Header = r.Header
	begun := time.Now()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return &hintedError{err: fmt.Errorf("post to %s: %w", to, errors.Unwrap(err)), hint: `is "queenbridge serve" or "queenbridge dev" running there?`}
	}
	defer func() { _ = resp.Body.Close() }()
	return p.report(resp, to, time.Since(begun))
}

func (p *program) report(resp *http.Response, to string, took time.Duration) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	_, _ = fmt.Fprintf(p.out, "%s %s → %s in %s\n", resp.Request.Method, to, resp.Status, took.Round(time.Millisecond))
	if resp.Header.Get("Queen-Duplicate") != "" {
		_, _ = fmt.Fprintln(p.out, "duplicate: an event with this id is stored already")
	}
	if len(body) > 0 {
		_, _ = fmt.Fprintln(p.out, strings.TrimRight(string(body), "\n"))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &hintedError{err: fmt.Errorf("the bridge answered %s", resp.Status), hint: hintFor(resp.StatusCode)}
	}
	return nil
}

func hintFor(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "the signature was refused: is the secret one of the source's? The reason is in the bridge's log, under the id in the answer"
	case http.StatusNotFound:
		return "no source of that name is configured there"
	case http.StatusServiceUnavailable:
		return "the bridge cannot store events now: its /readyz says why"
	}
	return ""
}

func orDefault(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}
