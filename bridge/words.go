package bridge

// The words of config.md's enumerations.
const (
	LevelDebug = "debug"
	LevelInfo  = "info"
	LevelWarn  = "warn"
	LevelError = "error"

	LogText = "text"
	LogJSON = "json"

	StrategyAffinity   = "affinity"
	StrategyRoundRobin = "round_robin"
	StrategySession    = "session"

	// EmbeddedMemory is the value of queen.embedded for a store in memory.
	EmbeddedMemory = "memory"

	RoleAdmin    = "admin"
	RoleOperator = "operator"
	RoleViewer   = "viewer"

	PayloadEvent = "event"
	PayloadJSON  = "json"

	// SplitDocument splits a top-level array, SplitNone turns a preset's
	// split off.
	SplitDocument = "@this"
	SplitNone     = "none"

	OnInvalidReject     = "reject"
	OnInvalidQuarantine = "quarantine"

	DedupStrict = "strict"
	DedupOff    = "off"

	AuthNone   = "none"
	AuthBasic  = "basic"
	AuthBearer = "bearer"
	AuthAPIKey = "api_key"
	AuthOAuth2 = "oauth2"
	AuthOIDC   = "oidc"
	AuthSigV4  = "sigv4"

	SigningV1  = "v1"
	SigningV1a = "v1a"

	ProfileInternal = "internal"
	ProfilePublic   = "public"

	InvokeRequestResponse = "request_response"
	InvokeEvent           = "event"

	LambdaSQS         = "sqs"
	LambdaRaw         = "raw"
	LambdaCloudEvents = "cloudevents"

	SubscribeAll = "all"
	SubscribeNew = "new"

	FormatPassthrough           = "passthrough"
	FormatNDJSON                = "ndjson"
	FormatCloudEventsBinary     = "cloudevents-binary"
	FormatCloudEventsStructured = "cloudevents-structured"
	FormatCloudEventsBatch      = "cloudevents-batch"
	FormatSQS                   = "sqs"

	OnExhaustedDeadLetter = "dead_letter"
	OnExhaustedPause      = "pause"
)

// The allowed words of each enumeration, in the order of config.md.
var (
	logLevels      = []string{LevelDebug, LevelInfo, LevelWarn, LevelError}
	logFormats     = []string{LogText, LogJSON}
	strategies     = []string{StrategyAffinity, StrategyRoundRobin, StrategySession}
	roles          = []string{RoleAdmin, RoleOperator, RoleViewer}
	payloads       = []string{PayloadEvent, PayloadJSON}
	onInvalids     = []string{OnInvalidReject, OnInvalidQuarantine}
	dedups         = []string{DedupStrict, DedupOff}
	authTypes      = []string{AuthNone, AuthBasic, AuthBearer, AuthAPIKey, AuthOAuth2, AuthOIDC, AuthSigV4}
	signings       = []string{SigningV1, SigningV1a}
	profiles       = []string{ProfileInternal, ProfilePublic}
	invokes        = []string{InvokeRequestResponse, InvokeEvent}
	lambdaPayloads = []string{LambdaSQS, LambdaRaw, LambdaCloudEvents}
	orderings      = []string{string(OrderingNone), string(OrderingPartition)}
	formats        = []string{FormatPassthrough, FormatNDJSON, FormatCloudEventsBinary,
		FormatCloudEventsStructured, FormatCloudEventsBatch, FormatSQS}
	jitters      = []string{JitterEqual, JitterFull, JitterNone}
	onExhausteds = []string{OnExhaustedDeadLetter, OnExhaustedPause}
)
