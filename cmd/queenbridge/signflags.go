package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

// secretVariable keeps a secret off the command line.
const secretVariable = "QUEENBRIDGE_SEND_SECRET"

// proofFlags say how requests are proven: a source of the configuration, or a
// scheme with its secret and options.
type proofFlags struct {
	configFlag
	source, scheme, secret, publicURL string
	options                           []string
	key, keyID                        string
}

func (f *proofFlags) bind(c *cobra.Command) {
	fs := c.Flags()
	f.bindConfig(fs)
	fs.StringVar(&f.source, "source", "", "a source of the configuration file: its scheme, secrets and options are used")
	fs.StringVar(&f.scheme, "scheme", "", "a scheme, instead of a source")
	fs.StringVar(&f.secret, "secret", "", "the secret, with --scheme ("+secretVariable+" keeps it off the command line)")
	fs.StringArrayVar(&f.options, "option", nil, "a scheme option, name=value, with --scheme; lists and maps are JSON")
	fs.StringVar(&f.publicURL, "public-url", "", "the URL the provider knows, for schemes that sign it")
	c.MarkFlagsMutuallyExclusive("source", "scheme")
	c.MarkFlagsOneRequired("source", "scheme")
}

// bindKey adds what signs where the secrets are public keys.
func (f *proofFlags) bindKey(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "key", "", "file of the private key (PEM), for schemes that sign with one")
	c.Flags().StringVar(&f.keyID, "key-id", "", "the key id or certificate URL to name (default: the first pinned one)")
}

// proof is how requests are proven; cfg and source are nil with --scheme.
type proof struct {
	signing.Options
	cfg    *bridge.Config
	source *bridge.Source
}

func (p *program) proof(ctx context.Context, f proofFlags) (proof, error) {
	how, err := p.proofOf(ctx, f)
	if err != nil {
		return how, err
	}
	how.ForgeKeyID = f.keyID
	if f.key == "" {
		return how, nil
	}
	text, err := os.ReadFile(f.key)
	if err != nil {
		return how, &usageError{err: fmt.Errorf("read --key: %w", err)}
	}
	if how.ForgeKey, err = signing.ReadPrivateKey(string(text)); err != nil {
		return how, &usageError{err: fmt.Errorf("--key %s: %w", f.key, err)}
	}
	return how, nil
}

func (p *program) proofOf(ctx context.Context, f proofFlags) (proof, error) {
	if f.source == "" {
		return p.proofOfScheme(f)
	}
	cfg, err := p.load(ctx, &settings{configFlag: f.configFlag})
	if err != nil {
		return proof{}, err
	}
	i, err := sourceIndex(cfg, f.source)
	if err != nil {
		return proof{}, err
	}
	how := proof{Options: cfg.Sources[i].SigningOptions(), cfg: &cfg, source: &cfg.Sources[i]}
	how.PublicURL = cmp.Or(f.publicURL, how.PublicURL)
	return how, nil
}

func (p *program) proofOfScheme(f proofFlags) (proof, error) {
	preset, ok := signing.Lookup(f.scheme)
	if !ok {
		return proof{}, unknownScheme(f.scheme)
	}
	how := proof{Options: signing.Options{Scheme: f.scheme, PublicURL: f.publicURL, SchemeOptions: make(map[string]any)}}
	secret := f.secret
	if secret == "" {
		secret, _ = p.env(secretVariable)
	}
	if secret != "" && preset.SecretForm() != "" {
		how.Secrets = []string{secret}
	}
	for _, option := range f.options {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			return how, &usageError{err: fmt.Errorf("--option must be name=value, got %q", option)}
		}
		v, err := optionValue(value)
		if err != nil {
			return how, &usageError{err: fmt.Errorf("--option %s: %w", name, err)}
		}
		how.SchemeOptions[name] = v
	}
	return how, nil
}

// optionValue is text, or what JSON says where it is a list, a map or a
// boolean. A number stays text: a delimiter may be one.
func optionValue(text string) (any, error) {
	if text != "true" && text != "false" && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return text, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("has text behind its JSON")
	}
	return plainValue(v), nil
}

// plainValue writes numbers as package signing takes them.
func plainValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plainValue(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainValue(v[name])
		}
	}
	return v
}

// requestFlags are a request on the command line.
type requestFlags struct {
	method, data, contentType, path, query, at string
	headers                                    []string
}

func (f *requestFlags) bind(c *cobra.Command, data string) {
	fs := c.Flags()
	fs.StringVar(&f.method, "method", http.MethodPost, "HTTP method")
	fs.StringVarP(&f.data, "data", "d", "", "the body: text, @file, or - for standard input"+data)
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "a header, \"Name: value\"; may be repeated")
}

// bindOffline adds what a request that is not sent cannot get elsewhere.
func (f *requestFlags) bindOffline(c *cobra.Command, at string) {
	c.Flags().StringVar(&f.path, "path", "", "the path as received (default: /in/<source>)")
	c.Flags().StringVar(&f.query, "query", "", "the query as received, without ?")
	c.Flags().StringVar(&f.at, "at", "", at+": RFC 3339 or Unix seconds (default: now)")
}

// request is the request that the flags describe, its body apart.
func (f *requestFlags) request(path string) (*signing.Request, error) {
	at, err := parseTime(f.at)
	if err != nil {
		return nil, &usageError{err: err}
	}
	r := &signing.Request{
		Method: strings.ToUpper(f.method), Path: cmp.Or(f.path, path), RawQuery: strings.TrimPrefix(f.query, "?"), Header: make(http.Header), Now: at,
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, &usageError{err: fmt.Errorf("--header must be \"Name: value\", got %q", name)}
		}
		r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return r, nil
}

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, fmt.Errorf("--at must be RFC 3339 such as 2026-01-31T12:00:00Z, or Unix seconds, got %q", text)
	}
	return at, nil
}

// body reads --data; nil where it is not given.
func (p *program) body(data string) ([]byte, error) {
	switch {
	case data == "-":
		return io.ReadAll(p.in)
	case strings.HasPrefix(data, "@"):
		b, err := os.ReadFile(data[1:])
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("read --data: %w", err)}
		}
		return bytes.Clone(b), nil
	case data != "":
		return []byte(data), nil
	}
	return nil, nil
}

// fillSample gives a request without --data a body that the scheme can sign.
func fillSample(r *signing.Request, scheme string, given bool, contentType string) {
	preset, _ := signing.Lookup(scheme)
	switch {
	case given:
	case preset.Sample != "":
		r.Body = []byte(preset.Sample)
		contentType = cmp.Or(contentType, preset.SampleType)
	default:
		id := time.Now().UTC().Format("20060102150405.000000")
		r.Body = fmt.Appendf(nil, `{"id":"evt_%s","type":"queenbridge.test","message":"sent by queenbridge send"}`, id)
	}
	if contentType != "" || r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", cmp.Or(contentType, "application/json"))
	}
}
