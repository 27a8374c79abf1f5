package signing

// codeRows are table B: code and issue platforms.
var codeRows = []row{
	{
		Preset: Preset{Name: "github", TransactionID: "h:X-GitHub-Delivery", EventType: "h:X-GitHub-Event", MaxBody: 25 * mib, Horizon: 72 * hour, Deadline: 10 * sec},
		scheme: bodyHMAC("X-Hub-Signature-256", "sha256=", encodingHex),
		fills:  []fill{{header: "X-GitHub-Event", text: "push"}},
	},
	{
		Preset: Preset{Name: "bitbucket", TransactionID: "h:X-Request-UUID", EventType: "h:X-Event-Key", Horizon: hour, Deadline: 10 * sec, AttemptHeader: "X-Attempt-Number", FirstAttempt: 1},
		scheme: bodyHMAC("X-Hub-Signature", "sha256=", encodingHex),
		fills:  []fill{{header: "X-Event-Key", text: "repo:push"}},
	},
	{
		Preset: Preset{Name: "gitea", Unverified: true, TransactionID: "h:X-Gitea-Delivery", EventType: "h:X-Gitea-Event", Horizon: 72 * hour, Deadline: 5 * sec},
		scheme: bodyHMAC("X-Gitea-Signature", "", encodingHex),
		fills:  []fill{{header: "X-Gitea-Event", text: "push"}},
	},
	{
		Preset: Preset{Name: "forgejo", Unverified: true, TransactionID: "h:X-Forgejo-Delivery", EventType: "h:X-Forgejo-Event", Horizon: 72 * hour, Deadline: 5 * sec},
		scheme: bodyHMAC("X-Forgejo-Signature", "", encodingHex),
		fills:  []fill{{header: "X-Forgejo-Event", text: "push"}},
	},
	{
		Preset: Preset{Name: "gogs", Unverified: true, TransactionID: "h:X-Gogs-Delivery", EventType: "h:X-Gogs-Event", Horizon: 72 * hour, Deadline: 5 * sec},
		scheme: bodyHMAC("X-Gogs-Signature", "", encodingHex),
		fills:  []fill{{header: "X-Gogs-Event", text: "push"}},
	},
	{
		Preset: Preset{Name: "linear", TransactionID: "h:Linear-Delivery", EventType: "h:Linear-Event | b:type", Horizon: 7 * hour, Deadline: 5 * sec},
		scheme: scheme{
			headers: []string{"Linear-Signature"}, grammar: grammar{format: formatPlain},
			encoding: encodingHex, digest: digestSHA256, key: keyUTF8, message: "{body}",
			stamp: stamp{json: "webhookTimestamp", header: "Linear-Timestamp", unit: unitMillis, tolerance: 60 * sec}, stamped: true,
			mustStamp: true,
		},
		fills: []fill{{header: "Linear-Event", text: "Issue"}},
	},
	{
		Preset: Preset{
			Name: "jira", TransactionID: "h:X-Atlassian-Webhook-Identifier", EventType: "b:webhookEvent", Horizon: hour, Deadline: 30 * sec,
			AttemptHeader: "X-Atlassian-Webhook-Retry",
		},
		scheme: bodyHMAC("X-Hub-Signature", "sha256=", encodingHex),
	},
	{
		Preset: Preset{
			Name: "atlassian-connect", Class: Authenticated, TransactionID: "h:X-Atlassian-Webhook-Identifier",
			EventType: "b:webhookEvent | b:event", Horizon: hour, Deadline: 30 * sec, NeedsURL: true,
			AttemptHeader: "X-Atlassian-Webhook-Retry",
		},
		scheme: tokenScheme(atlassianToken),
	},
	{
		Preset: Preset{Name: "circleci", TransactionID: "b:id", EventType: "b:type", Horizon: 24 * hour},
		scheme: tagged("circleci-signature", "v1"),
	},
	{
		Preset: Preset{Name: "vercel", TransactionID: "b:id", EventType: "b:type", Horizon: 24 * hour, Deadline: 30 * sec},
		scheme: bodyHMAC("x-vercel-signature", "", encodingHex).with(digestSHA1),
	},
	{
		Preset: Preset{Name: "netlify", TransactionID: "sha(body)", EventType: "h:X-Netlify-Event", Horizon: 24 * hour},
		scheme: tokenScheme(netlifyToken),
		fills:  []fill{{header: "X-Netlify-Event", text: "deploy_created"}},
	},
	{
		Preset: Preset{Name: "heroku", TransactionID: "b:id", EventType: "j(b:resource,b:action)", Horizon: 24 * hour},
		scheme: bodyHMAC("Heroku-Webhook-Hmac-SHA256", "", encodingBase64),
	},
	{
		Preset: Preset{Name: "npm", TransactionID: "sha(body)", EventType: "b:event", Horizon: 24 * hour},
		scheme: bodyHMAC("x-npm-signature", "sha256=", encodingHex),
	},
	{
		Preset: Preset{Name: "buildkite", TransactionID: "h:X-Buildkite-Request", EventType: "h:X-Buildkite-Event", Horizon: 24 * hour},
		scheme: pairs("X-Buildkite-Signature", "timestamp", "signature"),
		// Buildkite sends the token instead of a signature, or beside it.
		credentials: []string{"X-Buildkite-Token"},
		fills:       []fill{{header: "X-Buildkite-Event", text: "build.finished"}},
	},
	{
		// Sentry-Hook-Timestamp is not signed, so it proves nothing.
		Preset: Preset{Name: "sentry", TransactionID: "h:Request-ID", EventType: "j(h:Sentry-Hook-Resource,b:action)", Deadline: sec},
		scheme: bodyHMAC("Sentry-Hook-Signature", "", encodingHex),
		fills:  []fill{{header: "Sentry-Hook-Resource", text: "issue"}},
	},
	{
		Preset: Preset{
			Name: "pagerduty", TransactionID: "b:event.id | h:X-Webhook-Id", EventType: "b:event.event_type",
			Horizon: 48 * hour, Deadline: 5 * sec, Permanent4xx: true,
		},
		scheme: tagged("X-PagerDuty-Signature", "v1"),
	},
	{
		Preset: Preset{Name: "notion", TransactionID: "b:id", EventType: "b:type", Horizon: 24 * hour, Handshakes: []string{"notion-token"}},
		scheme: bodyHMAC("X-Notion-Signature", "sha256=", encodingHex), options: armedOption,
	},
	{
		Preset: Preset{
			Name: "asana", TransactionID: "c(i:resource.gid,i:action,i:created_at)", EventType: "j(i:resource.resource_type,i:action)",
			Split: "events", Horizon: 24 * hour, Deadline: 10 * sec, Handshakes: []string{"asana-secret"},
		},
		scheme: bodyHMAC("X-Hook-Signature", "", encodingHex), options: armedOption,
		credentials: []string{"X-Hook-Secret"},
	},
	{
		Preset: Preset{
			Name: "trello", TransactionID: "c(b:model.id,b:action.id)", EventType: "b:action.type",
			Horizon: 2 * minute, NeedsURL: true, Handshakes: []string{"head"},
		},
		scheme: bodyHMAC("X-Trello-Webhook", "", encodingBase64).with(digestSHA1).over("{body}{url}"),
	},
	{
		Preset: Preset{Name: "airtable", TransactionID: "sha(body)", EventType: "=notification", Horizon: 24 * hour},
		scheme: bodyHMAC("X-Airtable-Content-MAC", "hmac-sha256=", encodingHex).keyed(keyBase64),
	},
	{
		Preset: Preset{Name: "clickup", TransactionID: "c(b:webhook_id,b:history_items.0.id)", EventType: "b:event", Horizon: 24 * hour},
		scheme: bodyHMAC("X-Signature", "", encodingHex),
	},
	{
		Preset: Preset{
			Name: "monday", Class: Authenticated, TransactionID: "b:event.triggerUuid", EventType: "b:event.type",
			Horizon: hour, Handshakes: []string{"monday-challenge"},
		},
		scheme: tokenScheme(mondayToken),
	},
}

// armedOption lets the provider hand over a new secret. Until it has, there
// need be none.
func armedOption(r *reader, s *scheme) {
	if s.settings.armed = r.boolean("armed", false); s.settings.armed {
		s.secrets = secretsOptional
	}
}
