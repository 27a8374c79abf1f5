package signing

// cloudRows are table E: clouds.
var cloudRows = []row{
	{
		Preset: Preset{
			Name: "aws-sns", TransactionID: "c(b:TopicArn,b:MessageId)", EventType: "b:Type", MaxBody: 2 * mib, Horizon: 552 * hour, Deadline: 15 * sec,
			Handshakes: []string{"sns-confirm"}, Permanent4xx: true, Sample: `{"Message":"hello"}`, SampleType: "text/plain; charset=UTF-8",
		},
		scheme: scheme{kind: kindCustom, secrets: secretsNone, algorithm: algRSA, prove: proveSNS, load: loadSNS, sign: signSNS}, options: snsOptions,
	},
	{
		Preset: Preset{
			Name: "google-pubsub", Class: Authenticated, Unverified: true, TransactionID: "c(b:subscription,b:message.messageId)",
			EventType: "b:message.attributes.eventType | =message", MaxBody: 14 * mib, Horizon: 168 * hour, Deadline: 10 * sec,
			Sample: `{"message":{"data":"aGVsbG8=","messageId":"1","attributes":{}},"subscription":"projects/p/subscriptions/s"}`,
		},
		scheme: scheme{kind: kindCustom, secrets: secretsNone, prove: proveToken, load: loadFromKeySet, sign: signToken}, options: googleOptions,
	},
	{
		Preset: Preset{
			Name: "azure-event-grid", Class: Authenticated, Unverified: true, TransactionID: "c(i:topic,i:id) | c(i:source,i:id)", EventType: "i:eventType | i:type",
			Split: wholeDocument, Horizon: 24 * hour, Deadline: 30 * sec, Handshakes: []string{"eventgrid-validation", "cloudevents-options"},
			AttemptHeader: "Aeg-Delivery-Count",
			Sample:        `[{"id":"1","topic":"/subscriptions/s","subject":"x","eventType":"Test.Event","data":{}}]`,
		},
		scheme: scheme{kind: kindToken, query: "code"}, options: eventGridOptions,
	},
	{
		Preset: Preset{
			Name: "cloudevents", Class: Authenticated, TransactionID: "c(h:ce-source,h:ce-id) | c(i:source,i:id)", EventType: "h:ce-type | i:type",
			Split: "@this in batch mode", Answer: Answer{Status: 202}, Horizon: 24 * hour, Handshakes: []string{"cloudevents-options"},
		},
		scheme: scheme{kind: kindToken, headers: []string{"Authorization"}, grammar: grammar{prefix: "Bearer "}, query: "access_token"},
		items:  cloudEventItems, options: originsOption,
		fills: []fill{{header: "ce-specversion", text: "1.0"}, {header: "ce-type", text: "queenbridge.test"}, {header: "ce-source", text: "/queenbridge/send"}},
	},
	{
		Preset: Preset{
			Name: "ms-graph", Class: Authenticated, EventType: "i:changeType", Split: graphItems,
			TransactionID: `c(i:subscriptionId,i:id) | c(i:subscriptionId,i:resource,i:changeType,i:resourceData.@odata\.etag?) | sha(item)`,
			Answer:        Answer{Status: 202}, Horizon: 4 * hour, Deadline: 3 * sec, Handshakes: []string{"graph-validation"},
			Sample: `{"value":[{"subscriptionId":"1","changeType":"updated","resource":"users/1/messages/1","resourceData":{"id":"1"}}]}`,
		},
		scheme: scheme{kind: kindCustom, prove: proveGraph, sign: signGraph},
	},
	{
		Preset: Preset{
			Name: "ebay", TransactionID: "b:notification.notificationId", EventType: "b:metadata.topic", Horizon: 24 * hour, NeedsURL: true,
			Handshakes: []string{"ebay-challenge"},
		},
		scheme: scheme{kind: kindCustom, secrets: secretsOptional, account: true, prove: proveEBay, load: loadEBay, sign: signEBay},
		keep:   []string{ebayHeader}, options: ebayOptions,
	},
	{
		Preset: Preset{
			Name: "adobe-sign", Class: Authenticated, TransactionID: "b:webhookNotificationId", EventType: "b:event", Horizon: 72 * hour,
			Handshakes: []string{"adobe-sign-clientid"},
		},
		scheme:      scheme{kind: kindCustom, secrets: secretsNone, prove: proveAdobe, sign: signAdobe},
		credentials: []string{adobeClientID}, options: adobeOptions, answer: adobeAnswer,
	},
}

func eventGridOptions(r *reader, s *scheme) {
	if name := r.text("query"); name != "" {
		s.query = name
	}
	if originsOption(r, s); s.settings.origins == nil {
		s.settings.origins = []string{"eventgrid.azure.net"}
	}
}

// originsOption reads who may be allowed to deliver.
func originsOption(r *reader, s *scheme) { s.settings.origins = r.oneOrMore("allowed_origins") }
