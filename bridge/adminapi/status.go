package adminapi

import "time"

// Status is what GET /v1/status answers.
type Status struct {
	// Version of the bridge that answered.
	Version string `json:"version"`
	// Started is when its process began.
	Started time.Time `json:"started"`
	// Parts are those that this process runs: ingress, dispatch, admin.
	Parts []string `json:"parts"`
	// Ready says that the process does what it is there for; Problems may stand
	// beside it.
	Ready    bool     `json:"ready"`
	Problems []string `json:"problems"`
	Rules    Rules    `json:"rules"`
	// Routes and Targets are those that this process dispatches, with what each
	// does now; empty where it does not dispatch, or not yet.
	Routes  []RouteStatus  `json:"routes"`
	Targets []TargetStatus `json:"targets"`
}

// RouteStatus is what a route does in one process.
type RouteStatus struct {
	// Route is the route's name, Target that of its target.
	Route  string `json:"route"`
	Target string `json:"target"`
	// State is popping where the route takes events; starting, draining,
	// paused, held, broken, limited, disabled, unreachable, blocked or stopped.
	State string `json:"state"`
	// Since is when the state began; zero where that is not known.
	Since time.Time `json:"since,omitzero"`
	// Detail says why.
	Detail string `json:"detail"`
	// RetriesPending wait in Queen for their time, those of all processes, as
	// last counted: once a minute. 10000 means that many or more; left out: not
	// counted yet.
	RetriesPending *int `json:"retries_pending,omitempty"`
}

// TargetStatus is what holds a target back in one process, and how busy it is.
type TargetStatus struct {
	// Target is the target's name.
	Target string `json:"target"`
	// State is popping where nothing holds it back; else paused, disabled, held,
	// broken or limited.
	State string `json:"state"`
	// Since is when the state began; zero where that is not known.
	Since time.Time `json:"since,omitzero"`
	// Detail says why.
	Detail string `json:"detail"`
	// InFlight calls are under way; Waiting events wait for a call.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	// Limit is how many calls at once the target gets now, Ceiling how many at
	// most.
	Limit   int `json:"limit"`
	Ceiling int `json:"ceiling"`
	// Breaker is closed, open or half-open; "" where it is switched off.
	Breaker string `json:"breaker"`
	// Until is when a held or broken target is called again.
	Until time.Time `json:"until,omitzero"`
	// FailingSince is the first of the failures since the last success.
	FailingSince time.Time `json:"failing_since,omitzero"`
	// Rate is the limit in calls a second; 0: there is none. Tokens is how many
	// calls it lets begin now.
	Rate   float64 `json:"rate"`
	Tokens int     `json:"tokens"`
}

// Rules is the state of the live catalog in one process.
type Rules struct {
	// Generation changes with each change of a stored resource. Compare for
	// equality only: replicas that show the same one use the same rules.
	Generation string `json:"generation"`
	// Synced is when the stored resources were last read; zero: not yet.
	Synced time.Time `json:"synced,omitzero"`
	// Counts of resources in use, by kind.
	Counts map[string]int `json:"counts"`
	// Invalid are stored resources that are not in use, as kind/name.
	Invalid []string `json:"invalid"`
	// Draining are the routes and targets that were deleted and are not gone yet,
	// as kind/name.
	Draining []string `json:"draining"`
}

// Scheme is one way for a source to prove itself: a provider's preset, or a
// generic verifier.
type Scheme struct {
	// Name is what a source's scheme is set to.
	Name string `json:"name"`
	// Generic verifiers are described by scheme_options.
	Generic bool `json:"generic"`
	// Verified says that a vendor document or SDK confirms the preset.
	Verified bool `json:"verified"`
	// Class is verified, authenticated or none.
	Class string `json:"class"`
	// Proof says what proves a request.
	Proof string `json:"proof"`
	// Secrets says what a secret looks like; "" where there is none.
	Secrets string `json:"secrets"`
	// NeedsURL: the provider signs the URL, so the source needs public_url.
	NeedsURL bool `json:"needs_public_url"`
	// TransactionID and EventType are value expressions (presets.md §1).
	TransactionID string `json:"transaction_id"`
	EventType     string `json:"event_type"`
	// Split is the path of the array that a request is split by; "" where one
	// request is one event.
	Split  string `json:"split"`
	Answer Answer `json:"answer"`
	// Methods are those that are received.
	Methods []string `json:"methods"`
	// Handshakes are the provider's questions that are answered before it sends.
	Handshakes []string `json:"handshakes"`
	// MaxBody is the largest body, such as 25MiB.
	MaxBody string `json:"max_body"`
	// Horizon is how long the provider may resend, Deadline when it hangs up;
	// "" where that is not known.
	Horizon  string `json:"horizon"`
	Deadline string `json:"deadline"`
	// Docs says what to paste where at the provider.
	Docs string `json:"docs"`
}

// Answer is what an accepted request is answered.
type Answer struct {
	// Status is the HTTP status; Body and ContentType may be empty.
	Status      int    `json:"status"`
	Body        string `json:"body"`
	ContentType string `json:"content_type"`
}

// SchemeList is what GET /v1/schemes answers.
type SchemeList struct {
	// Items are all of them, in the order of their names.
	Items []Scheme `json:"items"`
}

// Resealed is what POST /v1/reseal answers.
type Resealed struct {
	// Resources are those whose secrets were sealed anew, as kind/name.
	Resources []string `json:"resources"`
	// Current is how many were sealed under the newest key already.
	Current int `json:"current"`
}
