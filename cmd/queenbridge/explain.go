package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// verdict is what `queenbridge verify` found out. It never holds a secret or a
// computed signature. The JSON names are public.
type verdict struct {
	Proven bool `json:"proven"`
	// Class, Secret and Skew belong to a proof; Secret counts from 1, 0 where
	// no secret proves.
	Class  string `json:"class,omitempty"`
	Secret int    `json:"secret,omitempty"`
	Skew   string `json:"skew,omitempty"`
	// Handshake is the status a handshake would be answered with.
	Handshake int `json:"handshake,omitempty"`
	// Reason and Detail are the rejection's.
	Reason string  `json:"reason,omitempty"`
	Detail string  `json:"detail,omitempty"`
	Causes []cause `json:"causes,omitempty"`
}

// cause is a part of the request or the configuration that differs, and how.
type cause struct {
	Part string `json:"part"` // secret, body, timestamp, url, header, option, scheme, key
	Text string `json:"text"`
}

// explain judges a request and, where it is not proven, looks for what
// differs: it tries what commonly happens to secrets, bodies and URLs, and
// names what makes the signature fit. The error says what is wrong with the
// options.
func explain(o signing.Options, r *signing.Request) (verdict, error) {
	v, problems := signing.New(o)
	if len(problems) > 0 {
		errs := make([]error, len(problems))
		for i, p := range problems {
			errs[i] = fmt.Errorf("%s: %s", p.Path, p.Text)
		}
		return verdict{}, errors.Join(errs...)
	}
	if reply, is, err := v.Handshake(r); is && err == nil {
		return verdict{Proven: reply.Status < 400, Handshake: reply.Status}, nil
	}
	got, err := v.Verify(r)
	if err == nil {
		return verdict{Proven: true, Class: string(got.Class), Secret: got.Secret + 1, Skew: got.Skew.Round(time.Millisecond).String()}, nil
	}
	return search{options: o, request: r}.explain(err), nil
}

// search looks for what differs in a request that is not proven.
type search struct {
	options signing.Options
	request *signing.Request
}

func (s search) explain(err error) verdict {
	if fetch, ok := errors.AsType[*signing.FetchError](err); ok {
		return verdict{Reason: "key_not_available", Detail: "the key at " + fetch.URL + " is needed",
			Causes: []cause{{"key", "verify fetches nothing by itself: pin the key in scheme_options.keys, or allow it with --fetch"}}}
	}
	rej, ok := errors.AsType[*signing.Rejection](err)
	if !ok {
		return verdict{Reason: "error", Detail: err.Error()}
	}
	v := verdict{Reason: string(rej.Reason), Detail: rej.Detail}
	switch rej.Reason {
	case signing.ReasonMissingSignature, signing.ReasonMissingTimestamp, signing.ReasonMissingPart, signing.ReasonMissingCredential:
		v.Causes = slices.Concat(s.contentType(), s.missing(rej.Detail), s.others())
	case signing.ReasonMalformedSignature, signing.ReasonUnsupported, signing.ReasonTooManySignatures, signing.ReasonMalformedTimestamp:
		v.Causes = slices.Concat(s.signatureEncoding(), s.tags(), s.schemeOptions(), s.others())
	case signing.ReasonDuplicateHeader:
		v.Causes = []cause{{"header", "the header arrived twice with different values: something on the way adds its own"}}
	case signing.ReasonTimestampWindow:
		v.Causes = []cause{s.window(rej.Detail)}
	case signing.ReasonBadSignature, signing.ReasonBadCredential, signing.ReasonBadClaim, signing.ReasonMalformedBody:
		v.Causes = s.mismatch()
	}
	return v
}

// fits reports whether a request is proven but for the window; late is what
// the verifier says of the time when it is outside.
func fits(o signing.Options, r *signing.Request) (ok bool, late string) {
	v, problems := signing.New(o)
	if len(problems) > 0 {
		return false, ""
	}
	_, err := v.Verify(r)
	if rej, is := errors.AsType[*signing.Rejection](err); is && rej.Reason == signing.ReasonTimestampWindow {
		return true, rej.Detail
	}
	return err == nil, ""
}

// window says by how much the clock differs, and how much it may; late is the
// verifier's word.
func (s search) window(late string) cause {
	text := late + "; the signature fits: a saved request is judged by the time it was received (--at)"
	o := s.options
	o.SchemeOptions = withOption(o.SchemeOptions, "tolerance", "0s")
	v, problems := signing.New(o)
	if len(problems) > 0 {
		return cause{"timestamp", text}
	}
	got, err := v.Verify(s.request)
	if err != nil {
		return cause{"timestamp", text}
	}
	seconds := int64(got.Skew / time.Second)
	direction := "old"
	if seconds < 0 {
		seconds, direction = -seconds, "ahead of the clock"
	}
	return cause{"timestamp", fmt.Sprintf("the timestamp is %d seconds %s%s: %s", seconds, direction, otherUnit(got.Skew), text)}
}

// otherUnit tells a timestamp in another unit than the scheme's: it is off by
// decades.
func otherUnit(skew time.Duration) string {
	const decades = 30 * 365 * 24 * time.Hour
	switch {
	case skew < -decades:
		return ", as if it were in milliseconds and not in seconds"
	case skew > decades:
		return ", as if it were in seconds and not in milliseconds"
	}
	return ""
}

func withOption(options map[string]any, name string, value any) map[string]any {
	out := maps.Clone(options)
	if out == nil {
		out = make(map[string]any, 1)
	}
	out[name] = value
	return out
}

