package signing

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Preset is what the bridge knows about one scheme: a provider's preset or a
// generic verifier.
type Preset struct {
	Name string
	// Generic is true for the verifiers a user describes with scheme_options.
	Generic bool
	// Unverified is true where no vendor document or SDK confirms the row.
	Unverified bool
	// Class of a proven request. An hmac whose message leaves out the body
	// proves less: Proof.Class decides for a request.
	Class Class

	// TransactionID and EventType are value expressions: alternatives
	// separated by " | ", each of h:NAME, b:PATH, i:PATH, f:NAME, q:NAME,
	// =TEXT, c(…), j(…) or sha(…). Empty for generic verifiers.
	TransactionID, EventType string
	// Split names the array whose elements become one event each: a path, with
	// "@this" for the document, or words for what no path can say. Empty means
	// one event. [Verifier.Items] carries it out.
	Split string
	// Answer to an accepted request. Status 0 means 200 with an empty body.
	// Where it depends on the request, [Verifier.Answer] says so.
	Answer Answer
	// Refusal is what a request that is not proven must be answered. Status 0
	// means 401 with any short body; otherwise the answer must be exactly this.
	Refusal Answer
	// Challenge is the WWW-Authenticate of a refusal, "" for proofs that HTTP does
	// not know. Many clients show a password only when asked (RFC 9110, 11.6.1).
	Challenge string
	// MaxBody is the largest body in bytes.
	MaxBody int64
	// Horizon is how long the provider may resend by itself; 0 means unknown.
	Horizon time.Duration
	// Deadline is when the provider hangs up; 0 means unknown.
	Deadline time.Duration
	// NeedsURL is true where public_url is required.
	NeedsURL bool
	// Methods are taken besides POST.
	Methods []string
	// Handshakes names the handshakes the scheme answers.
	Handshakes []string
	// AttemptHeader is the header in which the provider counts its attempts to
	// deliver, "" where it has none; FirstAttempt is its value at the first. See
	// [Preset.Resends].
	AttemptHeader string
	FirstAttempt  int
	// Permanent4xx is true where the provider may never send again what was
	// answered with 4xx: a limit is then better answered with 503 than with 429.
	Permanent4xx bool
	// Docs says in a line or two what to paste where: the URL at the provider,
	// and the provider's secret here.
	Docs string
	// Sample is a body [Forge] can sign, where a JSON object such as
	// {"id":"evt_1"} will not do; SampleType is its Content-Type, "" for JSON.
	Sample, SampleType string
}

// defaultMaxBody is the body cap of presets without one of their own.
const defaultMaxBody = 10 << 20

// Lookup returns the preset or generic verifier of that name, if this version
// has it. The value may be changed freely.
func Lookup(name string) (Preset, bool) {
	r, ok := find(name)
	if !ok {
		return Preset{}, false
	}
	return r.public(), true
}

// Presets lists what this version has: presets in the order of the tables,
// then the generic verifiers.
func Presets() []Preset {
	all := make([]Preset, len(table))
	for i := range table {
		all[i] = table[i].public()
	}
	return all
}

// HandshakeMethods are the methods of the scheme's handshakes: what an answer
// of 405 may list beside Methods and POST.
func (p Preset) HandshakeMethods() []string {
	var methods []string
	for _, name := range p.Handshakes {
		method, ok := handshakeMethods[name]
		if ok && !slices.Contains(methods, method) {
			methods = append(methods, method)
		}
	}
	return methods
}

// handshakeMethods are those that are not POST.
var handshakeMethods = map[string]string{
	"hub-challenge": http.MethodGet, "echo-challenge": http.MethodGet, "x-crc": http.MethodGet, "braintree-challenge": http.MethodGet,
	"linkedin-challenge": http.MethodGet, "ebay-challenge": http.MethodGet, "okta-challenge": http.MethodGet, "adobe-sign-clientid": http.MethodGet,
	"head": http.MethodHead, "get-probe": http.MethodGet, "cloudevents-options": http.MethodOptions,
}

// maxResends bounds what a provider may say of its attempts.
const maxResends = 9999

