package adminapi

// PauseRequest is the body of a pause; it may be left out.
type PauseRequest struct {
	Reason string `json:"reason"`
}
