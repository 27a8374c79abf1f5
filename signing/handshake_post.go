package signing

import (
	"bytes"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

// This file answers the handshakes that come the way of events.

// slackChallenge echoes the challenge of a url_verification request. Slack
// signs it like an event, so it is verified first: an open echo would tell
// anyone that the source exists and reflect their text.
func slackChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	const kind = "url_verification"
	values := NewValues(r)
	if r.Method != http.MethodPost || !bytes.Contains(r.Body, []byte(kind)) || bodyText(values, "type") != kind {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	return echo(bodyText(values, "challenge")), true, nil
}

// zoomValidation signs a token for Zoom, with the secret that Zoom used. What
// Zoom signs of an event has colons, so a token with one could be part of a
// forged event.
func zoomValidation(v *Verifier, r *Request) (Reply, bool, error) {
	const kind = "endpoint.url_validation"
	values := NewValues(r)
	if r.Method != http.MethodPost || !bytes.Contains(r.Body, []byte(kind)) || bodyText(values, "event") != kind {
		return Reply{}, false, nil
	}
	proof, err := v.Verify(r)
	if err != nil {
		return Reply{}, true, err
	}
	text := bodyText(values, "payload.plainToken")
	if text == "" || len(text) > maxHandshakeText || strings.Contains(text, ":") {
		return badHandshake("payload.plainToken"), true, nil
	}
	encrypted := v.keys[proof.Secret].mac([]piece{{text: text}}, encodingHex)
	return echoJSON("plainToken", text, "encryptedToken", encrypted), true, nil
}

// twitchChallenge echoes the challenge of a subscription.
func twitchChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	kind, _ := headerHandshake(r, http.MethodPost, "Twitch-Eventsub-Message-Type")
	if kind != "webhook_callback_verification" {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	return echo(bodyText(NewValues(r), "challenge")), true, nil
}

// discordPing answers a PING: of interactions (type 1) with a pong, of
// webhook events (type 0) with nothing, but a Content-Type. Discord also sends
// pings with bad signatures and wants 401 for them.
func discordPing(v *Verifier, r *Request) (Reply, bool, error) {
	values := NewValues(r)
	raw, _ := values.at("type")
	kind := string(raw)
	if r.Method != http.MethodPost || kind != "0" && kind != "1" || values.doc.has("event") {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	if kind == "0" {
		return Reply{Status: http.StatusNoContent, ContentType: "application/json"}, true, nil
	}
	return Reply{Status: http.StatusOK, Body: []byte(`{"type":1}`), ContentType: "application/json"}, true, nil
}

// eventGridValidation returns the code of a subscription that is being made.
func eventGridValidation(v *Verifier, r *Request) (Reply, bool, error) {
	kind, _ := headerHandshake(r, http.MethodPost, "Aeg-Event-Type")
	if kind != "SubscriptionValidation" {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	code := bodyText(NewValues(r), "0.data.validationCode")
	if code == "" || len(code) > maxHandshakeText {
		return badHandshake("data.validationCode"), true, nil
	}
	return echoJSON("validationResponse", code), true, nil
}

// handedOver is a secret as providers write them: it goes back in a header.
var handedOver = regexp.MustCompile(`^[!-~]{1,512}$`)

// notArmed is the refusal of a new secret that nobody waits for: it would
// replace the key of the source.
func notArmed(where string) error {
	return reject(ReasonNotAllowed, "%s hands over a secret, but scheme_options.armed is not set", where)
}

// asanaSecret takes the secret of a new webhook, and gives it back.
func asanaSecret(v *Verifier, r *Request) (Reply, bool, error) {
	const header = "X-Hook-Secret"
	secret, is := headerHandshake(r, http.MethodPost, header)
	switch {
	case !is:
		return Reply{}, false, nil
	case !v.scheme.settings.armed:
		return Reply{}, true, notArmed(header)
	case !handedOver.MatchString(secret):
		return badHandshake(header), true, nil
	}
	return Reply{Status: http.StatusOK, Header: http.Header{header: {secret}}, Surface: secret}, true, nil
}

// notionToken takes the token of a new subscription. Where nobody waits for
// it, the request is judged as a delivery.
func notionToken(v *Verifier, r *Request) (Reply, bool, error) {
	const member = "verification_token"
	values := NewValues(r)
	if r.Method != http.MethodPost || !v.scheme.settings.armed || !onlyMember(values, member) {
		return Reply{}, false, nil
	}
	token := bodyText(values, member)
	if token == "" || len(token) > maxHandshakeText {
		return badHandshake(member), true, nil
	}
	return Reply{Status: http.StatusOK, Surface: token}, true, nil
}

// mondayChallenge gives back the challenge of a new webhook. monday signs it
// with a token only in some kinds of apps.
func mondayChallenge(_ *Verifier, r *Request) (Reply, bool, error) {
	values := NewValues(r)
	if r.Method != http.MethodPost || !onlyMember(values, "challenge") {
		return Reply{}, false, nil
	}
	text := bodyText(values, "challenge")
	if text == "" || len(text) > maxHandshakeText {
		return badHandshake("challenge"), true, nil
	}
	return echoJSON("challenge", text), true, nil
}

var wooBody = regexp.MustCompile(`^webhook_id=[0-9]{1,20}$`)

// wooPing answers the ping WooCommerce sends, without signature, when a
// webhook is saved.
func wooPing(_ *Verifier, r *Request) (Reply, bool, error) {
	return Reply{Status: http.StatusOK}, r.Method == http.MethodPost && wooBody.Match(r.Body), nil
}

// mandrillTestKey is what Mandrill signs with until a webhook has a key.
const mandrillTestKey = "test-webhook"

// mandrillTest answers the empty batch of a new webhook. It may be signed by
// a key that everyone knows, so nothing else may.
func mandrillTest(v *Verifier, r *Request) (Reply, bool, error) {
	items, is := formItems(mandrillField)(NewValues(r))
	if r.Method != http.MethodPost || !is || len(items) > 0 {
		return Reply{}, false, nil
	}
	_, err := v.Verify(r)
	var rejection *Rejection
	if errors.As(err, &rejection) && rejection.Reason == ReasonBadSignature {
		test := Verifier{scheme: v.scheme, row: v.row, publicURL: v.publicURL, layouts: v.layouts, required: v.required, class: v.class}
		if addErr := test.addSecret(mandrillTestKey); addErr == nil {
			_, err = test.Verify(r)
		}
	}
	if err != nil {
		return Reply{}, true, err
	}
	return Reply{Status: http.StatusOK}, true, nil
}
