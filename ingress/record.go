package ingress

// Messages and keys of log records. An operator greps for them: they do not
// change. No record carries a query, a header value, a body or a secret.
const (
	msgRefusedRequest = "request refused"
	msgNotStored      = "event not stored"
	msgAccepted       = "event accepted"
	msgHandshake      = "handshake answered"
	msgDraining       = "ingress stops: finishing what was received"
	msgLeft           = "ingress stopped with events not stored"
	msgPanic          = "panic"
	msgTorn           = "spool: a write that a crash cut off was dropped; nothing of it was answered"
	msgSpooling       = "queen is away: events go to the local spool"
	msgSpoolFound     = "spool: events of an earlier run are replayed"
	msgReplayFails    = "spool: replay waits"
	msgReplayed       = "spool: replay ends"
	msgSpoolRefused   = "spool: event refused by queen; it is kept, and not sent again"
	msgSpoolLeft      = "spool: events are left for the next start"
	msgConfirmed      = "subscription confirmation called"

	keySource    = "source"
	keyRoute     = "route"
	keyQueue     = "queue"
	keyEvent     = "event"
	keyItems     = "items"
	keyStatus    = "status"
	keyReason    = "reason"
	keyDetail    = "detail"
	keySkew      = "skew"
	keySecret    = "secret_index" // which of the source's secrets matched, never the secret
	keyResend    = "resend"       // attempts the provider says to have made before
	keyRequest   = "request_id"
	keyRemote    = "remote"
	keyError     = "error"
	keyBytes     = "bytes"
	keyResult    = "result"
	keyElapsed   = "elapsed"
	keyDuplicate = "duplicate"
	keyStack     = "stack"
	keyInFlight  = "in_flight"

	// routeTemplate stands for the path in logs: a path may carry what a
	// provider or a scanner put there.
	routeTemplate = "/in/:source"
)
