package signing

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// This file answers the handshakes that are no deliveries: GET, HEAD and
// OPTIONS. Some of them make us sign what the sender chose, with the key that
// signs events; their guards take nothing that could be part of an event.

// hubChallenge proves to Meta that the operator owns both ends.
func hubChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	mode, is := queryHandshake(r, "hub.mode")
	if !is {
		return Reply{}, false, nil
	}
	shown, _ := queryText(r, "hub.verify_token")
	want := v.scheme.settings.verifyToken
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(want))
	switch {
	case mode != "subscribe":
		return forbidden("hub.mode is not subscribe"), true, nil
	case want == "":
		return forbidden("the source has no scheme_options.verify_token: set the one that was typed in at the provider"), true, nil
	case subtle.ConstantTimeCompare(a[:], b[:]) != 1:
		return forbidden("hub.verify_token is not scheme_options.verify_token: both must be the same text"), true, nil
	}
	text, _ := queryText(r, "hub.challenge")
	return echo(text), true, nil
}

// echoChallenge repeats a value (Dropbox, Nylas).
func echoChallenge(_ *Verifier, r *Request) (Reply, bool, error) {
	text, is := queryHandshake(r, "challenge")
	if !is {
		return Reply{}, false, nil
	}
	return echo(text), true, nil
}

// crcToken has no character that JSON needs, so the answer is the signature
// of no body.
var crcToken = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{1,256}$`)

// crcChallenge signs a token for X.
func crcChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	text, is := queryHandshake(r, "crc_token")
	if !is {
		return Reply{}, false, nil
	}
	if !crcToken.MatchString(text) {
		return badHandshake("crc_token"), true, nil
	}
	return echoJSON("response_token", "sha256="+v.mac([]byte(text))), true, nil
}

var uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// linkedInChallenge signs a UUID. What LinkedIn signs of an event begins with
// "hmacsha256=".
func linkedInChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	text, is := queryHandshake(r, "challengeCode")
	if !is {
		return Reply{}, false, nil
	}
	if !uuidText.MatchString(text) {
		return badHandshake("challengeCode"), true, nil
	}
	return echoJSON("challengeCode", text, "challengeResponse", v.mac([]byte(text))), true, nil
}

// ebayChallenge hashes the code with the token and URL that eBay was given.
func ebayChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	code, is := queryHandshake(r, "challenge_code")
	if !is {
		return Reply{}, false, nil
	}
	switch {
	case v.scheme.settings.endpointToken == "":
		return Reply{Status: http.StatusBadRequest, Detail: "the source has no scheme_options.verification_token: set the one that was typed in at eBay"}, true, nil
	case code == "" || len(code) > maxHandshakeText:
		return badHandshake("challenge_code"), true, nil
	}
	sum := sha256.Sum256([]byte(code + v.scheme.settings.endpointToken + v.publicURL))
	return echoJSON("challengeResponse", hex.EncodeToString(sum[:])), true, nil
}

// oktaChallenge repeats a header, for those who show the credential.
func oktaChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	text, is := headerHandshake(r, http.MethodGet, "X-Okta-Verification-Challenge")
	if !is {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	if text = utf8Text(text); text == "" || len(text) > maxHandshakeText {
		return badHandshake("X-Okta-Verification-Challenge"), true, nil
	}
	return echoJSON("verification", text), true, nil
}

// headProbe and getProbe answer the probe of a webhook that is being made.
func headProbe(_ *Verifier, r *Request) (Reply, bool, error) {
	return Reply{Status: http.StatusOK}, r.Method == http.MethodHead, nil
}

func getProbe(_ *Verifier, r *Request) (Reply, bool, error) {
	return Reply{Status: http.StatusOK}, r.Method == http.MethodGet, nil
}

// optionsChallenge allows the origin of a CloudEvents sender to deliver
// (CloudEvents, HTTP 1.1 Web Hooks for Event Delivery, 4).
func optionsChallenge(v *Verifier, r *Request) (Reply, bool, error) {
	origin, is := headerHandshake(r, http.MethodOptions, "WebHook-Request-Origin")
	if !is {
		return Reply{}, false, nil
	}
	allowed := v.scheme.settings.origins
	switch {
	case origin == "" || len(origin) > maxHandshakeText:
		return badHandshake("WebHook-Request-Origin"), true, nil
	case slices.Contains(allowed, "*"):
		origin = "*"
	case !slices.ContainsFunc(allowed, func(o string) bool { return strings.EqualFold(o, origin) }):
		return forbidden("WebHook-Request-Origin is not in scheme_options.allowed_origins"), true, nil
	}
	h := http.Header{"Webhook-Allowed-Origin": {origin}, "Allow": {http.MethodPost}}
	if _, asked := headerHandshake(r, http.MethodOptions, "WebHook-Request-Rate"); asked {
		h["Webhook-Allowed-Rate"] = []string{"*"}
	}
	return Reply{Status: http.StatusOK, Header: h}, true, nil
}
