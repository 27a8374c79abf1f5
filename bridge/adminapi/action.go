package adminapi

// PauseRequest is the body of a pause; it may be left out.
type PauseRequest struct {
	// Reason is for those who find it paused.
	Reason string `json:"reason"`
}
