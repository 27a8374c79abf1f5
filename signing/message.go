package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// partKind is one placeholder of a message template.
type partKind int

const (
	partLiteral partKind = iota
	partBody
	partBodySHA256
	partTimestamp
	partMethod
	partURL
	partPath
	partForm
	partHeader
	partQuery
	partJSON
)

var simpleParts = map[string]partKind{
	"body": partBody, "body_sha256": partBodySHA256, "timestamp": partTimestamp,
	"method": partMethod, "url": partURL, "path": partPath, "form": partForm,
}

var namedParts = map[string]partKind{"header": partHeader, "query": partQuery, "json": partJSON}

// part is a literal or a placeholder; text is the literal or the name.
type part struct {
	kind  partKind
	text  string
	lower bool
}

// segment is a run of parts; an optional one is left out when a placeholder
// in it is absent.
type segment struct {
	parts    []part
	optional bool
}

// template is the signed message: segments in order.
type template []segment

// parseTemplate reads the message language: {placeholder}, {placeholder|lower},
// [optional segment], and the literals {{ }} [[ ]]. The leftmost pair is read
// first, so "{a}}}" ends a placeholder and then writes a brace.
func parseTemplate(text string) (template, error) {
	p := templateParser{rest: text, current: segment{}}
	for p.rest != "" {
		if err := p.step(); err != nil {
			return nil, err
		}
	}
	if p.current.optional {
		return nil, errors.New("a [ is never closed: write ], or [[ for the character")
	}
	p.flush(false)
	return p.done, nil
}

type templateParser struct {
	rest    string
	literal []byte
	current segment
	done    template
}

func (p *templateParser) step() error {
	c := p.rest[0]
	if len(p.rest) > 1 && p.rest[1] == c && strings.IndexByte("{}[]", c) >= 0 {
		p.literal, p.rest = append(p.literal, c), p.rest[2:]
		return nil
	}
	switch c {
	case '{':
		return p.placeholder()
	case '}':
		return errors.New("a } closes nothing: write }} for the character")
	case '[':
		if p.current.optional {
			return errors.New("a [ stands inside [ ]: optional segments do not nest")
		}
		p.flush(true)
	case ']':
		if !p.current.optional {
			return errors.New("a ] closes nothing: write ]] for the character")
		}
		p.flush(false)
	default:
		p.literal = append(p.literal, c)
	}
	p.rest = p.rest[1:]
	return nil
}

// flush ends the current segment and begins the next.
func (p *templateParser) flush(optional bool) {
	p.endLiteral()
	if len(p.current.parts) > 0 {
		p.done = append(p.done, p.current)
	}
	p.current = segment{optional: optional}
}

func (p *templateParser) endLiteral() {
	if len(p.literal) > 0 {
		p.current.parts = append(p.current.parts, part{kind: partLiteral, text: string(p.literal)})
		p.literal = p.literal[:0]
	}
}

func (p *templateParser) placeholder() error {
	inside, rest, ok := strings.Cut(p.rest[1:], "}")
	if !ok {
		return errors.New("a { is never closed: write }, or {{ for the character")
	}
	pt, err := parsePart(inside)
	if err != nil {
		return err
	}
	p.endLiteral()
	p.current.parts = append(p.current.parts, pt)
	p.rest = rest
	return nil
}

func parsePart(inside string) (part, error) {
	name, filter, filtered := strings.Cut(inside, "|")
	if filtered && filter != "lower" {
		return part{}, fmt.Errorf("{%s}: the only filter is |lower", inside)
	}
	if kind, ok := simpleParts[name]; ok {
		return part{kind: kind, lower: filtered}, nil
	}
	group, arg, _ := strings.Cut(name, ":")
	kind, ok := namedParts[group]
	if !ok {
		return part{}, fmt.Errorf("{%s} is unknown: placeholders are {body} {body_sha256} {timestamp} {method} {url} {path} {form} {header:NAME} {query:NAME} {json:PATH}", inside)
	}
	switch _, err := parsePath(arg); {
	case arg == "":
		return part{}, fmt.Errorf("{%s}: a name must follow the colon", inside)
	case kind == partHeader && !isToken(arg):
		return part{}, fmt.Errorf("{%s}: %q is no header name", inside, arg)
	case kind == partJSON && err != nil:
		return part{}, fmt.Errorf("{%s}: %w", inside, err)
	}
	return part{kind: kind, text: arg, lower: filtered}, nil
}

