package bridge

import "time"

// Config is one whole configuration: process settings, then the resources.
// It is data only. The JSON names are the public names (file, admin API,
// Terraform, console); the zero value is not the default: see Defaults.
type Config struct {
	Log LogConfig `json:"log"`
	// StopTimeout bounds the time from SIGTERM to exit: flush, drain, settle.
	// Defaults to 30 seconds.
	StopTimeout time.Duration  `json:"stop_timeout"`
	Queen       QueenConfig    `json:"queen"`
	Ingress     IngressConfig  `json:"ingress"`
	Dispatch    DispatchConfig `json:"dispatch"`
	Admin       AdminConfig    `json:"admin"`

	Sources []Source `json:"sources"`
	Targets []Target `json:"targets"`
	Routes  []Route  `json:"routes"`
	Queues  []Queue  `json:"queues"`
}

// LogConfig says how the process logs.
type LogConfig struct {
	// Level is debug, info (the default), warn or error.
	Level string `json:"level"`
	// Format is text or json. Empty, the default, means text on a terminal
	// and json elsewhere.
	Format string `json:"format"`
}

// QueenConfig says where Queen is.
type QueenConfig struct {
	// URLs are the Queen nodes. Exclusive with Embedded. Defaults to
	// http://127.0.0.1:6632 when Embedded is empty.
	URLs []string `json:"urls"`
	// Embedded runs the embedded broker in this process: a directory for its
	// durable store, or "memory". Empty, the default, means none.
	Embedded string `json:"embedded"`
	// EmbeddedAddr also serves the embedded broker's HTTP API there.
	// Empty, the default, means not served.
	EmbeddedAddr string `json:"embedded_addr"`
	// Token is the bearer token sent to Queen, and asked by the embedded
	// broker's HTTP API. Empty means none.
	Token Secret `json:"token"`
	// Strategy chooses among several URLs: affinity (the default),
	// round_robin or session.
	Strategy string   `json:"strategy"`
	TLS      QueenTLS `json:"tls"`
}

// QueenTLS is how Queen's certificate is checked.
type QueenTLS struct {
	// CA is a PEM file of accepted authorities. Empty means the system's.
	CA string `json:"ca"`
}

// IngressConfig configures the webhook listener.
type IngressConfig struct {
	// Addr is the listen address. Defaults to ":8080".
	Addr string     `json:"addr"`
	TLS  IngressTLS `json:"tls"`
	// TrustedProxies are the CIDRs whose X-Forwarded-* headers are believed.
	// Empty, the default, means nobody's.
	TrustedProxies []string `json:"trusted_proxies"`
	// MaxInFlight bounds the requests handled at once; more get 503.
	// Defaults to 1024.
	MaxInFlight int `json:"max_in_flight"`
	// EnqueueTimeout bounds the wait for a durable push; then 503.
	// Defaults to 5 seconds; less where the provider hangs up sooner.
	EnqueueTimeout time.Duration `json:"enqueue_timeout"`
	// AcceptBuffered answers 2xx on Queen's `buffered` verdict, which may
	// still be lost. Defaults to false.
	AcceptBuffered bool        `json:"accept_buffered"`
	Batch          BatchConfig `json:"batch"`
	Spool          SpoolConfig `json:"spool"`
}

// IngressTLS is the TLS of the webhook listener. Empty means plain HTTP.
type IngressTLS struct {
	Cert     string `json:"cert"`
	Key      string `json:"key"`
	ClientCA string `json:"client_ca"`
}

// BatchConfig bounds the pushes of one queue.
type BatchConfig struct {
	// MaxItems bounds the items of one push. Defaults to 100.
	MaxItems int `json:"max_items"`
	// MaxBytes bounds the payload bytes of one push. Defaults to 4 MiB.
	MaxBytes Size `json:"max_bytes"`
	// MaxPending bounds the items waiting or in flight for one queue.
	// Defaults to 400.
	MaxPending int `json:"max_pending"`
	// Linger waits this long for more items before a push. Defaults to 0:
	// a push starts as soon as none is in flight.
	Linger time.Duration `json:"linger"`
}

// SpoolConfig is the local write-ahead log used while Queen is away.
type SpoolConfig struct {
	// Dir holds the log. Empty, the default, means no spool.
	Dir string `json:"dir"`
	// MaxBytes bounds the log. Defaults to 1 GiB.
	MaxBytes Size `json:"max_bytes"`
}

// DispatchConfig configures the dispatcher.
type DispatchConfig struct {
	// MaxInFlight bounds the calls of all routes together. Defaults to 256.
	MaxInFlight int `json:"max_in_flight"`
	// Traces writes each attempt that did not deliver, and each dead letter, to
	// Queen's traces, under the webhook-id: outcome, class, status, attempt and
	// next retry. At most 20 a second of each process; what is more is left out.
	// Queen 1.3.0 keeps traces for ever, so it is off by default.
	Traces bool `json:"traces"`
}

// AdminConfig configures the admin listener (livez, readyz, metrics, API).
type AdminConfig struct {
	// Addr is the listen address. Defaults to "127.0.0.1:8081".
	Addr string `json:"addr"`
	// Tokens are the accepted bearer tokens.
	Tokens []AdminToken `json:"tokens"`
	// Console serves the web console. Defaults to true.
	Console bool `json:"console"`
	// EnvToken is QUEENBRIDGE_ADMIN_TOKEN: one more token, of role admin. It
	// is no field of a document. Empty means none.
	EnvToken Secret `json:"-"`
}

// AdminToken is one bearer token of the admin API.
type AdminToken struct {
	Name string `json:"name"`
	// Role is admin, operator or viewer.
	Role  string `json:"role"`
	Token Secret `json:"token"`
}
