package signing

import "net/http"

// handshakeFunc answers a request that is no event; false where it is one.
type handshakeFunc func(v *Verifier, r *Request) (Reply, bool, error)

// maxHandshakeText bounds what a handshake echoes, in bytes.
const maxHandshakeText = 512

// Handshake answers the request when it is a handshake of the scheme: nothing
// is queued then. False means it is none. The error is a *[Rejection], when
// the handshake has to be proven and is not.
func (v *Verifier) Handshake(r *Request) (Reply, bool, error) {
	if v.handshake == nil {
		return Reply{}, false, nil
	}
	return v.handshake(v, r)
}

// slackChallenge echoes the challenge of a url_verification request. Slack
// signs it like an event, so it is verified first: an open echo would tell
// anyone that the source exists and reflect their text.
func slackChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	values := NewValues(r)
	if kind, _ := values.JSON("type"); r.Method != http.MethodPost || kind != "url_verification" {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	raw, ok := values.at("challenge")
	if !ok || raw[0] != '"' {
		return badHandshake(), true, nil
	}
	text, _ := scalar(raw)
	return echo(text), true, nil
}

// echo answers with a text the sender chose. It is plain text and must not be
// taken for anything else by a browser.
func echo(text string) Reply {
	if text == "" || len(text) > maxHandshakeText {
		return badHandshake()
	}
	return Reply{
		Status:      http.StatusOK,
		Header:      http.Header{"X-Content-Type-Options": {"nosniff"}},
		Body:        []byte(text),
		ContentType: "text/plain",
	}
}

// badHandshake is the answer to a handshake whose text is refused.
func badHandshake() Reply { return Reply{Status: http.StatusBadRequest} }
