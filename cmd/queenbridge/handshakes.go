package main

// handshakeNotes say what a handshake means for who sets a source up.
var handshakeNotes = map[string]string{
	"hub-challenge":        "the provider asks with GET and hub.verify_token: it must equal scheme_options.verify_token",
	"echo-challenge":       "the provider asks with GET ?challenge=…: the bridge must be reachable when you save",
	"x-crc":                "the provider asks with GET ?crc_token=… when you save and every hour: signed with the newest secret",
	"braintree-challenge":  "the provider asks with GET ?bt_challenge=… when you save",
	"linkedin-challenge":   "the provider asks with GET ?challengeCode=… when you save and every two hours",
	"ebay-challenge":       "the provider asks with GET ?challenge_code=… when you save: scheme_options.verification_token and public_url must be exactly what you paste there",
	"okta-challenge":       "press Verify after saving: the provider asks with GET, with the same authentication field",
	"adobe-sign-clientid":  "the provider asks with GET when you save: its client id must be in scheme_options.client_ids",
	"head":                 "the provider asks with HEAD when you save",
	"get-probe":            "the provider asks with GET when you save",
	"cloudevents-options":  "the provider asks with OPTIONS: its origin must be in scheme_options.allowed_origins",
	"graph-validation":     "the provider asks with POST ?validationToken=… when you create the subscription",
	"eventgrid-validation": "the provider sends a signed validation event when you create the subscription",
	"slack-challenge":      "the provider sends a signed challenge when you save: set the secret first",
	"zoom-validation":      "press Validate: the provider sends a signed challenge, again every 72 hours; set the secret first",
	"twitch-challenge":     "the provider sends a signed challenge when you create the subscription: set the secret first",
	"discord-ping":         "the provider sends good and bad signatures when you save: set the public key first",
	"asana-secret":         "the provider hands over the secret when the webhook is created: scheme_options.armed must be true then",
	"notion-token":         "the provider hands over a token when you create the subscription: scheme_options.armed must be true then",
	"sns-confirm":          "the subscription confirms itself, if its topic is in scheme_options.topics",
	"monday-challenge":     "the provider sends a challenge when you save",
	"woo-ping":             "the provider sends a ping without signature when you save: it is answered, nothing is stored",
	"mandrill-test":        "the provider sends an empty batch when you save: it is answered, nothing is stored",
}
