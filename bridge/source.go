package bridge

// Source is one sender of webhooks, served at POST /in/<name>.
type Source struct {
	// Name is required: ^[a-z0-9][a-z0-9_-]{0,62}$.
	Name string `json:"name"`
	// Scheme is required: a preset of package signing or a generic verifier
	// (hmac, public-key, token, basic, jwt, rfc9421, mtls, none).
	Scheme string `json:"scheme"`
	// Secrets are tried in order, newest first; every one is accepted.
	Secrets []Secret `json:"secrets"`
	// SchemeOptions are the scheme's own options (presets.md); the timestamp
	// window is `tolerance` here.
	SchemeOptions map[string]any `json:"scheme_options"`
	// PublicURL is the URL given to the provider, without its query, for
	// schemes that sign it.
	PublicURL string `json:"public_url"`
	// Queue receives the events. Defaults to the name.
	Queue string `json:"queue"`
	// Partition is body:<path>, header:<name>, query:<name> or
	// literal:<text>. Empty, or where the value is absent: one of Lanes.
	Partition string `json:"partition"`
	// Lanes is the number of default partitions, named <source>.<n>.
	// Defaults to 16. Changing it forgets duplicates once.
	Lanes int `json:"lanes"`
	// TransactionID is body:<path>, header:<name> or query:<name>. Empty
	// means the preset's.
	TransactionID string `json:"transaction_id"`
	// EventType is body:<path>, header:<name>, query:<name> or
	// literal:<text>. Empty means the preset's.
	EventType string `json:"event_type"`
	// Payload is event (the envelope, the default) or json (the body itself).
	Payload string `json:"payload"`
	// Split is the path of the array to split, "@this" for a top-level
	// array, "none" to turn the preset's off. Empty means the preset's.
	Split string `json:"split"`
	// Methods are accepted besides those of the preset. Defaults to [POST].
	Methods []string `json:"methods"`
	// MaxBody bounds the body. 0, the default, means the preset's (10 MiB
	// unless the preset says otherwise).
	MaxBody Size `json:"max_body"`
	// AllowIPs are the addresses and CIDRs allowed to send. Empty means all.
	AllowIPs []string `json:"allow_ips"`
	// Rate limits requests; 0 per second, the default, means off.
	Rate SourceRate `json:"rate"`
	// MaxInFlight bounds this source's requests at once. 0 means no bound
	// of its own.
	MaxInFlight int     `json:"max_in_flight"`
	Respond     Respond `json:"respond"`
	// OnInvalid is reject (401, the default) or quarantine (2xx, the event
	// goes to <queue>.quarantine).
	OnInvalid string `json:"on_invalid"`
	// Dedup is strict (the default) or off (every accepted request is a new
	// event).
	Dedup string `json:"dedup"`
	// Spool accepts events into the local log while Queen is away. Needs
	// ingress.spool.dir. Defaults to false.
	Spool bool `json:"spool"`
	// DropHeaders are dropped on top of the built-in deny list.
	DropHeaders []string `json:"drop_headers"`
	// Paused answers 503 with Retry-After. Defaults to false.
	Paused bool `json:"paused"`
}

// SourceRate is a token bucket of requests.
type SourceRate struct {
	// PerSecond is how many requests a second are accepted. 0 means any number.
	PerSecond float64 `json:"per_second"`
	// Burst is how many may come at once. 0 means as many as a second allows.
	Burst int `json:"burst"`
}

// Respond replaces the preset's answer to an accepted request. Status 0
// means the preset's.
type Respond struct {
	// Status is the HTTP status. 0 means the preset's.
	Status int `json:"status"`
	// Body is the text of the answer. Empty means none.
	Body string `json:"body"`
	// ContentType of Body. Empty means text/plain.
	ContentType string `json:"content_type"`
}
