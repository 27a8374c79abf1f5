package signing

import "strconv"

// identityRows are the second part of table D: documents, identity, files.
var identityRows = []row{
	{
		Preset: Preset{Name: "calendly", TransactionID: "c(b:payload.uri,b:event,b:created_at)", EventType: "b:event", Horizon: 24 * hour},
		scheme: pairs("Calendly-Webhook-Signature", "t", "v1").timed(unitSeconds, 180*sec),
	},
	{
		Preset: Preset{Name: "typeform", TransactionID: "b:event_id", EventType: "b:event_type", Horizon: 10 * hour, Deadline: 30 * sec},
		scheme: bodyHMAC("Typeform-Signature", "sha256=", encodingBase64),
	},
	{
		// One signature for each key of the account.
		Preset: Preset{
			Name: "docusign", TransactionID: "c(b:data.envelopeId,b:event,b:generatedDateTime)", EventType: "b:event",
			MaxBody: 25 * mib, Horizon: 360 * hour, Deadline: 100 * sec,
		},
		scheme: bodyHMAC("X-DocuSign-Signature-1", "", encodingBase64).numbered("X-DocuSign-Signature-", 100),
	},
	{
		Preset: Preset{
			Name: "dropbox", TransactionID: "sha(body)", EventType: "=notification", Horizon: hour, Deadline: 10 * sec,
			Handshakes: []string{"echo-challenge"},
		},
		scheme: bodyHMAC("X-Dropbox-Signature", "", encodingHex),
	},
	{
		Preset: Preset{Name: "box", TransactionID: "h:BOX-DELIVERY-ID", EventType: "b:trigger", Horizon: 24 * hour, Deadline: 30 * sec},
		scheme: scheme{
			headers: []string{"BOX-SIGNATURE-PRIMARY", "BOX-SIGNATURE-SECONDARY"}, grammar: grammar{format: formatPlain},
			encoding: encodingBase64, digest: digestSHA256, key: keyUTF8, message: "{body}{timestamp}",
			stamp: stamp{header: "BOX-DELIVERY-TIMESTAMP", unit: unitRFC3339, tolerance: 600 * sec}, stamped: true,
			require: []requirement{{"BOX-SIGNATURE-VERSION", "1"}, {"BOX-SIGNATURE-ALGORITHM", "HmacSHA256"}},
		},
	},
	{
		Preset: Preset{
			Name: "okta", Class: Authenticated, TransactionID: "i:uuid", EventType: "i:eventType", Split: "data.events",
			Horizon: hour, Deadline: 3 * sec, Handshakes: []string{"okta-challenge"},
			Sample: `{"eventId":"1","data":{"events":[{"uuid":"dc4a1b4e-0001-11ef-b0f8-0242ac120002","eventType":"user.session.start"}]}}`,
		},
		scheme: shown("Authorization"),
		options: func(r *reader, s *scheme) {
			if name := headerName(r, "header"); name != "" {
				s.headers = []string{name}
			}
		},
	},
	{
		Preset: Preset{
			Name: "auth0", Class: Authenticated, Unverified: true, TransactionID: "i:log_id", EventType: "i:data.type", Split: wholeDocument, Horizon: 72 * hour,
			Sample: `[{"log_id":"90020260101000000000001","data":{"type":"s"}}]`,
		},
		scheme: shown("Authorization"), items: lineItems,
	},
	{
		Preset: Preset{Name: "workos", TransactionID: "b:id", EventType: "b:event", Horizon: 72 * hour},
		scheme: pairs("WorkOS-Signature", "t", "v1").timed(unitMillis, 180*sec),
	},
	{
		Preset: Preset{Name: "front", TransactionID: "b:payload.id | sha(body)", EventType: "b:type", Horizon: 24 * hour},
		scheme: bodyHMAC("X-Front-Signature", "", encodingBase64).over("{timestamp}:{body}").at("X-Front-Request-Timestamp", unitMillis, defaultTolerance),
	},
	{
		// A resend may carry the first timestamp, so there is no window.
		Preset: Preset{Name: "klaviyo", TransactionID: "sha(body)", EventType: "b:data.0.topic", Horizon: 72 * hour},
		scheme: bodyHMAC("Klaviyo-Signature", "", encodingHex).over("{body}{timestamp}").at("Klaviyo-Timestamp", unitIMF, 0),
	},
	{
		Preset: Preset{Name: "customer-io", TransactionID: "b:event_id", EventType: "j(b:object_type,b:metric)", Horizon: 72 * hour},
		scheme: bodyHMAC("X-CIO-Signature", "", encodingHex).over("v0:{timestamp}:{body}").at("X-CIO-Timestamp", unitSeconds, defaultTolerance),
	},
	{
		Preset: Preset{Name: "nylas", TransactionID: "b:id", EventType: "b:type", Horizon: 24 * hour, Handshakes: []string{"echo-challenge"}},
		scheme: bodyHMAC("X-Nylas-Signature", "", encodingHex),
	},
	{
		Preset: Preset{Name: "contentful", TransactionID: "sha(body)", EventType: "h:X-Contentful-Topic", Horizon: 24 * hour, NeedsURL: true},
		scheme: scheme{
			headers: []string{"x-contentful-signature"}, grammar: grammar{format: formatPlain}, encoding: encodingHex, digest: digestSHA256, key: keyUTF8,
			messages: contentfulMessages, complete: completeContentful,
			stamp: stamp{header: contentfulStamp, unit: unitMillis, tolerance: 30 * sec}, stamped: true,
		},
		fills: []fill{{header: "X-Contentful-Topic", text: "ContentManagement.Entry.publish"}}, keep: []string{contentfulNames},
	},
	{
		Preset: Preset{Name: "webflow", TransactionID: "sha(body)", EventType: "b:triggerType", Horizon: hour},
		scheme: bodyHMAC("x-webflow-signature", "", encodingHex).over("{timestamp}:{body}").at("x-webflow-timestamp", unitMillis, defaultTolerance),
	},
}

// numbered has as many headers of one name with a number behind it.
func (s scheme) numbered(name string, n int) scheme {
	s.headers = make([]string, n)
	for i := range n {
		s.headers[i] = name + strconv.Itoa(i+1)
	}
	return s
}
