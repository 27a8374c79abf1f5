package bridge

import "time"

// Queue carries the options the bridge sets on a queue it manages.
type Queue struct {
	// Name is required: 1 to 255 characters, no control characters.
	Name string `json:"name"`
	// Lease is the lease of consumers that ask for none. Defaults to 60s.
	Lease time.Duration `json:"lease"`
	// Retention bounds the age of everything. Defaults to 168h.
	Retention time.Duration `json:"retention"`
	// CompletedRetention bounds the age of what every group consumed.
	// 0, the default, means the same as Retention.
	CompletedRetention time.Duration `json:"completed_retention"`
	// DedupWindow is how long a transaction id is remembered. 0, the
	// default, means the longest resend horizon of the sources that feed the
	// queue, at least 1h.
	DedupWindow time.Duration `json:"dedup_window"`
}
