package signing

// svixTrio is the family of Svix, or, where it is complete, that of Standard
// Webhooks: newer deliveries carry both.
func svixTrio() scheme {
	return standard("svix-id", "svix-timestamp", "svix-signature", keyWhsec).aliased("svix-", "webhook-")
}

// webhookTrio is the family of Standard Webhooks.
func webhookTrio(key keyForm) scheme {
	return standard("webhook-id", "webhook-timestamp", "webhook-signature", key)
}

// webhookID and svixID are ids in the form Standard Webhooks suggests.
var (
	webhookID = []fill{{header: "webhook-id", value: messageID}}
	svixID    = []fill{{header: "svix-id", value: messageID}}
)

// standardRows are table A: the Standard Webhooks family.
var standardRows = []row{
	{
		Preset: Preset{Name: "standard-webhooks", TransactionID: "h:webhook-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 15 * sec},
		scheme: webhookTrio(keyStandard), fills: webhookID,
	},
	{
		Preset: Preset{Name: "svix", TransactionID: "h:svix-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 15 * sec},
		scheme: svixTrio(), fills: svixID,
	},
	{
		Preset: Preset{Name: "clerk", TransactionID: "h:svix-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 15 * sec},
		scheme: svixTrio(), fills: svixID,
	},
	{
		Preset: Preset{Name: "resend", TransactionID: "h:svix-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 15 * sec},
		scheme: svixTrio(), fills: svixID,
	},
	{
		Preset: Preset{Name: "openai", TransactionID: "h:webhook-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 20 * sec},
		scheme: webhookTrio(keyWhsec), fills: webhookID,
	},
	{
		Preset: Preset{Name: "gitlab", TransactionID: "h:webhook-id", EventType: "h:X-Gitlab-Event | b:object_kind", MaxBody: 25 * mib, Horizon: 24 * hour, Deadline: 10 * sec},
		scheme: webhookTrio(keyWhsec),
		// GitLab sends the old token beside the signature when both are set.
		credentials: []string{"X-Gitlab-Token"},
		fills:       []fill{{header: "webhook-id", value: uuid}, {header: "Idempotency-Key", same: "webhook-id"}, {header: "X-Gitlab-Event", text: "Push Hook"}},
	},
	{
		Preset: Preset{
			Name: "gitlab-token", Class: Authenticated, TransactionID: "h:Idempotency-Key", EventType: "h:X-Gitlab-Event | b:object_kind",
			MaxBody: 25 * mib, Horizon: 24 * hour, Deadline: 10 * sec,
		},
		scheme: shown("X-Gitlab-Token"),
		fills:  []fill{{header: "X-Gitlab-Event", text: "Push Hook"}},
	},
	{
		Preset: Preset{Name: "supabase", TransactionID: "h:webhook-id", EventType: "b:type", Horizon: 72 * hour},
		scheme: webhookTrio(keyWhsec), fills: webhookID,
	},
	{
		Preset: Preset{Name: "render", TransactionID: "h:webhook-id", EventType: "b:type", Horizon: 72 * hour},
		scheme: webhookTrio(keyWhsec), fills: webhookID,
	},
	{
		Preset: Preset{Name: "brex", TransactionID: "h:webhook-id", EventType: "b:event_type", Horizon: 72 * hour},
		scheme: webhookTrio(keyWhsec), fills: webhookID, // bare base64
	},
	{
		Preset: Preset{Name: "replicate", TransactionID: "h:webhook-id", EventType: "b:status", Horizon: 72 * hour},
		scheme: webhookTrio(keyWhsec), fills: webhookID,
	},
	{
		Preset: Preset{Name: "incident-io", TransactionID: "h:webhook-id", EventType: "b:event_type", Horizon: 72 * hour},
		scheme: webhookTrio(keyWhsec), fills: webhookID,
	},
	{
		Preset: Preset{Name: "increase", TransactionID: "h:webhook-id", EventType: "b:category", Horizon: 72 * hour},
		scheme: webhookTrio(keyWhsec), fills: webhookID,
	},
	{
		Preset: Preset{Name: "finch", TransactionID: "h:Finch-Event-Id", EventType: "b:type", Horizon: 72 * hour},
		scheme: standard("Finch-Event-Id", "Finch-Timestamp", "Finch-Signature", keyWhsec), // bare base64
	},
	{
		// The framing of Standard Webhooks, but the key is the text itself.
		Preset: Preset{Name: "polar", TransactionID: "h:webhook-id", EventType: "b:type", Horizon: 72 * hour},
		scheme: webhookTrio(keyUTF8), fills: webhookID,
	},
	{
		Preset: Preset{Name: "bigcommerce", Unverified: true, TransactionID: "c(b:producer,b:hash) | h:webhook-id", EventType: "b:scope", Horizon: 48 * hour},
		scheme: webhookTrio(keyUTF8), fills: webhookID,
	},
}
