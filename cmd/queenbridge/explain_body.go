package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// bodyChange is something that commonly happens to a body between the
// provider's signature and us. make undoes it: what the provider may have
// signed.
type bodyChange struct {
	text string
	make func(body []byte) [][]byte
}

var bodyChanges = []bodyChange{
	{"a newline was added at the end of the body", func(b []byte) [][]byte {
		return changed(b, bytes.TrimSuffix(b, []byte("\n")), bytes.TrimSuffix(b, []byte("\r\n")))
	}},
	{"the newline at the end of the body was removed", func(b []byte) [][]byte {
		return [][]byte{append(bytes.Clone(b), '\n'), append(bytes.Clone(b), "\r\n"...)}
	}},
	{"white space was added around the body", func(b []byte) [][]byte { return changed(b, bytes.TrimSpace(b)) }},
	{"line ends were changed from LF to CRLF", func(b []byte) [][]byte {
		return changed(b, bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")))
	}},
	{"line ends were changed from CRLF to LF", func(b []byte) [][]byte {
		return changed(b, bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n")))
	}},
	{"a byte order mark was added or removed", func(b []byte) [][]byte {
		return changed(b, bytes.TrimPrefix(b, []byte("\ufeff")), append([]byte("\ufeff"), b...))
	}},
	{"the JSON was written again with white space: the provider signed it compact", func(b []byte) [][]byte {
		return changed(b, compact(b))
	}},
	{"the JSON was written again without its white space: the provider signed it with spaces or indented", spacedJSON},
	{"non-ASCII characters were decoded: the provider signed them as \\uXXXX", func(b []byte) [][]byte {
		return changed(b, escapeRunes(b, isNotASCII), escapeRunes(compact(b), isNotASCII))
	}},
	{`slashes were escaped as \/: the provider signed them as they are`, func(b []byte) [][]byte {
		return changed(b, bytes.ReplaceAll(b, []byte(`\/`), []byte("/")))
	}},
	{"characters were escaped as \\uXXXX: the provider signed them as they are", func(b []byte) [][]byte { return changed(b, unescaped(b)...) }},
	{"<, > and & were decoded: the provider signed them as \\u003c, \\u003e, \\u0026", func(b []byte) [][]byte {
		return changed(b, escapeRunes(b, isHTML), escapeRunes(compact(b), isHTML))
	}},
	{`slashes were decoded: the provider signed them as \/`, func(b []byte) [][]byte {
		return changed(b, bytes.ReplaceAll(b, []byte("/"), []byte(`\/`)), escapeRunes(bytes.ReplaceAll(b, []byte("/"), []byte(`\/`)), isNotASCII))
	}},
	{"the JSON was decoded and encoded again, which changed its order or its numbers", func(b []byte) [][]byte { return changed(b, reencoded(b)...) }},
	{"the form was decoded and encoded again", reencodedForm},
	{"the body is base64 of the real one: a gateway encoded it", func(b []byte) [][]byte { return decodedBody(b) }},
	{"the body was encoded in UTF-8 twice", latin1},
	{"the body was written in ISO 8859-1: the provider signed UTF-8", fromLatin1},
	{"the JSON was taken out of a form: the provider signed the form (payload=…) as it was sent", wrapped},
	{"the body was lost: the provider signed an empty one", func(b []byte) [][]byte { return changed(b, []byte{}) }},
}

// changed leaves out what is no change.
func changed(body []byte, others ...[]byte) [][]byte {
	var out [][]byte
	for _, other := range others {
		if other != nil && !bytes.Equal(other, body) {
			out = append(out, other)
		}
	}
	return out
}

func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return nil
	}
	return out.Bytes()
}

// spacedJSON are the ways in which common libraries write JSON with spaces.
func spacedJSON(b []byte) [][]byte {
	short := compact(b)
	if short == nil {
		return nil
	}
	all := [][]byte{spaced(short)}
	for _, indent := range []string{"  ", "    ", "\t"} {
		var out bytes.Buffer
		if json.Indent(&out, b, "", indent) == nil {
			all = append(all, bytes.Clone(out.Bytes()), append(out.Bytes(), '\n'))
		}
	}
	return changed(b, append(all, append(bytes.Clone(short), '\n'), escapeRunes(spaced(short), isNotASCII))...)
}

