package signing

import (
	"slices"
	"time"
)

// row is one preset: what others may know of it and how it proves a request.
type row struct {
	Preset
	scheme scheme
	// options reads scheme_options into the scheme.
	options func(*reader, *scheme)
	// credentials are headers a provider may send besides its signature.
	credentials []string
	// keep are headers of the proof that the scheme does not name.
	keep []string
	// fills are the headers Forge adds, as the provider would; those of the
	// transaction id come by themselves.
	fills []fill
	// items and answer are nil where Split and Answer say it all.
	items  itemsFunc
	answer answerFunc
}

const (
	mib    = 1 << 20
	hour   = time.Hour
	minute = time.Minute
	sec    = time.Second
)

// table holds every preset, in the order of the published tables, and then the
// generic verifiers. It is never changed.
var table = slices.Concat(
	standardRows, codeRows, paymentRows, commerceRows, messagingRows, identityRows, communicationRows, cloudRows, genericRows,
)

// standard is Standard Webhooks with the three headers of one family.
func standard(id, timestamp, signature string, key keyForm) scheme {
	return scheme{
		headers: []string{signature},
		grammar: grammar{format: formatTags, delimiter: ","},
		tag:     "v1", encoding: encodingBase64, digest: digestSHA256, key: key,
		message: "{header:" + id + "}.{timestamp}.{body}",
		stamp:   stamp{header: timestamp, unit: unitSeconds, tolerance: defaultTolerance},
		stamped: true,
	}
}

// bodyHMAC is a SHA-256 of the raw body in a header of its own.
func bodyHMAC(header, prefix string, e encoding) scheme {
	return scheme{
		headers:  []string{header},
		grammar:  grammar{format: formatPlain, prefix: prefix},
		encoding: e, digest: digestSHA256, key: keyUTF8, message: "{body}",
	}
}

// over signs another message than the body.
func (s scheme) over(message string) scheme {
	s.message = message
	return s
}

// with uses another digest.
func (s scheme) with(d digest) scheme {
	s.digest = d
	return s
}

// keyed derives the key in another way.
func (s scheme) keyed(k keyForm) scheme {
	s.key = k
	return s
}

// at has a timestamp in a header. A tolerance of 0 does not enforce a window.
func (s scheme) at(header string, u unit, tolerance time.Duration) scheme {
	s.stamp, s.stamped = stamp{header: header, unit: u, tolerance: tolerance}, true
	return s
}

// public checks with a public key.
func (s scheme) public(a algorithm) scheme {
	s.algorithm, s.key, s.digest = a, keyPublic, ""
	return s
}

// pairs is a header of k=v pairs: a timestamp, and signatures under a tag over
// the timestamp, a dot and the body.
func pairs(header, stampKey, tag string) scheme {
	return scheme{
		headers: []string{header},
		grammar: grammar{format: formatPairs, delimiter: ",", stampKey: stampKey},
		tag:     tag, encoding: encodingHex, digest: digestSHA256, key: keyUTF8,
		message: "{timestamp}.{body}",
		stamp:   stamp{unit: unitSeconds, tolerance: defaultTolerance}, stamped: true,
	}
}

// timed sets unit and tolerance of a timestamp.
func (s scheme) timed(u unit, tolerance time.Duration) scheme {
	s.stamp.unit, s.stamp.tolerance = u, tolerance
	return s
}

// tagged is a header of tag=signature pairs over the body.
func tagged(header, tag string) scheme {
	s := bodyHMAC(header, "", encodingHex)
	s.grammar, s.tag = grammar{format: formatPairs, delimiter: ","}, tag
	return s
}

// shown is a secret that a header shows.
func shown(header string) scheme { return scheme{kind: kindToken, headers: []string{header}} }

// aliased adds a second family of header names.
func (s scheme) aliased(from, to string) scheme {
	s.alias = alias{from: from, to: to}
	return s
}

func find(name string) (*row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return &table[i], true
}

// public fills in the defaults and copies what a caller could change.
func (r *row) public() Preset {
	p := r.Preset
	p.Methods, p.Handshakes = slices.Clone(p.Methods), slices.Clone(p.Handshakes)
	if p.MaxBody == 0 {
		p.MaxBody = defaultMaxBody
	}
	if p.Class == "" {
		p.Class = Verified
	}
	if r.scheme.kind == kindBasic {
		p.Challenge = `Basic realm="webhooks", charset="UTF-8"` // RFC 7617, 2.1
	}
	p.Docs = docs[p.Name]
	return p
}

// describe reads a source's options into the scheme it means.
func (r *row) describe(c *checklist, o Options) scheme {
	rd := newReader(c, "scheme_options", o.SchemeOptions)
	s := r.read(rd)
	rd.finish()
	return s
}

// read is describe but for what the scheme does not know.
func (r *row) read(rd *reader) scheme {
	s := r.scheme
	if s.class = r.Class; s.class == "" {
		s.class = Verified
	}
	if s.stamped {
		s.stamp.tolerance = rd.duration("tolerance", s.stamp.tolerance)
	}
	if r.options != nil {
		r.options(rd, &s)
	}
	return s
}
