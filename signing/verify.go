package signing

import (
	"net/http"
	"slices"
	"time"
)

// Verifier proves the requests of one source. It is safe for concurrent use;
// but for the keys it has fetched it never changes.
type Verifier struct {
	scheme scheme
	keys   []key
	tokens [][32]byte // digests of the secrets of kindToken and kindBasic
	// accountSecrets are what an account may fetch keys with.
	accountSecrets []string
	publicURL      string
	// layouts are the families of header names, the preferred one first.
	layouts  []layout
	required bool // the timestamp must be there
	class    Class
	row      *row
	fetcher  Fetcher
	parsed   parsedKeys
}

// layout is where one family of header names has its things.
type layout struct {
	headers     []string
	stampHeader string
	message     template
	// needed are all of the family's headers: a family counts when it is
	// complete.
	needed []string
	alias  alias // zero for the first family
}

// messageFunc builds the signed messages where no template can say it; a
// signature over any of them is accepted.
type messageFunc func(in *input) ([][]piece, *Rejection)

// Verify proves r or returns a *[Rejection], or a *[FetchError] where the key
// could not be had. The order is structure, signature, timestamp window, so
// that an unsigned timestamp tells an attacker nothing.
func (v *Verifier) Verify(r *Request) (Proof, error) {
	in := input{request: r, url: v.publicURL}
	var proof Proof
	var rej *Rejection
	switch kind := v.scheme.kind; {
	case v.scheme.prove != nil:
		return v.scheme.prove(v, &in)
	case kind == kindNone:
		return Proof{Class: Unproven, Secret: -1}, nil
	case kind == kindSignature:
		proof, rej = v.verifySignature(&in)
	default:
		proof, rej = v.verifyCredential(&in)
	}
	if rej != nil {
		return Proof{}, rej
	}
	return proof, nil
}

// Values are the request's values as this scheme reads them: where a scheme
// accepts two families of header names (svix-* or webhook-*), names of the
// first are looked up in the family that proved the request.
func (v *Verifier) Values(r *Request) *Values {
	values := &Values{}
	v.Read(r, values)
	return values
}

// Read makes values those of a request, as [Verifier.Values] does, for a caller
// that has room for them already.
func (v *Verifier) Read(r *Request, values *Values) {
	*values = Values{request: r}
	if len(v.layouts) > 1 {
		values.alias = v.layout(r.Header).alias
	}
}

func (v *Verifier) verifySignature(in *input) (Proof, *Rejection) {
	r := in.request
	l := v.layout(r.Header)
	var found candidates
	if rej := v.requirements(in); rej != nil {
		return Proof{}, rej
	}
	if rej := v.collect(in, l, &found); rej != nil {
		return Proof{}, rej
	}
	at, grain, rej := v.timestamp(in, l, &found)
	if rej != nil {
		return Proof{}, rej
	}
	secret, rej := v.matchMessage(in, l, &found)
	if rej != nil {
		return Proof{}, rej
	}
	if secret < 0 {
		return Proof{}, v.mismatch(&found)
	}
	proof := Proof{Class: v.class, Secret: secret}
	if !at.IsZero() {
		proof.Skew = r.Now.Sub(at)
		if rej := window(at, r.Now, grain, v.scheme.stamp.tolerance); rej != nil {
			return Proof{}, rej
		}
	}
	return proof, nil
}

// requirements checks the headers that must have a fixed value.
func (v *Verifier) requirements(in *input) *Rejection {
	for _, q := range v.scheme.require {
		value, rej := in.single(q.header)
		if rej != nil {
			return rej
		}
		if value != q.value {
			return reject(ReasonUnsupported, "%s is not %s", q.header, q.value)
		}
	}
	return nil
}

// layout chooses the first complete family, so that no request mixes two.
func (v *Verifier) layout(h http.Header) *layout {
	for i := range v.layouts {
		if len(v.layouts) == 1 || v.layouts[i].complete(h) {
			return &v.layouts[i]
		}
	}
	return &v.layouts[0]
}

func (l *layout) complete(h http.Header) bool {
	return !slices.ContainsFunc(l.needed, func(name string) bool {
		value, conflict := headerValue(h, name)
		return value == "" && !conflict
	})
}

