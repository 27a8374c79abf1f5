package signing

import (
	"strings"
)

// hmacOptions reads the generic hmac verifier.
func hmacOptions(r *reader) scheme {
	s := scheme{
		encoding: encoding(r.oneOf("encoding", encodings)),
		digest:   digest(r.oneOf("digest", digests)),
		key:      keyForm(r.oneOf("key", keyForms)),
		message:  "{body}",
	}
	hmacSource(r, &s)
	hmacGrammar(r, &s)
	if m := r.text("message"); m != "" {
		s.message = m
	}
	hmacTimestamp(r, &s)
	return s
}

// hmacSource reads where the signature is: exactly one of four keys.
func hmacSource(r *reader, s *scheme) {
	header := headerName(r, "header")
	s.headers, s.json, s.form = r.list("headers"), jsonPathOption(r, "json"), r.text("form")
	for _, name := range s.headers {
		checkHeaderName(r, "headers", name)
	}
	set := countSet(r, "header", "headers", "json", "form")
	switch {
	case set == 0:
		r.add(r.path, "does not say where the signature is: set header, headers, json or form")
	case set > 1:
		r.add(r.path, "says in more than one way where the signature is: keep one of header, headers, json, form")
	}
	if header != "" {
		s.headers = []string{header}
	}
}

func countSet(r *reader, keys ...string) int {
	n := 0
	for _, k := range keys {
		if r.has(k) {
			n++
		}
	}
	return n
}

// hmacGrammar reads how the signatures are written.
func hmacGrammar(r *reader, s *scheme) {
	s.format = format(r.oneOf("format", formats))
	s.prefix, s.tag, s.stampKey = r.text("prefix"), r.text("signature_key"), r.text("timestamp_key")
	if s.delimiter = r.text("delimiter"); s.delimiter == "" {
		s.delimiter = ","
	}
	paired := s.format == formatPairs || s.format == formatGroups
	tagged := paired || s.format == formatTags
	if tagged && s.tag == "" && !r.has("signature_key") {
		r.add(r.at("signature_key"), "is required with format %s: the key or tag of the signature, such as v1", s.format)
	}
	misplaced := func(key, text, where string, fits bool) {
		if text != "" && !fits {
			r.add(r.at(key), "means nothing with format %s: it belongs to %s", s.format, where)
		}
	}
	misplaced("signature_key", s.tag, "pairs, groups and tags", tagged)
	misplaced("timestamp_key", s.stampKey, "pairs and groups", paired)
	misplaced("prefix", s.prefix, "plain and list", s.format == formatPlain || s.format == formatList)
}

// hmacTimestamp reads where the timestamp is and how it is judged. The window
// may also be written as tolerance beside the other options, as for presets.
func hmacTimestamp(r *reader, s *scheme) {
	tolerance := r.duration("tolerance", defaultTolerance)
	t := r.section("timestamp")
	s.stamp = stamp{
		header: headerName(t, "header"), json: jsonPathOption(t, "json"),
		unit: unit(t.oneOf("unit", units)), tolerance: t.duration("tolerance", tolerance),
	}
	t.finish()
	sources := countSet(t, "header", "json")
	if s.stampKey != "" || s.format == formatPositional {
		sources++
	}
	s.stamped = sources > 0
	switch {
	case sources > 1:
		t.add(t.path, "says in more than one way where the timestamp is: keep one of timestamp.header, timestamp.json, timestamp_key, format positional")
	case sources == 0 && r.has("timestamp"):
		t.add(t.path, "does not say where the timestamp is: set header or json, or timestamp_key beside it")
	case sources == 0 && r.has("tolerance"):
		r.add(r.at("tolerance"), "means nothing without a timestamp: set timestamp.header, timestamp.json or timestamp_key")
	}
}

// tokenOptions reads the generic token verifier.
func tokenOptions(r *reader) scheme {
	s := scheme{kind: kindToken}
	header := headerName(r, "header")
	s.prefix, s.query, s.json = r.text("prefix"), r.text("query"), jsonPathOption(r, "json")
	switch set := countSet(r, "header", "query", "json"); {
	case set == 0:
		r.add(r.path, "does not say where the token is: set header, query or json")
	case set > 1:
		r.add(r.path, "says in more than one way where the token is: keep one of header, query, json")
	case s.prefix != "" && header == "":
		r.add(r.at("prefix"), "belongs to header: a query parameter or body field has none")
	}
	if header != "" {
		s.headers = []string{header}
	}
	return s
}

func headerName(r *reader, key string) string {
	name := r.text(key)
	checkHeaderName(r, key, name)
	return name
}

func checkHeaderName(r *reader, key, name string) {
	if name != "" && !isToken(name) {
		r.add(r.at(key), "is no header name: %q", name)
	}
}

// isToken reports whether name may be a field name (RFC 9110, 5.6.2).
func isToken(name string) bool {
	return name != "" && strings.IndexFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", c)
	}) < 0
}

func jsonPathOption(r *reader, key string) string {
	text := r.text(key)
	if _, err := parsePath(text); text != "" && err != nil {
		r.add(r.at(key), "%s", err)
	}
	return text
}
