package signing

import (
	"net/http"
	"unicode/utf8"
)

// handshakeFunc answers a request that is no event; false where it is one.
type handshakeFunc func(v *Verifier, r *Request) (Reply, bool, error)

// maxHandshakeText bounds what a handshake echoes or hands over, in bytes.
const maxHandshakeText = 512

// handshakes are the functions of the names in Preset.Handshakes.
var handshakes = map[string]handshakeFunc{
	"hub-challenge":        hubChallenge,
	"echo-challenge":       echoChallenge,
	"x-crc":                crcChallenge,
	"braintree-challenge":  answerBraintree,
	"linkedin-challenge":   linkedInChallenge,
	"ebay-challenge":       ebayChallenge,
	"okta-challenge":       oktaChallenge,
	"adobe-sign-clientid":  adobeChallenge,
	"head":                 headProbe,
	"get-probe":            getProbe,
	"cloudevents-options":  optionsChallenge,
	"graph-validation":     graphValidation,
	"eventgrid-validation": eventGridValidation,
	"slack-challenge":      slackChallenge,
	"zoom-validation":      zoomValidation,
	"twitch-challenge":     twitchChallenge,
	"discord-ping":         discordPing,
	"asana-secret":         asanaSecret,
	"notion-token":         notionToken,
	"sns-confirm":          snsConfirm,
	"monday-challenge":     mondayChallenge,
	"woo-ping":             wooPing,
	"mandrill-test":        mandrillTest,
}

// Handshake answers the request when it is a handshake of the scheme: nothing
// is queued then. False means it is none. The error is a *[Rejection] when the
// handshake has to be proven and is not, or a *[FetchError]. A Reply with a
// status of 400 or more is a handshake that its guard refused.
func (v *Verifier) Handshake(r *Request) (Reply, bool, error) {
	for _, name := range v.row.Handshakes {
		if reply, is, err := handshakes[name](v, r); is {
			return reply, true, err
		}
	}
	return Reply{}, false, nil
}

// echo answers with a text the sender chose. It is plain text and must not be
// taken for anything else by a browser.
func echo(text string) Reply {
	if text == "" || len(text) > maxHandshakeText || !utf8.ValidString(text) {
		return badHandshake("the text to repeat")
	}
	return Reply{Status: http.StatusOK, Header: nosniff(), Body: []byte(text), ContentType: "text/plain"}
}

// echoJSON answers with an object of texts, in order.
func echoJSON(pairs ...string) Reply {
	body := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, quoteJSON(pairs[i])...)
		body = append(body, ':')
		body = append(body, quoteJSON(pairs[i+1])...)
	}
	return Reply{Status: http.StatusOK, Header: nosniff(), Body: append(body, '}'), ContentType: "application/json"}
}

func nosniff() http.Header { return http.Header{"X-Content-Type-Options": {"nosniff"}} }

// badHandshake is the answer to a handshake whose text is refused; what names
// the text.
func badHandshake(what string) Reply {
	return Reply{Status: http.StatusBadRequest, Detail: what + " is missing, too long, or not of the form this handshake takes"}
}

func forbidden(detail string) Reply { return Reply{Status: http.StatusForbidden, Detail: detail} }

// queryText is a decoded query parameter and whether it is there at all; one
// that stands twice with different values, or cannot be decoded, has no text.
func queryText(r *Request, name string) (text string, is bool) {
	count := 0
	for f, err := range formFields(r.RawQuery) {
		if err != nil || f.name != name {
			continue
		}
		if count++; count > 1 && f.value != text {
			return "", true
		}
		text = f.value
	}
	return text, count > 0
}

// queryHandshake is queryText of a GET.
func queryHandshake(r *Request, name string) (text string, is bool) {
	if r.Method != http.MethodGet {
		return "", false
	}
	return queryText(r, name)
}

// headerHandshake is the value of a header of a request with this method and
// whether it is there at all.
func headerHandshake(r *Request, method, name string) (text string, is bool) {
	if r.Method != method || len(r.Header[http.CanonicalHeaderKey(name)]) == 0 {
		return "", false
	}
	text, _ = headerValue(r.Header, name)
	return text, true
}

// bodyText is a string in the body; nothing else counts.
func bodyText(values *Values, path string) string {
	raw, ok := values.at(path)
	if !ok || raw[0] != '"' {
		return ""
	}
	text, _ := scalar(raw)
	return text
}

// onlyMember reports whether the body is an object with members of this one
// name alone.
func onlyMember(values *Values, name string) bool {
	doc, ok := values.at(wholeDocument)
	if !ok || doc[0] != '{' {
		return false
	}
	count, others := 0, 0
	walk(doc, func(m member) bool {
		if keyIs(m.key, name) {
			count++
		} else {
			others++
		}
		return others == 0
	})
	return count > 0 && others == 0
}
