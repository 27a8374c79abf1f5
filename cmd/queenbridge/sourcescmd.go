package main

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

// sourceView is what to paste where for one source. The JSON names are public.
type sourceView struct {
	Name        string       `json:"name"`
	Scheme      string       `json:"scheme"`
	Docs        string       `json:"docs"`
	URL         string       `json:"url"`
	Local       string       `json:"listener_url"`
	Proof       string       `json:"proof"`
	Secrets     []secretView `json:"secrets"`
	SecretForm  string       `json:"secret_form"`
	ContentType string       `json:"content_type"`
	Handshakes  []noteView   `json:"handshakes"`
	Methods     []string     `json:"methods"`
	Queue       string       `json:"queue"`
	DedupWindow string       `json:"dedup_window"`
	Retention   string       `json:"retention"`
	Horizon     string       `json:"horizon"`
	Answer      answerView   `json:"answer"`
	Notes       []string     `json:"notes"`
}

// secretView is where a secret comes from: its reference, never its text.
type secretView struct {
	From string `json:"from"`
}

// noteView is a handshake and what it means.
type noteView struct {
	Name string `json:"name"`
	Note string `json:"note"`
}

func (p *program) sourcesCommand() *cobra.Command {
	c := p.kindCommand(bridge.KindSource)
	c.Short = "Show what to paste where at a provider; read and change sources over the admin API"
	c.AddCommand(p.sourcesShowCommand())
	return c
}