// Resends is how many attempts the provider says to have made before this
// request: many of them are an early sign that it is answered too slowly. 0 for
// a first one, and where the provider does not say. The header is not signed:
// it decides nothing.
func (p Preset) Resends(h http.Header) int {
	if p.AttemptHeader == "" {
		return 0
	}
	text, conflict := headerValue(h, p.AttemptHeader)
	n, ok := digits(text)
	if conflict || !ok {
		return 0
	}
	return int(min(max(n-int64(p.FirstAttempt), 0), maxResends))
}

// OptionNames are the keys the scheme takes in scheme_options, each once. Empty
// where it takes none.
func (p Preset) OptionNames() []string {
	r, ok := find(p.Name)
	if !ok {
		return nil
	}
	rd := newReader(&checklist{}, "scheme_options", nil)
	r.read(rd)
	slices.Sort(rd.known)
	return slices.Compact(rd.known)
}

// CredentialHeaders are the headers of a request that carry a credential and
// must never be stored, for a source with these options.
func (p Preset) CredentialHeaders(o Options) []string {
	s, ok := describe(p.Name, o)
	if !ok {
		return nil
	}
	extra := []string{}
	if r, ok := find(p.Name); ok {
		extra = append(extra, r.credentials...)
	}
	switch {
	case s.kind == kindToken:
		return append(extra, s.headers...)
	case s.kind == kindBasic:
		return append(extra, "Authorization")
	case s.settings.token.header == "Authorization":
		return append(extra, "Authorization")
	case s.settings.client.header != "":
		return append(extra, s.settings.client.header)
	}
	return extra
}

// CredentialQuery are the query parameters that carry a credential and must
// never be stored, for a source with these options.
func (p Preset) CredentialQuery(o Options) []string {
	if s, ok := describe(p.Name, o); ok && s.kind == kindToken && s.query != "" {
		return []string{s.query}
	}
	return nil
}

// KeepHeaders are the headers an event must keep whatever a deny list says:
// signature, timestamp and id, in every family of names the scheme accepts.
func (p Preset) KeepHeaders(o Options) []string {
	s, ok := describe(p.Name, o)
	if !ok {
		return nil
	}
	keep := expressionHeaders(p.TransactionID + " | " + p.EventType)
	if s.kind == kindSignature {
		keep = append(keep, s.signedHeaders()...)
	}
	if r, ok := find(p.Name); ok {
		keep = append(keep, r.keep...)
	}
	if name := s.settings.token.header; name != "" {
		keep = append(keep, name)
	}
	for _, name := range keep {
		if other, ok := s.alias.rename(name); ok {
			keep = append(keep, other)
		}
	}
	// Whatever stands in it, it is never stored.
	keep = slices.DeleteFunc(keep, func(name string) bool { return strings.EqualFold(name, "Authorization") })
	slices.Sort(keep)
	return slices.Compact(keep)
}

// describe is the scheme of a source; false where its options do not say.
func describe(name string, o Options) (scheme, bool) {
	r, ok := find(name)
	if !ok {
		return scheme{}, false
	}
	c := checklist{}
	return r.describe(&c, o), true
}

// signedHeaders are the headers a signature scheme reads.
func (s *scheme) signedHeaders() []string {
	all := slices.Clone(s.headers)
	if s.stamp.header != "" {
		all = append(all, s.stamp.header)
	}
	t, err := parseTemplate(s.message)
	if err != nil {
		return all
	}
	return append(all, t.headers()...)
}

// expressionHeaders are the h: names in a value expression.
func expressionHeaders(expression string) []string {
	var found []string
	for term := range strings.FieldsFuncSeq(expression, func(r rune) bool { return strings.ContainsRune(" |(),?", r) }) {
		if name, ok := strings.CutPrefix(term, "h:"); ok {
			found = append(found, name)
		}
	}
	return found
}

// rename gives the name of a header in the second family.
func (a alias) rename(name string) (string, bool) {
	if a.from == "" || len(name) < len(a.from) || !strings.EqualFold(name[:len(a.from)], a.from) {
		return "", false
	}
	return a.to + name[len(a.from):], true
}
