package signing

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// hmacOptions reads the generic hmac verifier.
func hmacOptions(r *reader, s *scheme) {
	s.encoding = encoding(r.oneOf("encoding", encodings))
	s.digest, s.key = digest(r.oneOf("digest", digests)), keyForm(r.oneOf("key", keyForms))
	signatureOptions(r, s)
}

// publicKeyOptions reads the generic public-key verifier: hmac's options, with
// an algorithm in place of digest and key.
func publicKeyOptions(r *reader, s *scheme) {
	if !r.has("algorithm") {
		r.add(r.at("algorithm"), "is required: one of %s", strings.Join(algorithms, ", "))
	}
	s.encoding = encoding(r.oneOf("encoding", encodings))
	s.algorithm, s.key = algorithm(r.oneOf("algorithm", algorithms)), keyPublic
	signatureOptions(r, s)
}

func signatureOptions(r *reader, s *scheme) {
	s.message = "{body}"
	hmacSource(r, s)
	hmacGrammar(r, s)
	if m := r.text("message"); m != "" {
		s.message = m
	}
	hmacTimestamp(r, s)
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
func tokenOptions(r *reader, s *scheme) {
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
}

// webTokenOptions reads the generic jwt verifier.
func webTokenOptions(r *reader, s *scheme) {
	rules := &s.settings.token
	rules.header, rules.prefix, rules.expires = "Authorization", "Bearer ", true
	if name := headerName(r, "header"); name != "" {
		rules.header = name
	}
	switch prefix, set := r.take("prefix"); {
	case prefix == "":
		rules.prefix = "" // a header of its own often holds the bare token
	case set:
		rules.prefix = r.text("prefix")
	default:
		rules.bare = !strings.EqualFold(rules.header, "Authorization")
	}
	webTokenAlgorithms(r, s)
	rules.issuers, rules.audience = r.oneOrMore("issuer"), r.text("audience")
	rules.maxAge = r.duration("max_age", 0)
	rules.bodyHash = strings.ReplaceAll(r.text("body_hash_claim"), ".", `\.`)
	if rules.bodyHash != "" {
		s.class = Verified
	}
}

// webTokenAlgorithms reads which signatures count and where their keys are.
func webTokenAlgorithms(r *reader, s *scheme) {
	rules := &s.settings.token
	if rules.algorithms = r.oneOrMore("algorithms"); len(rules.algorithms) == 0 && !r.has("algorithms") {
		r.add(r.at("algorithms"), "is required: a list of HS256, RS256, ES256")
	}
	secrets, keys := false, false
	for i, name := range rules.algorithms {
		a, known := tokenAlgorithms[name]
		if !known {
			r.add(fmt.Sprintf("%s[%d]", r.at("algorithms"), i), "must be HS256, RS256 or ES256, got %q", name)
		}
		secrets, keys = secrets || a == "", keys || a != ""
	}
	keysOption(r, s)
	for _, id := range slices.Sorted(maps.Keys(s.pinned)) {
		if algRSA.fits(s.pinned[id]) != nil && algECDSA.fits(s.pinned[id]) != nil {
			r.add(r.at("keys")+"."+id, "is %s: RS256 needs an RSA key of 1024 bits at least, ES256 an ECDSA key of curve P-256", keyKind(s.pinned[id]))
		}
	}
	if rules.jwksURL = r.text("jwks_url"); rules.jwksURL != "" {
		if u, err := url.Parse(rules.jwksURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			r.add(r.at("jwks_url"), "must be an https URL with a host and no user")
		}
		s.load = loadFromKeySet
	}
	if keys && len(s.pinned) == 0 && (rules.jwksURL == "" || !s.fetchKeys) {
		r.add(r.at("keys"), "or jwks_url is required for RS256 and ES256: where the public keys are")
	}
	if s.key, s.digest, s.encoding = keyUTF8, digestSHA256, encodingBase64URL; !secrets {
		s.secrets = secretsNone
	}
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