// spaced writes a space behind each comma and colon of compact JSON, as
// Python does.
func spaced(short []byte) []byte {
	var out []byte
	inString, escaped := false, false
	for _, c := range short {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

func isNotASCII(r rune) bool { return r >= utf8.RuneSelf }
func isHTML(r rune) bool     { return r == '<' || r == '>' || r == '&' }

// escapeRunes writes characters as \uXXXX, lower-case hex, where they stand
// in UTF-8.
func escapeRunes(b []byte, which func(rune) bool) []byte {
	if b == nil || !utf8.Valid(b) {
		return nil
	}
	const digits = "0123456789abcdef"
	var out []byte
	for _, r := range string(b) {
		if !which(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = append(out, '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
		}
	}
	return out
}

// unescaped writes the JSON's characters as they are: its values in their
// order, so strings are decoded and encoded one by one.
func unescaped(b []byte) [][]byte {
	if compact(b) == nil {
		return nil
	}
	var out []byte
	for i := 0; i < len(b); {
		if b[i] != '"' {
			out = append(out, b[i])
			i++
			continue
		}
		end := stringEnd(b, i)
		out = append(out, plainString(b[i:end])...)
		i = end
	}
	return [][]byte{out, bytes.ReplaceAll(out, []byte(`\/`), []byte("/"))}
}

// stringEnd is the index behind the JSON string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(b))
}

func plainString(quotedText []byte) []byte {
	var text string
	if json.Unmarshal(quotedText, &text) != nil || strings.ContainsRune(text, utf8.RuneError) {
		return quotedText
	}
	return encodeJSON(text)
}

// encodeJSON is a value as JSON, <, > and & as they are.
func encodeJSON(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// reencoded sorts the keys, with numbers as they are and as floating point.
func reencoded(b []byte) [][]byte {
	var out [][]byte
	for _, exact := range []bool{true, false} {
		d := json.NewDecoder(bytes.NewReader(b))
		if exact {
			d.UseNumber()
		}
		var v any
		if d.Decode(&v) != nil {
			return nil
		}
		short := encodeJSON(v)
		html, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		out = append(out, short, html, spaced(short), escapeRunes(short, isNotASCII), escapeRunes(spaced(short), isNotASCII))
	}
	return out
}

func reencodedForm(b []byte) [][]byte {
	form, err := url.ParseQuery(string(b))
	if err != nil || !bytes.ContainsRune(b, '=') || compact(b) != nil {
		return nil
	}
	spaces := bytes.ReplaceAll(b, []byte("+"), []byte("%20"))
	pluses := bytes.ReplaceAll(b, []byte("%20"), []byte("+"))
	return changed(b, []byte(form.Encode()), spaces, pluses)
}

func decodedBody(b []byte) [][]byte {
	out, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(b)))
	if err != nil || len(b) == 0 {
		return nil
	}
	return [][]byte{out}
}

// latin1 undoes an encoding in UTF-8 of bytes that were UTF-8 already.
func latin1(b []byte) [][]byte {
	if !utf8.Valid(b) {
		return nil
	}
	var out []byte
	for _, r := range string(b) {
		if r > 0xff {
			return nil
		}
		out = append(out, byte(r))
	}
	return changed(b, out)
}

// fromLatin1 undoes an encoding in ISO 8859-1.
func fromLatin1(b []byte) [][]byte {
	if utf8.Valid(b) {
		return nil
	}
	var out []byte
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return [][]byte{out}
}

// wrapped are the forms that hold the JSON in a field payload, as GitHub and
// Slack send it; what they leave as it is differs.
func wrapped(b []byte) [][]byte {
	if compact(b) == nil {
		return nil
	}
	form := "payload=" + url.QueryEscape(string(b))
	ruby := strings.NewReplacer("%2A", "*", "~", "%7E").Replace(form)
	return [][]byte{[]byte(form), []byte(ruby), []byte(strings.ReplaceAll(form, "+", "%20"))}
}
