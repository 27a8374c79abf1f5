package signing

// messagingRows are the first part of table D: chat, mail, telephones.
var messagingRows = []row{
	{
		Preset: Preset{
			Name:          "slack",
			TransactionID: "c(b:team_id,b:event_id) | b:trigger_id | f:trigger_id",
			EventType:     "b:event.type | b:type | f:command", Horizon: hour, Deadline: 3 * sec,
			Handshakes: []string{"slack-challenge"}, AttemptHeader: "X-Slack-Retry-Num",
		},
		scheme: bodyHMAC("X-Slack-Signature", "v0=", encodingHex).over("v0:{timestamp}:{body}").at("X-Slack-Request-Timestamp", unitSeconds, defaultTolerance),
	},
	{
		Preset: Preset{
			Name:          "twilio",
			TransactionID: "h:I-Twilio-Idempotency-Token | c(f:MessageSid,f:MessageStatus?,f:ErrorCode?) | c(f:CallSid,f:CallStatus?,f:SequenceNumber?)",
			EventType:     "f:MessageStatus | f:SmsStatus | f:CallStatus",
			Answer:        Answer{Status: 200, Body: "<Response/>", ContentType: "text/xml"},
			Horizon:       hour, Deadline: 15 * sec, NeedsURL: true, Methods: []string{"GET"},
			Sample: "MessageSid=SM00000000000000000000000000000001&MessageStatus=delivered&From=%2B14155550100&Body=hello", SampleType: formType,
		},
		scheme: scheme{
			headers: []string{"X-Twilio-Signature"}, grammar: grammar{format: formatPlain},
			encoding: encodingBase64, digest: digestSHA1, key: keyUTF8, messages: twilioMessages, complete: twilioForge,
		},
	},
	{
		// A resend may carry the first timestamp, so there is no window.
		Preset: Preset{
			Name: "sendgrid", TransactionID: "i:sg_event_id", EventType: "i:event", Split: wholeDocument, MaxBody: 30 * mib, Horizon: 30 * hour,
			Sample: `[{"email":"hello@example.com","event":"delivered","sg_event_id":"ZGVsaXZlcmVkLTAtMQ","timestamp":1700000000}]`,
		},
		scheme: bodyHMAC("X-Twilio-Email-Event-Webhook-Signature", "", encodingBase64).public(algECDSA).
			over("{timestamp}{body}").at("X-Twilio-Email-Event-Webhook-Timestamp", unitSeconds, 0),
	},
	{
		// The body is not covered, only a timestamp and a token in it.
		Preset: Preset{
			Name: "mailgun", Class: Authenticated, TransactionID: "b:event-data.id", EventType: "b:event-data.event", MaxBody: 30 * mib, Horizon: 8 * hour,
			Sample: `{"event-data":{"id":"ase7i2zsRYeDXpp21mFvJQ","event":"delivered"}}`,
		},
		scheme: scheme{
			json: "signature.signature", grammar: grammar{format: formatPlain}, encoding: encodingHex, digest: digestSHA256, key: keyUTF8,
			message: "{timestamp}{json:signature.token}",
			stamp:   stamp{json: "signature.timestamp", unit: unitSeconds, tolerance: defaultTolerance}, stamped: true, sign: signMailgun,
		},
	},
	{
		Preset: Preset{
			Name: "postmark", Class: Authenticated, TransactionID: "c(b:RecordType?,b:MessageID,b:Recipient?,b:Type?,b:ID?)",
			EventType: "b:RecordType | =Inbound", MaxBody: 35 * mib, Horizon: 11 * hour, Deadline: 2 * minute,
		},
		scheme: scheme{kind: kindBasic},
	},
	{
		Preset: Preset{
			Name: "mailchimp", Class: Authenticated, Unverified: true, TransactionID: "sha(body)", EventType: "f:type",
			Horizon: 24 * hour, Deadline: 10 * sec, Handshakes: []string{"get-probe"},
			Sample: "type=subscribe&fired_at=2026-01-01+10%3A00%3A00&data%5Bemail%5D=hello%40example.com", SampleType: formType,
		},
		scheme: scheme{kind: kindToken, query: "secret"},
	},
	{
		Preset: Preset{
			Name: "mandrill", TransactionID: "c(i:_id,i:event,i:ts)", EventType: "i:event", Split: "form " + mandrillField,
			MaxBody: 30 * mib, Horizon: 24 * hour, NeedsURL: true, Handshakes: []string{"head", "mandrill-test"},
			Sample: "mandrill_events=%5B%7B%22_id%22%3A%221%22%2C%22event%22%3A%22send%22%2C%22ts%22%3A1700000000%7D%5D", SampleType: formType,
		},
		scheme: bodyHMAC("X-Mandrill-Signature", "", encodingBase64).with(digestSHA1).over("{url}{form}"),
		items:  formItems(mandrillField),
	},
	{
		Preset: Preset{Name: "intercom", TransactionID: "b:id", EventType: "b:topic", Horizon: hour, Deadline: 5 * sec, Handshakes: []string{"head"}},
		scheme: bodyHMAC("X-Hub-Signature", "sha1=", encodingHex).with(digestSHA1),
	},
	{
		Preset: Preset{
			Name: "hubspot", TransactionID: "c(i:portalId,i:subscriptionId,i:eventId,i:objectId,i:occurredAt,i:propertyName?)",
			EventType: "i:subscriptionType", Split: wholeDocument, Horizon: 24 * hour, Deadline: 5 * sec, NeedsURL: true, Permanent4xx: true,
			Sample: `[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1700000000000,"subscriptionType":"contact.creation","objectId":123}]`,
		},
		scheme: scheme{
			headers: []string{hubSpotV3}, grammar: grammar{format: formatPlain}, encoding: encodingBase64, digest: digestSHA256, key: keyUTF8,
			messages: hubSpotMessages, stamp: stamp{header: "X-HubSpot-Request-Timestamp", unit: unitMillis, tolerance: defaultTolerance}, stamped: true,
			prove: proveHubSpot, sign: signHubSpot,
		},
		options: hubSpotOptions, keep: []string{hubSpotOld, hubSpotVersion},
	},
	{
		Preset: Preset{Name: "zendesk", TransactionID: "h:X-Zendesk-Webhook-Invocation-Id | b:id", EventType: "b:type", Horizon: hour, Deadline: 10 * sec},
		scheme: bodyHMAC("X-Zendesk-Webhook-Signature", "", encodingBase64).
			over("{timestamp}{body}").at("X-Zendesk-Webhook-Signature-Timestamp", unitRFC3339, defaultTolerance),
	},
	{
		Preset: Preset{
			Name: "zoom", TransactionID: "c(b:payload.account_id?,b:event,b:event_ts,b:payload.object.uuid)", EventType: "b:event",
			Horizon: 90 * minute, Deadline: 3 * sec, Handshakes: []string{"zoom-validation"},
		},
		scheme: bodyHMAC("x-zm-signature", "v0=", encodingHex).over("v0:{timestamp}:{body}").at("x-zm-request-timestamp", unitSeconds, defaultTolerance),
	},
	{
		Preset: Preset{
			Name: "discord", TransactionID: "c(b:application_id,b:event.type,b:event.timestamp,sha(body)) | b:id", EventType: "b:event.type | b:type",
			Answer: Answer{Status: 204, ContentType: "application/json"}, Horizon: 10 * minute, Deadline: 3 * sec, Handshakes: []string{"discord-ping"},
		},
		scheme: bodyHMAC("X-Signature-Ed25519", "", encodingHex).public(algEd25519).
			over("{timestamp}{body}").at("X-Signature-Timestamp", unitSeconds, defaultTolerance),
		answer: discordAnswer,
	},
	{
		Preset: Preset{
			Name: "telegram", Class: Authenticated, TransactionID: "b:update_id", EventType: "b:" + otherMember + "update_id", Horizon: 24 * hour,
			Sample: `{"update_id":1,"message":{"message_id":1,"text":"hello"}}`,
		},
		scheme: shown("X-Telegram-Bot-Api-Secret-Token"),
	},
	{
		Preset: Preset{
			Name: "meta", TransactionID: "i:" + itemID, EventType: "i:" + itemKind, Split: "entry[].changes[], entry[].messaging[]",
			Horizon: 168 * hour, Deadline: 5 * sec, Handshakes: []string{"hub-challenge"},
			Sample: `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":[{"id":"wamid.1","text":{"body":"hello"}}]}}]}]}`,
		},
		scheme: bodyHMAC("X-Hub-Signature-256", "sha256=", encodingHex), items: metaItems,
		options: func(r *reader, s *scheme) { s.settings.verifyToken = r.text("verify_token") },
	},
	{
		Preset: Preset{
			Name: "line", TransactionID: "i:webhookEventId", EventType: "i:type", Split: "events", Horizon: 24 * hour, Deadline: 2 * sec,
			Sample: `{"destination":"U1","events":[{"type":"message","webhookEventId":"01FZ74A0TDDPYRVKNK77XKC3ZR"}]}`,
		},
		scheme: bodyHMAC("x-line-signature", "", encodingBase64),
	},
	{
		Preset: Preset{
			Name: "twitch", TransactionID: "h:Twitch-Eventsub-Message-Id", EventType: "h:Twitch-Eventsub-Subscription-Type",
			Horizon: 24 * hour, Deadline: 10 * sec, Handshakes: []string{"twitch-challenge"}, AttemptHeader: "Twitch-Eventsub-Message-Retry",
		},
		scheme: bodyHMAC("Twitch-Eventsub-Message-Signature", "sha256=", encodingHex).
			over("{header:Twitch-Eventsub-Message-Id}{timestamp}{body}").at("Twitch-Eventsub-Message-Timestamp", unitRFC3339, 600*sec),
		fills: []fill{{header: "Twitch-Eventsub-Message-Type", text: "notification"}, {header: "Twitch-Eventsub-Subscription-Type", text: "channel.follow"}},
	},
	{
		Preset: Preset{Name: "x", TransactionID: "sha(body)", EventType: "=activity", Horizon: 24 * hour, Deadline: 3 * sec, Handshakes: []string{"x-crc"}},
		scheme: bodyHMAC("x-twitter-webhooks-signature", "sha256=", encodingBase64),
	},
}

// mandrillField is the form field with Mandrill's batch.
const mandrillField = "mandrill_events"