// collect reads the signatures of every place they may stand in.
func (v *Verifier) collect(in *input, l *layout, found *candidates) *Rejection {
	present := false
	read := func(value string) *Rejection {
		if value == "" {
			return nil
		}
		present = true
		return v.scheme.parse(value, v.accepts, found)
	}
	for _, name := range l.headers {
		value, rej := in.single(name)
		if rej == nil {
			rej = read(value)
		}
		if rej != nil {
			return rej
		}
	}
	if rej := read(v.bodyField(in)); rej != nil {
		return rej
	}
	switch {
	case !present:
		return reject(ReasonMissingSignature, "%s", v.scheme.place())
	case found.n == 0:
		return reject(ReasonMalformedSignature, "%s holds no signature of the expected form", v.scheme.place())
	}
	return nil
}

// bodyField is a signature that stands in the body.
func (v *Verifier) bodyField(in *input) (value string) {
	switch {
	case v.scheme.json != "":
		value, _ = in.valuesOf().JSON(v.scheme.json)
	case v.scheme.form != "":
		value, _ = in.valuesOf().Form(v.scheme.form)
	}
	return value
}

// accepts reports whether some key checks entries of this tag.
func (v *Verifier) accepts(tag string) bool {
	for i := range v.keys {
		if v.keys[i].tag == tag {
			return true
		}
	}
	return false
}

// timestamp finds and reads the signed timestamp. The zero time means the
// scheme has none.
func (v *Verifier) timestamp(in *input, l *layout, found *candidates) (time.Time, time.Duration, *Rejection) {
	if !v.scheme.stamped {
		return time.Time{}, 0, nil
	}
	in.stamp = found.stamp
	if in.stamp == "" && v.scheme.stamp.json != "" {
		in.stamp, _ = in.valuesOf().JSON(v.scheme.stamp.json)
	}
	if in.stamp == "" && l.stampHeader != "" {
		value, rej := in.single(l.stampHeader)
		if rej != nil {
			return time.Time{}, 0, rej
		}
		in.stamp = value
	}
	if in.stamp == "" {
		if !v.required {
			return time.Time{}, 0, nil
		}
		return time.Time{}, 0, reject(ReasonMissingTimestamp, "%s", v.scheme.stampPlace())
	}
	at, grain, ok := v.scheme.stamp.unit.parse(in.stamp)
	if !ok {
		return time.Time{}, 0, reject(ReasonMalformedTimestamp, "%s is no time in %s", v.scheme.stampPlace(), v.scheme.stamp.unit)
	}
	return at, grain, nil
}

// matchMessage returns the index of the secret that signed the request, -1
// where none did.
func (v *Verifier) matchMessage(in *input, l *layout, found *candidates) (int, *Rejection) {
	if v.scheme.messages != nil {
		messages, rej := v.scheme.messages(in)
		if rej != nil {
			return -1, rej
		}
		for _, m := range messages {
			if i := v.match(m, found); i >= 0 {
				return i, nil
			}
		}
		return -1, nil
	}
	var room [8]piece
	message, rej := l.message.resolve(in, room[:0])
	if rej != nil {
		return -1, rej
	}
	return v.match(message, found), nil
}

func (v *Verifier) match(message []piece, found *candidates) int {
	for i := range v.keys {
		if v.keys[i].matches(message, found, v.scheme.encoding) {
			return i
		}
	}
	return -1
}

// mismatch tells a wrong signature from text that can be none.
func (v *Verifier) mismatch(found *candidates) *Rejection {
	for _, c := range found.all() {
		if _, err := v.scheme.encoding.decode(c.text); err == nil {
			return reject(ReasonBadSignature, "%s: no secret of this source made it: check the secret, and that nothing changes the body on the way", v.scheme.place())
		}
	}
	return reject(ReasonMalformedSignature, "%s is not %s", v.scheme.place(), v.scheme.encoding)
}

// place names where the signature or credential stands.
func (s *scheme) place() string {
	switch {
	case s.json != "":
		return "body field " + s.json
	case s.form != "":
		return "form field " + s.form
	case s.query != "":
		return "query parameter " + s.query
	case len(s.headers) > 0:
		return s.headers[0]
	}
	return "Authorization"
}

func (s *scheme) stampPlace() string {
	switch {
	case s.stamp.json != "":
		return "body field " + s.stamp.json
	case s.stamp.header != "":
		return s.stamp.header
	}
	return "the timestamp in " + s.place()
}
