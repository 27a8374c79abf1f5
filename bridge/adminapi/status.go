package adminapi

import "time"

// Status is what GET /v1/status answers.
type Status struct {
	// Version of the bridge that answered.
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Parts are those that this process runs: ingress, dispatch, admin.
	Parts []string `json:"parts"`
	// Ready says that the process does what it is there for; Problems may stand
	// beside it.
	Ready    bool     `json:"ready"`
	Problems []string `json:"problems"`
	Rules    Rules    `json:"rules"`
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
	// Draining are the routes that were deleted and are not gone yet.
	Draining []string `json:"draining"`
}

// Scheme is one way for a source to prove itself: a provider's preset, or a
// generic verifier.
type Scheme struct {
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
	Secrets  string `json:"secrets"`
	NeedsURL bool   `json:"needs_public_url"`
	// TransactionID and EventType are value expressions (presets.md §1).
	TransactionID string   `json:"transaction_id"`
	EventType     string   `json:"event_type"`
	Split         string   `json:"split"`
	Answer        Answer   `json:"answer"`
	Methods       []string `json:"methods"`
	Handshakes    []string `json:"handshakes"`
	MaxBody       string   `json:"max_body"`
	// Horizon is how long the provider may resend, Deadline when it hangs up;
	// "" where that is not known.
	Horizon  string `json:"horizon"`
	Deadline string `json:"deadline"`
	// Docs says what to paste where at the provider.
	Docs string `json:"docs"`
}

// Answer is what an accepted request is answered.
type Answer struct {
	Status      int    `json:"status"`
	Body        string `json:"body"`
	ContentType string `json:"content_type"`
}

// SchemeList is what GET /v1/schemes answers.
type SchemeList struct {
	Items []Scheme `json:"items"`
}

// Resealed is what POST /v1/reseal answers.
type Resealed struct {
	// Resources are those whose secrets were sealed anew, as kind/name.
	Resources []string `json:"resources"`
	// Current is how many were sealed under the newest key already.
	Current int `json:"current"`
}
