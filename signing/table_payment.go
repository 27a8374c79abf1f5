package signing

// paymentRows are the first half of table C: payments.
var paymentRows = []row{
	{
		// The key is the whole text, whsec_ included: unlike Standard Webhooks,
		// it is not base64.
		Preset: Preset{Name: "stripe", TransactionID: "c(b:account,b:id) | b:id", EventType: "b:type", Horizon: 72 * hour},
		scheme: pairs("Stripe-Signature", "t", "v1"),
	},
	{
		// The Events product sends the same headers without X-.
		Preset: Preset{
			Name:          "shopify",
			TransactionID: "h:X-Shopify-Webhook-Id | c(h:X-Shopify-Event-Id,h:X-Shopify-Topic,h:X-Shopify-Shop-Domain)",
			EventType:     "h:X-Shopify-Topic", Horizon: 4 * hour, Deadline: 5 * sec,
		},
		scheme: bodyHMAC("X-Shopify-Hmac-SHA256", "", encodingBase64).aliased("X-Shopify-", "Shopify-"),
		fills: []fill{
			{header: "X-Shopify-Event-Id", value: uuid},
			{header: "X-Shopify-Topic", text: "orders/create"}, {header: "X-Shopify-Shop-Domain", text: "example.myshopify.com"},
		},
	},
	{
		Preset: Preset{
			Name: "woocommerce", TransactionID: "c(h:X-WC-Webhook-ID,h:X-WC-Webhook-Topic,b:id,b:date_modified)",
			EventType: "h:X-WC-Webhook-Topic", Deadline: 5 * sec, Handshakes: []string{"woo-ping"},
		},
		scheme: bodyHMAC("X-WC-Webhook-Signature", "", encodingBase64),
		fills:  []fill{{header: "X-WC-Webhook-Topic", text: "order.created"}},
	},
	{
		Preset: Preset{
			Name: "square", TransactionID: "b:event_id", EventType: "b:type", Horizon: 72 * hour, Deadline: 10 * sec, NeedsURL: true,
			AttemptHeader: "Square-Retry-Number",
		},
		scheme: bodyHMAC("x-square-hmacsha256-signature", "", encodingBase64).over("{url}{body}"),
	},
	{
		Preset: Preset{Name: "paypal", TransactionID: "b:id", EventType: "b:event_type", Horizon: 72 * hour},
		scheme: scheme{kind: kindCustom, secrets: secretsNone, algorithm: algRSA, prove: provePayPal, load: loadPayPal, sign: signPayPal},
		keep:   []string{payPalID, payPalTime, payPalSig, payPalCert, payPalAlgo}, options: payPalOptions,
	},
	{
		Preset: Preset{
			Name: "adyen", EventType: "i:NotificationRequestItem.eventCode", Split: adyenItems,
			TransactionID: "c(i:NotificationRequestItem.merchantAccountCode,i:NotificationRequestItem.eventCode,i:NotificationRequestItem.pspReference,i:NotificationRequestItem.success,i:NotificationRequestItem.eventDate?)",
			Answer:        Answer{Status: 200, Body: "[accepted]", ContentType: "text/plain"},
			Horizon:       720 * hour, Deadline: 10 * sec, Sample: adyenSample,
		},
		scheme: scheme{
			kind: kindCustom, prove: proveAdyen, sign: signAdyen,
			key: keyHex, digest: digestSHA256, encoding: encodingBase64,
		},
	},
	{
		Preset: Preset{Name: "adyen-platform", TransactionID: "sha(body)", EventType: "b:type", Horizon: 720 * hour, Deadline: 10 * sec},
		scheme: bodyHMAC("HmacSignature", "", encodingBase64).keyed(keyHex),
	},
	{
		Preset: Preset{Name: "paddle", TransactionID: "b:event_id", EventType: "b:event_type", Horizon: 72 * hour, Deadline: 5 * sec},
		scheme: pairs("Paddle-Signature", "ts", "h1").delimited(";").over("{timestamp}:{body}"),
	},
	{
		Preset: Preset{
			Name: "lemon-squeezy", TransactionID: "c(b:meta.webhook_id?,b:meta.event_name,b:data.id,b:data.attributes.updated_at) | sha(body)",
			EventType: "h:X-Event-Name | b:meta.event_name", Horizon: hour,
		},
		scheme: bodyHMAC("X-Signature", "", encodingHex),
		fills:  []fill{{header: "X-Event-Name", text: "order_created"}},
	},
	{
		Preset: Preset{
			Name: "braintree", TransactionID: "sha(f:bt_payload)", EventType: "=notification",
			Horizon: 24 * hour, Deadline: 30 * sec, Handshakes: []string{"braintree-challenge"},
		},
		scheme: scheme{
			kind: kindCustom, prove: proveBraintree, sign: signBraintree,
			key: keySHA1, digest: digestSHA1, encoding: encodingHex,
		},
		options: braintreeOptions,
	},
	{
		Preset: Preset{Name: "coinbase-commerce", TransactionID: "b:event.id", EventType: "b:event.type", Horizon: 72 * hour},
		scheme: bodyHMAC("X-CC-Webhook-Signature", "", encodingHex),
	},
	{
		Preset: Preset{Name: "coinbase-cdp", TransactionID: "sha(body)", EventType: "b:eventType", Horizon: 72 * hour},
		scheme: pairs("X-Hook0-Signature", "t", "v0"),
	},
	{
		Preset: Preset{
			Name: "plaid", TransactionID: "c(b:item_id,b:webhook_type,b:webhook_code,sha(body))",
			EventType: "j(b:webhook_type,b:webhook_code)", Horizon: 24 * hour,
		},
		scheme: scheme{kind: kindCustom, secrets: secretsOptional, account: true, prove: proveToken, load: loadPlaid, sign: signToken}, options: plaidOptions,
	},
}

// adyenSample is a notification without signature.
const adyenSample = `{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{},"amount":{"currency":"EUR","value":1130},` +
	`"eventCode":"AUTHORISATION","eventDate":"2026-01-01T10:00:00+01:00","merchantAccountCode":"TestMerchant","merchantReference":"order-1","pspReference":"7914073381342284","success":"true"}}]}`
