package signing

import (
	"slices"
	"time"
)

// row is one preset: what others may know of it and how it proves a request.
type row struct {
	Preset
	scheme scheme
	// options reads scheme_options into a scheme (generic verifiers).
	options func(*reader) scheme
	// credentials are headers a provider may send besides its signature.
	credentials []string
	// fills are the headers Forge adds, as the provider would.
	fills []fill
	// handshake answers what is not an event; nil where there is none.
	handshake handshakeFunc
}

const (
	mib  = 1 << 20
	hour = time.Hour
	sec  = time.Second
)

// table holds what this version has, presets in the order of the published
// tables. It is never changed.
var table = slices.Concat(standardRows, codeRows, commerceRows, communicationRows, genericRows)

// standard is Standard Webhooks with the three headers of one family.
func standard(id, timestamp, signature string, key keyForm) scheme {
	return scheme{
		headers: []string{signature},
		grammar: grammar{format: formatTags, delimiter: ","},
		tag:     "v1", encoding: encodingBase64, digest: digestSHA256, key: key,
		message: "{header:" + id + "}.{timestamp}.{body}",
		stamp:   stamp{header: timestamp, unit: unitSeconds, tolerance: defaultTolerance},
		stamped: true,
	}
}

// bodyHMAC is a SHA-256 of the raw body in a header of its own.
func bodyHMAC(header, prefix string, e encoding) scheme {
	return scheme{
		headers:  []string{header},
		grammar:  grammar{format: formatPlain, prefix: prefix},
		encoding: e, digest: digestSHA256, key: keyUTF8, message: "{body}",
	}
}

// aliased adds a second family of header names.
func (s scheme) aliased(from, to string) scheme {
	s.alias = alias{from: from, to: to}
	return s
}

var standardRows = []row{
	{
		Preset: Preset{Name: "standard-webhooks", TransactionID: "h:webhook-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 15 * sec},
		scheme: standard("webhook-id", "webhook-timestamp", "webhook-signature", keyStandard),
		fills:  []fill{{header: "webhook-id", value: messageID}},
	},
	{
		// Newer deliveries of Svix carry both trios.
		Preset: Preset{Name: "svix", TransactionID: "h:svix-id", EventType: "b:type", Horizon: 72 * hour, Deadline: 15 * sec},
		scheme: standard("svix-id", "svix-timestamp", "svix-signature", keyWhsec).aliased("svix-", "webhook-"),
		fills:  []fill{{header: "svix-id", value: messageID}},
	},
	{
		Preset: Preset{Name: "gitlab", TransactionID: "h:webhook-id", EventType: "h:X-Gitlab-Event | b:object_kind", MaxBody: 25 * mib, Horizon: 24 * hour, Deadline: 10 * sec},
		scheme: standard("webhook-id", "webhook-timestamp", "webhook-signature", keyWhsec),
		// GitLab sends the old token beside the signature when both are set.
		credentials: []string{"X-Gitlab-Token"},
		fills:       []fill{{header: "webhook-id", value: uuid}, {header: "Idempotency-Key", same: "webhook-id"}, {header: "X-Gitlab-Event", text: "Push Hook"}},
	},
	{
		Preset: Preset{
			Name: "gitlab-token", Class: Authenticated, TransactionID: "h:Idempotency-Key", EventType: "h:X-Gitlab-Event | b:object_kind",
			MaxBody: 25 * mib, Horizon: 24 * hour, Deadline: 10 * sec,
		},
		scheme: scheme{kind: kindToken, headers: []string{"X-Gitlab-Token"}},
		fills:  []fill{{header: "Idempotency-Key", value: uuid}, {header: "X-Gitlab-Event", text: "Push Hook"}},
	},
}

var codeRows = []row{
	{
		Preset: Preset{Name: "github", TransactionID: "h:X-GitHub-Delivery", EventType: "h:X-GitHub-Event", MaxBody: 25 * mib, Horizon: 72 * hour, Deadline: 10 * sec},
		scheme: bodyHMAC("X-Hub-Signature-256", "sha256=", encodingHex),
		fills:  []fill{{header: "X-GitHub-Delivery", value: uuid}, {header: "X-GitHub-Event", text: "push"}},
	},
}

var commerceRows = []row{
	{
		// The key is the whole text, whsec_ included: unlike Standard Webhooks,
		// it is not base64.
		Preset: Preset{Name: "stripe", TransactionID: "c(b:account,b:id) | b:id", EventType: "b:type", Horizon: 72 * hour},
		scheme: scheme{
			headers: []string{"Stripe-Signature"},
			grammar: grammar{format: formatPairs, delimiter: ",", stampKey: "t"},
			tag:     "v1", encoding: encodingHex, digest: digestSHA256, key: keyUTF8,
			message: "{timestamp}.{body}",
			stamp:   stamp{unit: unitSeconds, tolerance: defaultTolerance}, stamped: true,
		},
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
			{header: "X-Shopify-Webhook-Id", value: uuid}, {header: "X-Shopify-Event-Id", value: uuid},
			{header: "X-Shopify-Topic", text: "orders/create"}, {header: "X-Shopify-Shop-Domain", text: "example.myshopify.com"},
		},
	},
}

