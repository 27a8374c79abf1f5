package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

// signedView is a signed request. The JSON names are public.
type signedView struct {
	Method  string      `json:"method"`
	Query   string      `json:"query"`
	Headers http.Header `json:"headers"`
	Body    []byte      `json:"body_base64"`
}

// signOptions are the flags of sign and verify.
type signOptions struct {
	proofFlags
	requestFlags
	json, fetch bool
}

func (p *program) signCommand() *cobra.Command {
	var o signOptions
	c := &cobra.Command{
		Use:   "sign",
		Short: "Print the headers a provider would send for a body",
		Long: "sign signs a body offline and prints the headers, one a line, as the provider would send them. Where the scheme\n" +
			"signs by changing the query or the body, these are printed too.",
		Example: "  queenbridge sign --scheme github --secret s3cret --data @event.json\n" +
			"  queenbridge sign --source stripe --data @event.json --at 2026-01-31T12:00:00Z",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.sign(cmd.Context(), o) },
	}
	o.proofFlags.bind(c)
	o.bindKey(c)
	o.requestFlags.bind(c, " (default: an event the scheme can sign)")
	o.bindOffline(c, "when it is signed")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, the body too")
	return c
}

func (p *program) sign(ctx context.Context, o signOptions) error {
	how, err := p.proof(ctx, o.proofFlags)
	if err != nil {
		return err
	}
	r, err := p.offline(o, how)
	if err != nil {
		return err
	}
	fillSample(r, how.Scheme, o.data != "", "")
	before := *r
	if err := signing.Forge(how.Options, r); err != nil {
		return &usageError{err: fmt.Errorf("sign as %s: %w", how.Scheme, err), hint: forgeHint(how.Options)}
	}
	if o.json {
		return printJSON(p.out, signedView{r.Method, r.RawQuery, r.Header, r.Body})
	}
	return p.printSigned(r, &before, o.data != "")
}

// offline is the request of the flags, with its body.
func (p *program) offline(o signOptions, how proof) (*signing.Request, error) {
	name := how.Scheme
	if how.source != nil {
		name = how.source.Name
	}
	r, err := o.request("/in/" + name)
	if err != nil {
		return nil, err
	}
	r.Body, err = p.body(o.data)
	return r, err
}

func (p *program) printSigned(r, before *signing.Request, given bool) error {
	var b strings.Builder
	for _, name := range sortedNames(r.Header) {
		for _, value := range r.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if r.RawQuery != before.RawQuery {
		fmt.Fprintf(&b, "\nquery: %s\n", r.RawQuery)
	}
	if !given || string(r.Body) != string(before.Body) {
		fmt.Fprintf(&b, "\n%s\n", r.Body)
	}
	_, err := p.out.Write([]byte(b.String()))
	return err
}

func (p *program) verifyCommand() *cobra.Command {
	var o signOptions
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check a saved request, and explain what differs when it does not fit",
		Long: "verify judges a saved request offline. When it is not proven it tries what commonly goes wrong (forms of the\n" +
			"secret, bodies changed on the way, URLs behind proxies, clocks) and names what fits. It prints no secret and\n" +
			"no computed signature. The exit code is 0 when the request is proven, else 1.",
		Example: "  queenbridge verify --source github --data @body.json -H 'X-Hub-Signature-256: sha256=…'\n" +
			"  queenbridge verify --scheme stripe --secret whsec_… --data @body.json -H 'Stripe-Signature: t=…,v1=…' --at 2026-01-31T12:00:00Z",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.verify(cmd.Context(), o) },
	}
	o.proofFlags.bind(c)
	o.requestFlags.bind(c, ", byte for byte")
	o.bindOffline(c, "when it was received")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().BoolVar(&o.fetch, "fetch", false, "fetch the keys that the provider publishes")
	return c
}

func (p *program) verify(ctx context.Context, o signOptions) error {
	how, err := p.proof(ctx, o.proofFlags)
	if err != nil {
		return err
	}
	r, err := p.offline(o, how)
	if err != nil {
		return err
	}
	if o.fetch {
		how.Fetcher = signing.NewFetcher(signing.FetcherConfig{})
	}
	v, err := explain(how.Options, r)
	if err != nil {
		return &usageError{err: err, hint: fmt.Sprintf("see %q", "queenbridge schemes "+how.Scheme)}
	}
	return p.printVerdict(v, len(how.Secrets), o.json)
}

func (p *program) printVerdict(v verdict, secrets int, asJSON bool) error {
	if asJSON {
		if err := printJSON(p.out, v); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(p.out, v.words(secrets)); err != nil {
		return err
	}
	if !v.Proven {
		return errors.New("the request is not proven")
	}
	return nil
}

// words are the verdict for people.
func (v verdict) words(secrets int) string {
	switch {
	case v.Handshake != 0:
		return fmt.Sprintf("handshake: it is answered %d, nothing is stored\n", v.Handshake)
	case v.Proven:
		words := "proven: " + cmp.Or(classWords[v.Class], v.Class)
		if v.Secret > 0 {
			words += fmt.Sprintf("; by secret %d of %d", v.Secret, secrets)
		}
		if v.Skew != "0s" {
			words += "; signed " + v.Skew + " before it was received"
		}
		return words + "\n"
	}
	lines := []string{fmt.Sprintf("not proven: %s: %s", v.Reason, v.Detail)}
	for _, c := range v.Causes {
		lines = append(lines, fmt.Sprintf("  %s: %s", c.Part, c.Text))
	}
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}
