package main

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strings"

	"github.com/queenbridge/queenbridge/signing"
)

// secretForm is a way in which a pasted secret commonly differs from the one
// the provider signs with.
type secretForm struct {
	text string
	make func(secret string) []string
}

// secretForms: the text never says what a secret holds.
var secretForms = []secretForm{
	{"the secret has white space (a newline or a space) around it: remove it", func(s string) []string {
		return []string{strings.TrimSuffix(s, "\n"), strings.TrimSpace(s)}
	}},
	{"the provider's secret ends with white space that is missing here: it was pasted there with a newline or a space", func(s string) []string {
		return []string{s + "\n", s + "\r\n", s + " "}
	}},
	{"the secret has quotes around it: remove them", func(s string) []string {
		return []string{strings.Trim(strings.TrimSpace(s), `"'`)}
	}},
	{"the secret is used as text, whsec_ included: it is not base64 here", func(s string) []string {
		return []string{whsecOf(s)}
	}},
	{"the secret is used as text without whsec_: it is not base64 here", func(s string) []string {
		return []string{strings.TrimPrefix(s, "whsec_"), whsecOf(strings.TrimPrefix(s, "whsec_"))}
	}},
	{"the secret needs its prefix whsec_, which is missing here", func(s string) []string { return []string{"whsec_" + s} }},
	{"the key is what the secret's base64 stands for: the provider decodes it", decodedBase64},
	{"the key is what the secret's hex stands for: the provider decodes it", decodedHex},
	{"the key is the hex text itself, here it is decoded", func(s string) []string { return []string{hex.EncodeToString([]byte(s))} }},
	{"the key is the text itself, here it is decoded from base64", func(s string) []string {
		return []string{base64.StdEncoding.EncodeToString([]byte(s))}
	}},
	{`the header is "Bearer " and the secret: the word belongs to one of them only`, func(s string) []string {
		return []string{"Bearer " + s, strings.TrimPrefix(s, "Bearer ")}
	}},
}

// whsecOf is the secret whose key is the text itself, where keys are base64.
func whsecOf(text string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
}

func decodedBase64(secret string) []string {
	var out []string
	text := strings.TrimPrefix(strings.TrimSpace(secret), "whsec_")
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := e.DecodeString(text); err == nil {
			out = append(out, string(key))
		}
	}
	return out
}

func decodedHex(secret string) []string {
	key, err := hex.DecodeString(strings.TrimSpace(secret))
	if err != nil {
		return nil
	}
	return []string{string(key)}
}

// optionChange are scheme options that may be meant instead.
type optionChange struct {
	text    string
	options map[string]any
}

func optionChanges(o signing.Options) []optionChange {
	var all []optionChange
	add := func(name string, value any, words string) {
		all = append(all, optionChange{"scheme_options." + name + " should be " + words, withOption(maps.Clone(o.SchemeOptions), name, value)})
	}
	switch o.Scheme {
	case "hubspot":
		add("versions", []any{"v3", "v1", "v2"}, "a list with v1 or v2: this request is not signed as v3")
	case "hmac":
		for name, values := range hmacChoices {
			for _, value := range values {
				add(name, value, value)
			}
		}
	}
	return all
}

// hmacChoices are the other words of the verifier hmac, one changed at a time.
var hmacChoices = map[string][]string{
	"digest":   {"sha256", "sha1", "sha512"},
	"encoding": {"hex", "base64", "base64url"},
	"key":      {"utf8", "whsec", "base64", "hex"},
	"message":  {"{body}", "{timestamp}.{body}", "{timestamp}{body}", "{timestamp}:{body}", "{body}{timestamp}", "{url}{body}", "{body}{url}"},
}