// missing says what stands in the request instead.
func (s search) missing(what string) []cause {
	if len(s.request.Header) == 0 {
		return []cause{{"header", "the request has no headers: give those that arrived, --header \"Name: value\" for each"}}
	}
	causes := []cause{{"header", what + " did not arrive: was it dropped on the way, or does the provider have no secret and sign nothing?"}}
	var others []string
	for _, name := range sortedNames(s.request.Header) {
		if proofName.MatchString(name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		causes = append(causes, cause{"header", "the request has " + strings.Join(others, ", ") + " instead"})
	}
	return causes
}

// proofName are headers that may hold a proof.
var proofName = regexp.MustCompile(`(?i)sig|hmac|mac$|token|^authorization$|^svix-|^webhook-`)

// others names schemes that the request proves, with the same secrets.
func (s search) others() []cause {
	var causes []cause
	for _, p := range signing.Presets() {
		if p.Name == s.options.Scheme || p.Generic || p.Class != signing.Verified {
			continue
		}
		if ok, _ := fits(signing.Options{Scheme: p.Name, Secrets: s.options.Secrets, PublicURL: s.options.PublicURL}, s.request); ok {
			causes = append(causes, cause{"scheme", "the request is proven as scheme " + p.Name})
		}
	}
	return causes
}

// tagPattern finds the tags and keys of a signature header, never a value.
var tagPattern = regexp.MustCompile(`(?:^|[,; ]+)([A-Za-z][A-Za-z0-9_-]{0,15})[=,]`)

// tags says which versions a signature header has.
func (s search) tags() []cause {
	preset, _ := signing.Lookup(s.options.Scheme)
	var causes []cause
	for _, name := range preset.KeepHeaders(s.options) {
		if !strings.Contains(strings.ToLower(name), "sig") {
			continue
		}
		if found := tagsOf(s.request.Header.Get(name)); len(found) > 0 {
			causes = append(causes, cause{"header", fmt.Sprintf("%s has entries of %s; expected is %s", name, strings.Join(found, ", "), preset.ProvenBy())})
		}
	}
	return causes
}

func tagsOf(value string) []string {
	var found []string
	for _, m := range tagPattern.FindAllStringSubmatch(value, 16) {
		if !slices.Contains(found, m[1]) {
			found = append(found, m[1])
		}
	}
	return found
}

// mismatch tries what commonly differs: one thing first, then a secret and a
// body together.
func (s search) mismatch() []cause {
	for _, try := range []func() []cause{s.secrets, s.bodies, s.urls, s.contentType, s.signatureEncoding, s.schemeOptions, s.others, s.together} {
		if causes := try(); len(causes) > 0 {
			return causes
		}
	}
	if len(s.request.Body) == 0 {
		return []cause{{"body", "the body is empty: was it read before, or lost to a redirect or a mapping? --data gives the one that arrived"}}
	}
	text := "no usual form of the secret and no usual change of body or URL fits: most likely the provider signs with another secret"
	if s.options.Secrets == nil {
		text = "no usual change of the body or URL fits: is the key the provider's?"
	}
	return []cause{{"secret", text}}
}

// secrets tries other forms of each secret.
func (s search) secrets() []cause {
	for change, o := range s.secretChanges() {
		if ok, late := fits(o, s.request); ok {
			return s.found(cause{"secret", change}, late, o, s.request)
		}
	}
	return nil
}

func (s search) secretChanges() func(yield func(string, signing.Options) bool) {
	return func(yield func(string, signing.Options) bool) {
		for _, secret := range s.options.Secrets {
			for _, form := range secretForms {
				for _, other := range form.make(secret) {
					o := s.options
					o.Secrets = []string{other}
					if other != secret && !yield(form.text, o) {
						return
					}
				}
			}
		}
	}
}

// bodies tries what happens to bodies on the way.
func (s search) bodies() []cause {
	for _, change := range bodyChanges {
		for _, body := range change.make(s.request.Body) {
			r := s.with(body)
			if ok, late := fits(s.options, r); ok {
				return s.found(cause{"body", change.text}, late, s.options, r)
			}
		}
	}
	return nil
}

func (s search) with(body []byte) *signing.Request {
	r := *s.request
	r.Body = body
	return &r
}

// urls tries what proxies do to URLs, for schemes that sign them.
func (s search) urls() []cause {
	for _, change := range urlChanges(s.options.PublicURL, s.request) {
		o, r := s.options, *s.request
		o.PublicURL, r.RawQuery, r.Method = change.url, change.query, change.method
		if ok, late := fits(o, &r); ok {
			return s.found(cause{"url", change.text}, late, o, &r)
		}
	}
	return nil
}

// schemeOptions tries other ways to sign of the verifier hmac, and the older
// versions of HubSpot.
func (s search) schemeOptions() []cause {
	for _, change := range optionChanges(s.options) {
		o := s.options
		o.SchemeOptions = change.options
		if ok, late := fits(o, s.request); ok {
			return s.found(cause{"option", change.text}, late, o, s.request)
		}
	}
	return nil
}

// pairLimit bounds the bodies that are tried with every form of the secret.
const pairLimit = 1 << 20

// together tries a changed secret with a changed body.
func (s search) together() []cause {
	if len(s.request.Body) > pairLimit {
		return nil
	}
	for text, o := range s.secretChanges() {
		causes := search{options: o, request: s.request}.bodies()
		if len(causes) > 0 {
			return append([]cause{{"secret", text}}, causes...)
		}
	}
	return nil
}

// found adds the window where the time does not fit either.
func (s search) found(c cause, late string, o signing.Options, r *signing.Request) []cause {
	if late == "" {
		return []cause{c}
	}
	return []cause{c, search{options: o, request: r}.window(late)}
}
