package signing

import (
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
	// Split is the path of the array whose elements become one event each;
	// "@this" is the document. Empty means one event.
	Split string
	// Answer to an accepted request. Status 0 means 200 with an empty body.
	Answer Answer
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
	// Permanent4xx is true where the provider never sends again what was
	// answered with 4xx, 429 included.
	Permanent4xx bool
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

// Known reports whether name is a scheme at all, built in this version or not.
func Known(name string) bool {
	return slices.Contains(names, name) || slices.Contains(generics, name)
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
	switch s.kind {
	case kindToken:
		return append(extra, s.headers...)
	case kindBasic:
		return append(extra, "Authorization")
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
	for _, name := range keep {
		if other, ok := s.alias.rename(name); ok {
			keep = append(keep, other)
		}
	}
	slices.Sort(keep)
	return slices.Compact(keep)
}

// describe is the scheme of a source; false where its options do not say.
func describe(name string, o Options) (scheme, bool) {
	r, ok := find(name)
	if !ok {
		return scheme{}, false
	}
	var c checklist
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
