package signing

// communicationRows are the last part of table D.
var communicationRows = []row{
	{
		Preset: Preset{Name: "messagebird", TransactionID: "b:id | sha(body)", EventType: "b:type", Horizon: 24 * hour, NeedsURL: true},
		scheme: tokenScheme(messageBirdToken),
	},
	{
		Preset: Preset{Name: "vonage", TransactionID: "c(b:message_uuid,b:status?) | sha(body)", EventType: "b:status | =inbound", Horizon: 24 * hour},
		scheme: tokenScheme(tokenRules{header: "Authorization", prefix: "Bearer ", check: checkPayloadHash, forged: forgePayloadHash}), options: vonageOptions,
	},
	{
		Preset: Preset{Name: "telnyx", TransactionID: "b:data.id", EventType: "b:data.event_type", Horizon: 24 * hour},
		scheme: bodyHMAC("telnyx-signature-ed25519", "", encodingBase64).public(algEd25519).
			over("{timestamp}|{body}").at("telnyx-timestamp", unitSeconds, defaultTolerance),
	},
	{
		Preset: Preset{
			Name: "plivo", TransactionID: "c(f:MessageUUID,f:Status?) | c(f:CallUUID,f:Event?) | sha(body)", EventType: "f:Status | f:Event",
			Horizon: hour, NeedsURL: true, Methods: []string{"GET"},
			Sample: "MessageUUID=9f813b08-0976-4b16-bc77-3bf78f968079&Status=delivered&From=%2B14155550100", SampleType: formType,
		},
		// A signature for each of the account's tokens.
		scheme: scheme{
			headers: []string{"X-Plivo-Signature-V3"}, grammar: grammar{format: formatList, delimiter: ","},
			encoding: encodingBase64, digest: digestSHA256, key: keyUTF8, messages: plivoMessages,
		},
		fills: []fill{{header: plivoNonce, value: uuid}}, keep: []string{plivoNonce},
	},
	{
		Preset: Preset{Name: "mux", TransactionID: "b:id", EventType: "b:type", Horizon: 24 * hour},
		scheme: pairs("Mux-Signature", "t", "v1"),
	},
	{
		Preset: Preset{Name: "shippo", TransactionID: "sha(body)", EventType: "b:event", Horizon: 24 * hour},
		scheme: pairs("Shippo-Auth-Signature", "t", "v1"),
	},
	{
		Preset: Preset{Name: "tiktok", TransactionID: "sha(body)", EventType: "b:event", Horizon: 72 * hour},
		scheme: pairs("TikTok-Signature", "t", "s"),
	},
	{
		// A group of pairs for each secret while one is replaced.
		Preset: Preset{Name: "persona", TransactionID: "b:data.id", EventType: "b:data.attributes.name", Horizon: 72 * hour},
		scheme: pairs("Persona-Signature", "t", "v1").grouped(),
	},
	{
		Preset: Preset{Name: "cloudflare-stream", TransactionID: "c(b:uid,b:status.state)", EventType: "b:status.state", Horizon: 24 * hour},
		scheme: pairs("Webhook-Signature", "time", "sig1"),
	},
	{
		// A resend may carry the first timestamp, so there is no window.
		Preset: Preset{Name: "sanity", TransactionID: "h:idempotency-key | sha(body)", EventType: "b:_type", Horizon: 24 * hour},
		scheme: pairs("sanity-webhook-signature", "t", "v1").timed(unitMillis, 0).encoded(encodingBase64URL),
	},
	{
		Preset: Preset{Name: "linkedin", TransactionID: "sha(body)", EventType: "b:type", Horizon: 24 * hour, Handshakes: []string{"linkedin-challenge"}},
		scheme: bodyHMAC("X-LI-Signature", "", encodingHex).over("hmacsha256={body}"),
	},
	{
		Preset: Preset{Name: "deel", TransactionID: "sha(body)", EventType: "b:data.meta.event_type", Horizon: 24 * hour},
		scheme: bodyHMAC("x-deel-signature", "", encodingHex).over("POST{body}"),
	},
	{
		Preset: Preset{Name: "ms-teams", TransactionID: "b:id", EventType: "b:type"},
		scheme: bodyHMAC("Authorization", "HMAC ", encodingBase64).keyed(keyBase64),
	},
}

// delimited separates pairs by something else than a comma.
func (s scheme) delimited(by string) scheme {
	s.delimiter = by
	return s
}

// grouped repeats the pairs, separated by spaces.
func (s scheme) grouped() scheme {
	s.format = formatGroups
	return s
}

// encoded writes signatures in another way.
func (s scheme) encoded(e encoding) scheme {
	s.encoding = e
	return s
}
