package signing

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// New compiles a source's choice of scheme. It reports every problem, each
// with its path and what to do; the verifier is nil when there is one.
func New(o Options) (*Verifier, []Problem) {
	var c checklist
	r, ok := find(o.Scheme)
	if !ok {
		c.add("scheme", "%s", unknownScheme(o.Scheme))
		return nil, c.problems
	}
	v := &Verifier{scheme: r.describe(&c, o), row: r, fetcher: o.Fetcher}
	v.checkURL(&c, o.PublicURL, r.NeedsURL)
	v.addSecrets(&c, o)
	v.addLayouts(&c)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return v, nil
}

func unknownScheme(name string) string {
	if name == "" {
		return "is required: name the provider, or a generic verifier (hmac, public-key, token, basic, jwt, rfc9421, mtls, none)"
	}
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return fmt.Sprintf("scheme %q is unknown%s", name, suggest(name, names))
}

// checkURL checks public_url, which is signed as it is written.
func (v *Verifier) checkURL(c *checklist, text string, needed bool) {
	v.publicURL = text
	if text == "" {
		if t, err := parseTemplate(v.scheme.message); needed || err == nil && t.has(false, partURL) {
			c.add("public_url", "is required, as this scheme signs the URL: set it to the URL given to the provider")
		}
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		c.add("public_url", "is no URL: write it as given to the provider, such as https://hooks.example.com/in/name")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.add("public_url", "must begin with https:// (or http://) and a host")
	case strings.Contains(text, "?"):
		c.add("public_url", "must have no query: the query of each request is added to it")
	case strings.Contains(text, "#"):
		c.add("public_url", "must have no fragment: providers never send one")
	}
}

func (v *Verifier) addSecrets(c *checklist, o Options) {
	switch rule := v.scheme.secrets; {
	case v.scheme.kind == kindNone && len(o.Secrets) > 0:
		c.add("secrets", "scheme none takes no secrets: remove them, or choose a scheme that checks them")
	case rule == secretsNone && len(o.Secrets) > 0:
		c.add("secrets", "scheme %s takes no secrets with these options: remove them", o.Scheme)
	case rule == secretsRequired && v.scheme.kind != kindNone && len(o.Secrets) == 0:
		c.add("secrets", "scheme %s needs at least one secret (scheme none accepts everything)", o.Scheme)
	}
	if v.scheme.kind == kindNone || v.scheme.secrets == secretsNone {
		return
	}
	for i, secret := range o.Secrets {
		if err := v.addSecret(secret); err != nil {
			c.add(fmt.Sprintf("secrets[%d]", i), "%s", err)
		}
	}
}

func (v *Verifier) addSecret(secret string) error {
	if v.scheme.account { // not a key: it only buys keys
		v.accountSecrets = append(v.accountSecrets, secret)
		return presentKey(secret)
	}
	if v.scheme.kind == kindSignature || v.scheme.key != "" {
		k, err := v.scheme.newKey(secret)
		v.keys = append(v.keys, k)
		return err
	}
	if _, err := keyUTF8.derive(secret); err != nil {
		return err
	}
	if v.scheme.kind == kindToken && len(v.scheme.headers) > 0 && strings.TrimSpace(v.scheme.prefix+secret) != v.scheme.prefix+secret {
		return errors.New("begins or ends with white space, which a header never does: remove it (a file often ends with a line break)")
	}
	if v.scheme.kind == kindBasic {
		if _, password, ok := strings.Cut(secret, ":"); !ok || strings.TrimSpace(password) == "" {
			return errors.New("must be user:password, with a password that is not empty")
		}
	}
	v.tokens = append(v.tokens, sha256.Sum256([]byte(secret)))
	return nil
}

// addLayouts prepares the families of header names and the message.
func (v *Verifier) addLayouts(c *checklist) {
	s := &v.scheme
	v.class = s.class
	if s.kind != kindSignature {
		return
	}
	t, err := parseTemplate(s.message)
	if err != nil {
		c.add("scheme_options.message", "%s", err)
		return
	}
	v.required = s.mustStamp || s.stamp.tolerance > 0 || t.has(true, partTimestamp) || s.messages != nil
	if s.messages == nil {
		v.class = s.proves(c, t)
	}
	v.layouts = []layout{newLayout(s, t, alias{})}
	if s.alias != (alias{}) {
		v.layouts = append(v.layouts, newLayout(s, t, s.alias))
	}
}

// proves checks what the message covers and returns the class that gives.
func (s *scheme) proves(c *checklist, t template) Class {
	anything := t.has(false, partBody, partBodySHA256, partTimestamp, partMethod, partURL, partPath, partForm, partHeader, partQuery, partJSON)
	if !anything {
		c.add("scheme_options.message", "has no placeholder, so one signature would fit every request: use {body}")
	}
	if t.has(false, partTimestamp) && !s.stamped {
		c.add("scheme_options.message", "uses {timestamp}, but nothing says where it is: set timestamp.header, timestamp.json or timestamp_key")
	}
	if !t.has(true, partBody, partBodySHA256, partForm) {
		return Authenticated
	}
	return s.class
}

func newLayout(s *scheme, t template, a alias) layout {
	rename := func(name string) string {
		if other, ok := a.rename(name); ok {
			name = other
		}
		return http.CanonicalHeaderKey(name)
	}
	l := layout{message: t.rename(a), alias: a}
	for _, name := range s.headers {
		l.headers = append(l.headers, rename(name))
	}
	if s.stamp.header != "" {
		l.stampHeader = rename(s.stamp.header)
	}
	for _, name := range s.signedHeaders() {
		l.needed = append(l.needed, rename(name))
	}
	return l
}
