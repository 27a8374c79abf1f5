package signing

// commerceRows are the second half of table C: payments and commerce.
var commerceRows = []row{
	{
		Preset: Preset{Name: "razorpay", TransactionID: "h:x-razorpay-event-id", EventType: "b:event", Horizon: 24 * hour},
		scheme: bodyHMAC("X-Razorpay-Signature", "", encodingHex),
	},
	{
		Preset: Preset{Name: "paystack", TransactionID: "sha(body)", EventType: "b:event", Horizon: 72 * hour},
		scheme: bodyHMAC("x-paystack-signature", "", encodingHex).with(digestSHA512),
	},
	{
		Preset: Preset{Name: "authorize-net", TransactionID: "b:notificationId", EventType: "b:eventType", Horizon: 72 * hour},
		scheme: bodyHMAC("X-ANET-Signature", "sha512=", encodingHex).with(digestSHA512).keyed(keyHex),
	},
	{
		Preset: Preset{Name: "checkout-com", TransactionID: "b:id", EventType: "b:type", Horizon: 24 * hour},
		scheme: bodyHMAC("Cko-Signature", "", encodingHex),
	},
	{
		Preset: Preset{
			Name: "gocardless", TransactionID: "i:id", EventType: "j(i:resource_type,i:action)", Split: "events", Horizon: 24 * hour,
			Refusal: Answer{Status: 498, Body: "invalid signature", ContentType: "text/plain"},
		},
		scheme: bodyHMAC("Webhook-Signature", "", encodingHex),
	},
	{
		Preset: Preset{Name: "dwolla", TransactionID: "b:id", EventType: "b:topic", Horizon: 72 * hour},
		scheme: bodyHMAC("X-Request-Signature-SHA-256", "", encodingHex),
	},
	{
		Preset: Preset{Name: "recurly", TransactionID: "b:id", EventType: "j(b:object_type,b:event_type)", Horizon: 24 * hour},
		scheme: scheme{
			headers: []string{"recurly-signature"}, grammar: grammar{format: formatPositional, delimiter: ","},
			encoding: encodingHex, digest: digestSHA256, key: keyUTF8, message: "{timestamp}.{body}",
			stamp: stamp{unit: unitMillis, tolerance: defaultTolerance}, stamped: true,
		},
	},
	{
		Preset: Preset{Name: "chargify", TransactionID: "h:X-Chargify-Webhook-Id", EventType: "f:event", Horizon: 24 * hour, Sample: "event=test&id=1", SampleType: formType},
		scheme: bodyHMAC("X-Chargify-Webhook-Signature-Hmac-Sha-256", "", encodingHex),
	},
	{
		Preset: Preset{Name: "quickbooks", TransactionID: "sha(body)", EventType: "=notification", Horizon: 24 * hour},
		scheme: bodyHMAC("intuit-signature", "", encodingBase64),
	},
	{
		// The body is not covered: what counts is the payment the query names.
		Preset: Preset{Name: "mercado-pago", Class: Authenticated, TransactionID: "b:id", EventType: "b:type", Horizon: 72 * hour},
		scheme: pairs("x-signature", "ts", "v1").timed(unitSeconds, 0).
			over("[id:{query:data.id|lower};][request-id:{header:x-request-id};][ts:{timestamp};]"),
		fills: []fill{{header: "x-request-id", value: uuid}},
	},
	{
		Preset: Preset{Name: "wise", TransactionID: "h:X-Delivery-Id", EventType: "b:event_type", Horizon: 72 * hour},
		scheme: bodyHMAC("X-Signature-SHA256", "", encodingBase64).public(algRSA),
	},
	{
		// Xero sends bad signatures on purpose before it activates a webhook, and
		// wants 401 with an empty body for them.
		Preset: Preset{
			Name: "xero", TransactionID: "c(i:tenantId,i:resourceId,i:eventType,i:eventDateUtc)", EventType: "j(i:eventCategory,i:eventType)",
			Split: "events", Horizon: 24 * hour, Deadline: 5 * sec, Refusal: Answer{Status: 401},
		},
		scheme: bodyHMAC("x-xero-signature", "", encodingBase64),
	},
}
