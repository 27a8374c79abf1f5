package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

// schemeView is one scheme, as the admin API shows it, too.
type schemeView adminapi.Scheme

// answerView is what an accepted request is answered.
type answerView adminapi.Answer

func (p *program) schemesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "schemes [NAME]",
		Short: "List the providers and verifiers: what proves a request, ids, limits",
		Long: "schemes lists every preset and every generic verifier: what proves a request, the transaction id, how long\n" +
			"the provider may resend (horizon), the body cap and the handshakes answered. † marks presets that no vendor\n" +
			"document or SDK confirms. With a name it says everything about one, and what to paste where.",
		Example: "  queenbridge schemes\n  queenbridge schemes stripe\n  queenbridge schemes --json | jq -r '.[].name'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.scheme(args[0], asJSON)
			}
			return p.schemes(asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) schemes(asJSON bool) error {
	all := signing.Presets()
	views := make([]schemeView, len(all))
	for i, preset := range all {
		views[i] = viewOf(preset)
	}
	if asJSON {
		return printJSON(p.out, views)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tHORIZON\tCAP\tHANDSHAKES\tTRANSACTION ID\tPROOF")
	unverified := 0
	for _, v := range views {
		if !v.Verified {
			unverified++
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.marked(), orDefault(v.Horizon, "-"), v.MaxBody,
			orDefault(strings.Join(v.Handshakes, ", "), "-"), shortened(v.TransactionID), v.Proof)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "\n%d schemes; † %d of them unverified: no vendor document or SDK confirms the row.\n", len(views), unverified)
	return err
}

// shortened keeps the table narrow; the whole text is a scheme's own page's.
func shortened(text string) string {
	const most = 44
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

func (p *program) scheme(name string, asJSON bool) error {
	preset, ok := signing.Lookup(name)
	if !ok {
		return unknownScheme(name)
	}
	v := viewOf(preset)
	if asJSON {
		return printJSON(p.out, v)
	}
	return printFields(p.out, v.marked(), v.fields(preset.OptionNames()))
}

// unknownScheme is wrong usage, with the nearest name there is.
func unknownScheme(name string) error {
	hint := `"queenbridge schemes" lists them all`
	names := make([]string, 0, 128)
	for _, preset := range signing.Presets() {
		names = append(names, preset.Name)
	}
	if near := bridge.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return &usageError{err: fmt.Errorf("no scheme %q", name), hint: hint}
}

func viewOf(p signing.Preset) schemeView {
	status := p.Answer.Status
	if status == 0 {
		status = 200
	}
	v := schemeView{
		Name: p.Name, Generic: p.Generic, Verified: !p.Unverified, Class: string(p.Class),
		Proof: p.ProvenBy(), Secrets: p.SecretForm(), NeedsURL: p.NeedsURL,
		TransactionID: p.TransactionID, EventType: p.EventType, Split: p.Split,
		Answer:  adminapi.Answer{Status: status, Body: p.Answer.Body, ContentType: p.Answer.ContentType},
		Methods: append([]string{"POST"}, p.Methods...), Handshakes: append([]string{}, p.Handshakes...),
		MaxBody: bridge.Size(p.MaxBody).String(), Horizon: span(p.Horizon), Deadline: span(p.Deadline), Docs: p.Docs,
	}
	if v.TransactionID == "" {
		v.TransactionID = "sha(body)"
	}
	return v
}

// marked is the name, with † where the preset is not confirmed.
func (v schemeView) marked() string {
	if v.Verified {
		return v.Name
	}
	return v.Name + " †"
}

func (v schemeView) fields(options []string) []field {
	state := "verified"
	switch {
	case v.Generic:
		state = "a generic verifier: scheme_options describe it"
	case !v.Verified:
		state = "unverified: no vendor document or SDK confirms this row"
	}
	url := ""
	if v.NeedsURL {
		url = "required: the URL is signed, or part of an answer"
	}
	return []field{
		{"state", state}, {"class", classWords[v.Class]}, {"proof", v.Proof}, {"secrets", orDefault(v.Secrets, "none")}, {"public_url", url},
		{"scheme_options", strings.Join(options, ", ")},
		{"transaction id", v.TransactionID}, {"event type", v.EventType}, {"split", v.Split},
		{"answer", answerView(v.Answer).words()}, {"methods", strings.Join(v.Methods, ", ")}, {"handshakes", strings.Join(v.Handshakes, ", ")},
		{"body cap", v.MaxBody}, {"horizon", v.Horizon}, {"deadline", v.Deadline}, {"docs", v.Docs},
	}
}

// classWords say what a class of proof is worth.
var classWords = map[string]string{
	string(signing.Verified):      "verified: the body is signed",
	string(signing.Authenticated): "authenticated: a credential is shown; the body is not covered",
	string(signing.Unproven):      "none: nothing is proven",
}

func (a answerView) words() string {
	words := fmt.Sprintf("%d", a.Status)
	if a.Body != "" {
		words += " " + a.Body
	}
	if a.ContentType != "" {
		words += " (" + a.ContentType + ")"
	}
	return words
}
