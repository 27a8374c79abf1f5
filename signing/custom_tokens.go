package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// These providers sign a JSON Web Token that says something of the request.

// tokenScheme is one whose token is made with a secret.
func tokenScheme(rules tokenRules) scheme {
	rules.algorithms = []string{"HS256"}
	return scheme{
		kind: kindCustom, prove: proveToken, sign: signToken,
		key: keyUTF8, digest: digestSHA256, encoding: encodingBase64URL, settings: settings{token: rules},
	}
}

// netlifyToken says which body it belongs to. It never ends.
var netlifyToken = tokenRules{header: "X-Webhook-Signature", issuers: []string{"netlify"}, bodyHash: "sha256"}

var mondayToken = tokenRules{header: "Authorization", expires: true}

// atlassianToken says which URL it belongs to, not which body.
var atlassianToken = tokenRules{header: "Authorization", prefix: "JWT ", expires: true, check: checkQSH, forged: forgeQSH}

// checkQSH compares the claim qsh with the hash of the request's canonical
// form. A token of the browser side (context-qsh) fits every URL: it is no
// proof of a webhook.
func checkQSH(_ *Verifier, in *input, claims *document) *Rejection {
	return claims.hashIs("qsh", canonicalHash(in))
}

func forgeQSH(_ *Verifier, in *input) map[string]any {
	return map[string]any{"qsh": canonicalHash(in), "iss": "client"}
}

// canonicalHash is the hash of METHOD&path&query (Atlassian Connect,
// "Creating a query string hash"): the path of public_url, the parameters
// sorted, the values of one name sorted and joined by a comma; jwt is left out.
func canonicalHash(in *input) string {
	path := strings.TrimSuffix(in.path(), "/")
	if path == "" {
		path = "/"
	}
	text := strings.ToUpper(in.request.Method) + "&" + strings.ReplaceAll(path, "&", "%26") + "&" + canonicalQuery(in.request.RawQuery)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func canonicalQuery(rawQuery string) string {
	values := make(map[string][]string)
	for f, err := range formFields(rawQuery) {
		if err == nil && f.name != "jwt" {
			values[f.name] = append(values[f.name], f.value)
		}
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list := values[name]
		slices.Sort(list)
		for i := range list {
			list[i] = escapeURI(list[i])
		}
		pairs = append(pairs, escapeURI(name)+"="+strings.Join(list, ","))
	}
	return strings.Join(pairs, "&")
}

// escapeURI escapes all but the unreserved characters of RFC 3986.
func escapeURI(text string) string { return percentEncode(text, "-_.~") }

// messageBirdToken says which body and URL it belongs to.
var messageBirdToken = tokenRules{header: "MessageBird-Signature-JWT", expires: true, check: checkMessageBird, forged: forgeMessageBird}

func checkMessageBird(_ *Verifier, in *input, claims *document) *Rejection {
	if rej := claims.hashIs("url_hash", hexDigest([]byte(withQuery(in.url, in.request.RawQuery)))); rej != nil {
		return rej
	}
	return checkPayloadHash(nil, in, claims)
}

func forgeMessageBird(_ *Verifier, in *input) map[string]any {
	return map[string]any{"iss": "MessageBird", "url_hash": hexDigest([]byte(withQuery(in.url, in.request.RawQuery))), "payload_hash": bodySHA256(in.request)}
}

// checkPayloadHash judges the hash of the body, which may be left out where
// there is none.
func checkPayloadHash(_ *Verifier, in *input, claims *document) *Rejection {
	if len(in.request.Body) == 0 && !claims.has("payload_hash") {
		return nil
	}
	return claims.hashIs("payload_hash", bodySHA256(in.request))
}

func forgePayloadHash(_ *Verifier, in *input) map[string]any {
	return map[string]any{"payload_hash": bodySHA256(in.request)}
}

func vonageOptions(r *reader, s *scheme) {
	s.settings.token.maxAge = r.duration("tolerance", defaultTolerance)
}
