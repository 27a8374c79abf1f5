package ingress

// Messages and keys of log records. An operator greps for them: they do not
// change. No record carries a query, a header value, a body or a secret.
const (
	msgRefusedRequest = "request refused"
	msgNotStored      = "event not stored"
	msgAccepted       = "event accepted"
	msgHandshake      = "handshake answered"
	msgServing        = "receiving webhooks"
	msgDraining       = "ingress stops: finishing what was received"
	msgLeft           = "ingress stopped with events not stored"
	msgPanic          = "panic"

	keySource    = "source"
	keyRoute     = "route"
	keyQueue     = "queue"
	keyEvent     = "event"
	keyItems     = "items"
	keyStatus    = "status"
	keyReason    = "reason"
	keyDetail    = "detail"
	keySkew      = "skew"
	keyRequest   = "request_id"
	keyRemote    = "remote"
	keyError     = "error"
	keyElapsed   = "elapsed"
	keyDuplicate = "duplicate"
	keyAddr      = "addr"
	keyStack     = "stack"
	keyInFlight  = "in_flight"

	// routeTemplate stands for the path in logs: a path may carry what a
	// provider or a scanner put there.
	routeTemplate = "/in/:source"
)
