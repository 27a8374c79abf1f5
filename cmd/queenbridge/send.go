package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

// sendOptions are the flags of `queenbridge send`.
type sendOptions struct {
	proofFlags
	requestFlags
	url     string
	timeout time.Duration
}

func (p *program) sendCommand() *cobra.Command {
	var o sendOptions
	c := &cobra.Command{
		Use:   "send",
		Short: "Sign and post a test webhook, as the provider would",
		Example: "  queenbridge send --source github --data '{\"zen\":\"Keep it logically awesome.\"}'\n" +
			"  queenbridge send --scheme stripe --secret whsec_test --url http://127.0.0.1:8080/in/stripe --data @event.json\n" +
			"  queenbridge send --source discord --key private.pem",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.send(cmd.Context(), o) },
	}
	o.proofFlags.bind(c)
	o.bindKey(c)
	o.requestFlags.bind(c, " (default: an event the scheme can sign)")
	f := c.Flags()
	f.StringVar(&o.url, "url", "", "where to post (default: the source on the ingress listener of the configuration)")
	f.StringVar(&o.contentType, "content-type", "", "Content-Type (default: the scheme's)")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	return c
}

func (p *program) send(ctx context.Context, o sendOptions) error {
	how, err := p.proof(ctx, o.proofFlags)
	if err != nil {
		return err
	}
	to := cmp.Or(o.url, how.listener())
	target, err := url.Parse(to)
	if err != nil || target.Host == "" {
		return &usageError{err: fmt.Errorf("--url must be a whole URL such as http://127.0.0.1:8080/in/github, got %q", to)}
	}
	if how.PublicURL == "" {
		how.PublicURL, _, _ = strings.Cut(to, "?")
	}
	request, err := p.forge(o, how.Options, target)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return p.post(ctx, request, to)
}

// listener is where the source is served on this machine.
func (h proof) listener() string {
	if h.source == nil {
		return ingressURL(bridge.IngressConfig{Addr: ":8080"}, h.Scheme)
	}
	return ingressURL(h.cfg.Ingress, h.source.Name)
}

// forge makes the request and signs it.
func (p *program) forge(o sendOptions, options signing.Options, target *url.URL) (*signing.Request, error) {
	r, err := o.request(target.EscapedPath())
	if err != nil {
		return nil, err
	}
	r.RawQuery = target.RawQuery
	if r.Body, err = p.body(o.data); err != nil {
		return nil, err
	}
	fillSample(r, options.Scheme, o.data != "", o.contentType)
	if err := signing.Forge(options, r); err != nil {
		return nil, &usageError{err: fmt.Errorf("sign as %s: %w", options.Scheme, err), hint: forgeHint(options)}
	}
	return r, nil
}

// forgeHint says what signing may lack.
func forgeHint(o signing.Options) string {
	preset, _ := signing.Lookup(o.Scheme)
	switch {
	case strings.HasPrefix(preset.SecretForm(), "the public key") && o.ForgeKey == nil:
		return "this scheme signs with a private key: --key FILE"
	case preset.SecretForm() == "" && o.ForgeKey == nil && preset.Class == signing.Verified:
		return "this scheme signs with a private key: --key FILE, its public key pinned in the option keys"
	}
	return fmt.Sprintf("see %q", "queenbridge schemes "+o.Scheme)
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