// has reports whether the template has such a part; required leaves out
// optional segments.
func (t template) has(required bool, kinds ...partKind) bool {
	for _, s := range t {
		for _, p := range s.parts {
			for _, k := range kinds {
				if p.kind == k && (!required || !s.optional) {
					return true
				}
			}
		}
	}
	return false
}

// headers are the headers that are part of the message.
func (t template) headers() []string {
	var found []string
	for _, s := range t {
		for _, p := range s.parts {
			if p.kind == partHeader {
				found = append(found, p.text)
			}
		}
	}
	return found
}

// rename gives the template for another family of header names.
func (t template) rename(a alias) template {
	out := make(template, len(t))
	for i, s := range t {
		out[i] = segment{optional: s.optional, parts: append([]part(nil), s.parts...)}
		for j, p := range out[i].parts {
			if other, ok := a.rename(p.text); ok && p.kind == partHeader {
				out[i].parts[j].text = other
			}
		}
	}
	return out
}

// piece is a run of the signed message. Bytes wins when it is not nil.
type piece struct {
	bytes []byte
	text  string
}

func join(message []piece) []byte {
	if len(message) == 1 && message[0].bytes != nil {
		return message[0].bytes
	}
	var all []byte
	for _, p := range message {
		if p.bytes != nil {
			all = append(all, p.bytes...)
		} else {
			all = append(all, p.text...)
		}
	}
	return all
}

// resolve appends the pieces of the message for one request.
func (t template) resolve(in *input, dst []piece) ([]piece, *Rejection) {
	for i := range t {
		start := len(dst)
		for j := range t[i].parts {
			p, absent, rej := in.piece(&t[i].parts[j])
			if rej != nil {
				return nil, rej
			}
			if absent && t[i].optional {
				dst = dst[:start]
				break
			}
			if absent {
				return nil, reject(ReasonMissingPart, "%s", &t[i].parts[j])
			}
			dst = append(dst, p)
		}
	}
	if len(dst) == 0 { // one signature over nothing would fit every request
		return nil, reject(ReasonMissingPart, "every part of the signed message")
	}
	return dst, nil
}

// String names a placeholder for a log; it holds nothing of the request.
func (p *part) String() string {
	for name, kind := range simpleParts {
		if kind == p.kind {
			return "{" + name + "}"
		}
	}
	for name, kind := range namedParts {
		if kind == p.kind {
			return "{" + name + ":" + p.text + "}"
		}
	}
	return p.text
}

// piece evaluates one part. An absent or empty value is absent, except the
// body, its digest and the form, which may be empty.
func (in *input) piece(p *part) (piece, bool, *Rejection) {
	var text string
	switch p.kind {
	case partLiteral:
		return piece{text: p.text}, false, nil
	case partBody:
		if p.lower {
			return piece{text: lower(string(in.request.Body))}, false, nil
		}
		if len(in.request.Body) == 0 {
			return piece{}, false, nil
		}
		return piece{bytes: in.request.Body}, false, nil
	case partBodySHA256:
		text = bodySHA256(in.request)
	case partTimestamp:
		text = in.stamp
	case partMethod:
		text = in.request.Method
	case partURL:
		text = withQuery(in.url, in.request.RawQuery)
	case partPath:
		text = in.path()
	case partForm:
		return in.formPiece(p)
	case partHeader:
		value, rej := in.single(p.text)
		if rej != nil {
			return piece{}, false, rej
		}
		text = value
	case partQuery:
		text, _ = in.valuesOf().rawQuery(p.text)
	case partJSON:
		text, _ = in.valuesOf().JSON(p.text)
	}
	if p.lower {
		text = lower(text)
	}
	return piece{text: text}, text == "", nil
}

// formPiece is the fields of a form body: names and unique values, sorted,
// joined without separators. A body that is not a form is absent.
func (in *input) formPiece(p *part) (piece, bool, *Rejection) {
	if !isForm(in.request.Header) {
		return piece{}, true, nil
	}
	text, err := sortedForm(in.request.Body)
	if err != nil {
		return piece{}, false, reject(ReasonMalformedBody, "form body: %s", err)
	}
	if p.lower {
		text = []byte(lower(string(text)))
	}
	return piece{bytes: text}, false, nil
}

// lower maps to lower case; in text that is not UTF-8 only ASCII letters, so
// that no byte is replaced.
func lower(s string) string {
	if utf8.ValidString(s) {
		return strings.ToLower(s)
	}
	b := []byte(s)
	lowerASCII(b)
	return string(b)
}

func bodySHA256(r *Request) string {
	sum := sha256.Sum256(r.Body)
	return hex.EncodeToString(sum[:])
}
