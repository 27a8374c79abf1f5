package signing

import (
	"net/http"
	"slices"
	"strings"
)

// Plivo signs the URL with its sorted query, the sorted fields of a form and a
// nonce (Plivo SDKs, signature v3).

const plivoNonce = "X-Plivo-Signature-V3-Nonce"

// plivoMessages decodes names and values as the SDKs do; those of other
// languages do not decode the query, so that form is tried as well.
func plivoMessages(in *input) ([][]piece, *Rejection) {
	nonce, rej := in.needed(plivoNonce, ReasonMissingPart)
	if rej != nil {
		return nil, rej
	}
	fields, rej := plivoFields(in)
	if rej != nil {
		return nil, rej
	}
	decoded, raw := plivoQuery(in.request.RawQuery)
	var messages [][]piece
	for _, query := range slices.Compact([]string{decoded, raw}) {
		address := in.url
		if query != "" || fields != "" {
			address += "?" + query
		}
		if query != "" && fields != "" {
			address += "."
		}
		messages = append(messages, []piece{{text: address}, {text: fields}, {text: "." + nonce}})
	}
	return messages, nil
}

// plivoFields are name and value of every field, sorted, without separators.
// A body that is no form is not covered, so there must be none.
func plivoFields(in *input) (string, *Rejection) {
	r := in.request
	if len(r.Body) == 0 {
		return "", nil
	}
	if r.Method == http.MethodGet || !isForm(r.Header) {
		return "", reject(ReasonMalformedBody, "the body is no form, which is all that is signed")
	}
	fields, err := parseForm(r.Body)
	if err != nil {
		return "", reject(ReasonMalformedBody, "form body: %s", err)
	}
	var out strings.Builder
	for _, f := range sortFields(fields) {
		out.WriteString(f.name)
		out.WriteString(f.value)
	}
	return out.String(), nil
}

// plivoQuery is name=value&name=value, sorted: decoded, and as it was sent.
func plivoQuery(rawQuery string) (decoded, raw string) {
	var fields, texts []field
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		texts = append(texts, field{name, value})
		if f, err := formField(pair); err == nil {
			fields = append(fields, f)
		}
	}
	return joinPairs(fields), joinPairs(texts)
}

func joinPairs(fields []field) string {
	pairs := make([]string, len(fields))
	for i, f := range sortFields(fields) {
		pairs[i] = f.name + "=" + f.value
	}
	return strings.Join(pairs, "&")
}