func (p *program) sourcesShowCommand() *cobra.Command {
	var s settings
	var asJSON bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Say what to paste where at the provider of a source",
		Long: "show reads the configuration and says what the provider wants to know: the URL, where the secret comes from\n" +
			"(never its text), the content type to choose, what is asked while you save; and what becomes of the events.",
		Example: "  queenbridge sources show github\n  queenbridge sources show --config bridge.yaml stripe --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := p.result(cmd.Context(), &s)
			if err != nil {
				return err
			}
			i, err := sourceIndex(r.Config, args[0])
			if err != nil {
				return err
			}
			return p.sourceShow(r, i, asJSON)
		},
	}
	s.bindConfig(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// sourceIndex finds a source, or says which there are.
func sourceIndex(c bridge.Config, name string) (int, error) {
	i := slices.IndexFunc(c.Sources, func(s bridge.Source) bool { return s.Name == name })
	if i >= 0 {
		return i, nil
	}
	names := make([]string, len(c.Sources))
	for i, s := range c.Sources {
		names[i] = s.Name
	}
	return -1, &usageError{
		err:  fmt.Errorf("the configuration has no source %q", name),
		hint: "its sources are: " + cmp.Or(strings.Join(names, ", "), "none"),
	}
}

func (p *program) sourceShow(r configfile.Result, i int, asJSON bool) error {
	v := sourceViewOf(r, i)
	if asJSON {
		return printJSON(p.out, v)
	}
	return printFields(p.out, v.Name+" ("+v.Scheme+")", v.fields())
}

func sourceViewOf(r configfile.Result, i int) sourceView {
	s := r.Config.Sources[i]
	preset, _ := signing.Lookup(s.Scheme) // checked with the configuration
	v := sourceView{
		Name: s.Name, Scheme: s.Scheme, Docs: preset.Docs, URL: publicURL(r.Config.Ingress, s),
		Local: ingressURL(r.Config.Ingress, s.Name), Proof: preset.ProvenBy(), SecretForm: preset.SecretForm(),
		ContentType: contentAdvice(preset), Secrets: []secretView{}, Handshakes: []noteView{}, Methods: viewOf(preset).Methods,
		Queue: s.Queue, Horizon: span(preset.Horizon), Answer: answerOf(s, preset), Notes: sourceNotes(s, preset),
	}
	for j := range s.Secrets {
		from := cmp.Or(r.Written(fmt.Sprintf("sources[%d].secrets[%d]", i, j)), "written in the file")
		v.Secrets = append(v.Secrets, secretView{from})
	}
	for _, name := range preset.Handshakes {
		v.Handshakes = append(v.Handshakes, noteView{name, handshakeNotes[name]})
	}
	v.queue(r.Config)
	return v
}

func (v *sourceView) queue(c bridge.Config) {
	for _, q := range c.ManagedQueues() {
		if q.Name == v.Queue {
			v.DedupWindow, v.Retention = span(q.DedupWindow), span(q.Retention)
		}
	}
}

// publicURL is the URL to paste: as configured, or with the host left open.
func publicURL(c bridge.IngressConfig, s bridge.Source) string {
	switch {
	case s.PublicURL != "":
		return s.PublicURL
	case c.TLS.Cert != "":
		return "https://<your host>/in/" + s.Name
	}
	return "http(s)://<your host>/in/" + s.Name
}

// ingressURL is a source's URL on a listener of this machine.
func ingressURL(c bridge.IngressConfig, source string) string {
	host, port, err := net.SplitHostPort(c.Addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if c.TLS.Cert != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port) + "/in/" + source
}

// contentAdvice is the content type to choose at the provider.
func contentAdvice(p signing.Preset) string {
	switch {
	case p.Name == "github":
		return "application/json (a form works too)"
	case p.SampleType != "":
		return p.SampleType
	}
	return "application/json"
}

// answerOf is what an accepted request of a source is answered.
func answerOf(s bridge.Source, p signing.Preset) answerView {
	if s.Respond.Status != 0 {
		return answerView{s.Respond.Status, s.Respond.Body, s.Respond.ContentType}
	}
	return answerView(viewOf(p).Answer)
}

// sourceNotes are what is special about this source.
func sourceNotes(s bridge.Source, p signing.Preset) []string {
	notes := []string{}
	note := func(when bool, text string) {
		if when {
			notes = append(notes, text)
		}
	}
	note(s.Paused, "paused: every request is answered 503 until paused is false")
	note(p.Unverified, "unverified: no vendor document or SDK confirms this preset")
	note(p.NeedsURL, "the URL is part of the proof: paste public_url exactly")
	note(p.Class == signing.Authenticated, "a credential is shown, the body is not signed: add allow_ips where the provider publishes its addresses")
	note(p.Class == signing.Unproven, "nothing is proven: anyone who reaches the listener can send")
	note(s.OnInvalid == "quarantine", "what is not proven is answered 2xx and stored in "+bridge.QuarantineQueue(s.Queue))
	note(s.Dedup == "off", "dedup is off: every accepted request is a new event")
	note(len(s.AllowIPs) > 0, "only these addresses may send: "+strings.Join(s.AllowIPs, ", "))
	return notes
}

func (v sourceView) fields() []field {
	all := []field{{"what to do", v.Docs}, {"url", v.URL}, {"on this machine", v.Local}}
	for i, s := range v.Secrets {
		name := ""
		if i == 0 {
			name = "secret"
		}
		all = append(all, field{name, s.From})
	}
	if v.SecretForm == "" {
		all = append(all, field{"secret", "none"})
	}
	all = append(all, field{"secret form", v.SecretForm}, field{"proof", v.Proof}, field{"content type", v.ContentType})
	for _, h := range v.Handshakes {
		all = append(all, field{"handshake", h.Name + ": " + h.Note})
	}
	return append(all, field{"answer", v.Answer.words()}, field{"queue", v.Queue}, field{"dedup window", v.dedup()},
		field{"retention", v.Retention}, field{"notes", strings.Join(v.Notes, "\n")})
}

func (v sourceView) dedup() string {
	if v.Horizon == "" {
		return v.DedupWindow + " (how long the provider resends is not known)"
	}
	return fmt.Sprintf("%s (the provider resends for up to %s)", v.DedupWindow, v.Horizon)
}