var communicationRows = []row{
	{
		Preset: Preset{
			Name:          "slack",
			TransactionID: "c(b:team_id,b:event_id) | b:trigger_id | f:trigger_id",
			EventType:     "b:event.type | b:type | f:command", Horizon: hour, Deadline: 3 * sec,
			Handshakes: []string{"slack-challenge"},
		},
		scheme: scheme{
			headers:  []string{"X-Slack-Signature"},
			grammar:  grammar{format: formatPlain, prefix: "v0="},
			encoding: encodingHex, digest: digestSHA256, key: keyUTF8,
			message: "v0:{timestamp}:{body}",
			stamp:   stamp{header: "X-Slack-Request-Timestamp", unit: unitSeconds, tolerance: defaultTolerance}, stamped: true,
		},
		handshake: slackChallenge,
	},
	{
		Preset: Preset{
			Name:          "twilio",
			TransactionID: "h:I-Twilio-Idempotency-Token | c(f:MessageSid,f:MessageStatus?,f:ErrorCode?) | c(f:CallSid,f:CallStatus?,f:SequenceNumber?)",
			EventType:     "f:MessageStatus | f:SmsStatus | f:CallStatus",
			Answer:        Answer{Status: 200, Body: "<Response/>", ContentType: "text/xml"},
			Horizon:       hour, Deadline: 15 * sec, NeedsURL: true, Methods: []string{"GET"},
		},
		scheme: scheme{
			headers: []string{"X-Twilio-Signature"}, grammar: grammar{format: formatPlain},
			encoding: encodingBase64, digest: digestSHA1, key: keyUTF8, messages: twilioMessages, forge: twilioForge,
		},
		fills: []fill{{header: "I-Twilio-Idempotency-Token", value: uuid}},
	},
}

var genericRows = []row{
	{Preset: Preset{Name: "hmac", Generic: true}, options: hmacOptions},
	{Preset: Preset{Name: "token", Generic: true, Class: Authenticated}, options: tokenOptions},
	{Preset: Preset{Name: "basic", Generic: true, Class: Authenticated}, scheme: scheme{kind: kindBasic}},
	{Preset: Preset{Name: "none", Generic: true, Class: Unproven}, scheme: scheme{kind: kindNone}},
}

func find(name string) (*row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return &table[i], true
}

// public fills in the defaults and copies what a caller could change.
func (r *row) public() Preset {
	p := r.Preset
	p.Methods, p.Handshakes = slices.Clone(p.Methods), slices.Clone(p.Handshakes)
	if p.MaxBody == 0 {
		p.MaxBody = defaultMaxBody
	}
	if p.Class == "" {
		p.Class = Verified
	}
	return p
}

// describe reads a source's options into the scheme it means.
func (r *row) describe(c *checklist, o Options) scheme {
	rd := newReader(c, "scheme_options", o.SchemeOptions)
	s := r.scheme
	if r.options != nil {
		s = r.options(rd)
	} else if s.stamped {
		s.stamp.tolerance = rd.duration("tolerance", s.stamp.tolerance)
	}
	rd.finish()
	s.class = r.public().Class
	return s
}
