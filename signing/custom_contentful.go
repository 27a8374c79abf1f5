package signing

import (
	"net/http"
	"slices"
	"strings"
)

// Contentful signs a canonical form of the request: method, path, chosen
// headers and body (@contentful/node-apps-toolkit, signRequest).

const (
	contentfulNames = "x-contentful-signed-headers"
	contentfulStamp = "x-contentful-timestamp"
	maxSignedNames  = 64
)

// contentfulMessages are METHOD, PATH, name:value;… and BODY, a line each.
// The toolkit escapes the query as one value and then the whole path once
// more; what documents describe is one escaping less, so that counts too.
// Each form has only one URL.
func contentfulMessages(in *input) ([][]piece, *Rejection) {
	headers, rej := contentfulHeaders(in)
	if rej != nil {
		return nil, rej
	}
	path, query := in.path(), in.request.RawQuery
	paths := []string{path}
	if query != "" {
		escaped := path + "?" + percentEncode(query, componentSafe)
		paths = []string{percentEncode(escaped, uriSafe), escaped, percentEncode(path+"?"+query, uriSafe)}
	} else if again := percentEncode(path, uriSafe); again != path {
		paths = append(paths, again)
	}
	var messages [][]piece
	for _, p := range paths {
		messages = append(messages, []piece{{text: in.request.Method + "\n" + p + "\n" + headers + "\n"}, {bytes: in.request.Body}})
	}
	return messages, nil
}

// contentfulHeaders are the signed headers, sorted by name. The timestamp
// must be one of them.
func contentfulHeaders(in *input) (string, *Rejection) {
	list, rej := in.needed(contentfulNames, ReasonMissingPart)
	if rej != nil {
		return "", rej
	}
	names := strings.Split(strings.ToLower(list), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if !slices.Contains(names, contentfulStamp) || len(names) > maxSignedNames {
		return "", reject(ReasonMissingPart, "%s does not name %s", contentfulNames, contentfulStamp)
	}
	signed := make([]string, len(names))
	for i, name := range names {
		value, rej := in.needed(name, ReasonMissingPart)
		if rej != nil {
			return "", rej
		}
		signed[i] = name + ":" + value
	}
	return strings.Join(signed, ";"), nil
}

// What JavaScript's encodeURIComponent and encodeURI leave alone besides
// letters and digits.
const (
	componentSafe = "-_.!~*'()"
	uriSafe       = componentSafe + ";,/?:@&=+$#"
)

// completeContentful adds the list of signed headers.
func completeContentful(r *Request) error {
	setAbsent(r.Header, contentfulStamp, unitMillis.format(r.Now))
	if r.Header.Get(contentfulNames) != "" {
		return nil
	}
	names := []string{contentfulNames, contentfulStamp}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-contentful-") && name != "x-contentful-signature" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	r.Header[http.CanonicalHeaderKey(contentfulNames)] = []string{strings.Join(names, ",")}
	return nil
}
