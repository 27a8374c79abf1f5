package bridge

import "time"

// Target is one function: exactly one of HTTP and Lambda is set.
type Target struct {
	// Name is required: ^[a-z0-9][a-z0-9_-]{0,62}$.
	Name    string        `json:"name"`
	HTTP    *HTTPTarget   `json:"http"`
	Lambda  *LambdaTarget `json:"lambda"`
	Auth    Auth          `json:"auth"`
	Signing TargetSigning `json:"signing"`
	TLS     TargetTLS     `json:"tls"`
	Network Network       `json:"network"`
	// Concurrency is the ceiling of calls at once. Defaults to 50.
	Concurrency int        `json:"concurrency"`
	Rate        TargetRate `json:"rate"`
	Breaker     Breaker    `json:"breaker"`
	// DisableAfter pauses the target after it failed this long. 0, the
	// default, means never.
	DisableAfter time.Duration `json:"disable_after"`
	// Paused stops all calls; events wait in Queen. Defaults to false.
	Paused bool `json:"paused"`
}

// HTTPTarget is a function that is called over HTTP.
type HTTPTarget struct {
	// URL is required: http or https, without user and fragment.
	URL string `json:"url"`
	// Method defaults to POST.
	Method string `json:"method"`
	// Timeout bounds one attempt, connection and answer included.
	// Defaults to 30 seconds.
	Timeout time.Duration `json:"timeout"`
	// Headers are added to every call.
	Headers map[string]string `json:"headers"`
}

// LambdaTarget is an AWS Lambda function.
type LambdaTarget struct {
	// Function is required: a name, a partial ARN or an ARN.
	Function string `json:"function"`
	// Qualifier is a version or an alias. Empty means $LATEST.
	Qualifier string `json:"qualifier"`
	// Region defaults to the ARN's, then to the AWS environment's.
	Region string `json:"region"`
	// Endpoint is the URL of another Lambda than Amazon's (a VPC endpoint, an
	// emulator). The target's network profile guards it as any address.
	Endpoint string `json:"endpoint"`
	// AssumeRole is the ARN of a role whose credentials make the calls. Empty:
	// those of the AWS environment.
	AssumeRole string `json:"assume_role"`
	// Invoke is request_response (the default), or event: Lambda queues the
	// payload itself, and delivered means handed over.
	Invoke string `json:"invoke"`
	// Payload is sqs (the default), raw or cloudevents.
	Payload string `json:"payload"`
	// Timeout bounds one attempt. It must exceed the function's own timeout, or
	// a function that is still running is called again. Defaults to 60
	// seconds; at most 905, for functions of 900.
	Timeout time.Duration `json:"timeout"`
}

// The sizes of payloads that Lambda takes, in bytes (its quotas: 6 MB for a
// synchronous call, 1 MB for an asynchronous one).
const (
	MaxLambdaPayload      = 6 << 20
	MaxLambdaEventPayload = 1 << 20
)

// MaxPayload is how large the payload of a call may be, in bytes.
func (l *LambdaTarget) MaxPayload() int {
	if l.Invoke == InvokeEvent {
		return MaxLambdaEventPayload
	}
	return MaxLambdaPayload
}

// Auth is the credential of a target's calls. Type is none (the default),
// basic, bearer, api_key, oauth2, oidc or sigv4; the other fields belong to
// the type named in their comment.
//
// A token of oauth2 or oidc is kept, renewed before it ends, and replaced once
// where a function answers 401; while it cannot be had, calls are held. The
// token URL is https (http on loopback only), reached through the target's
// network settings, with the system's authorities and those of tls.ca. A token
// file is read again all the time. A command runs without a shell and without
// the bridge's own QUEENBRIDGE_ variables, within 10 seconds; its output is
// the token, used until the exp of a JWT, else for 5 minutes.
type Auth struct {
	// Type is none (the default), basic, bearer, api_key, oauth2, oidc or sigv4.
	Type         string   `json:"type"`
	Username     string   `json:"username"`      // basic
	Password     Secret   `json:"password"`      // basic
	Token        Secret   `json:"token"`         // bearer
	Header       string   `json:"header"`        // api_key
	Value        Secret   `json:"value"`         // api_key
	TokenURL     string   `json:"token_url"`     // oauth2
	ClientID     string   `json:"client_id"`     // oauth2
	ClientSecret Secret   `json:"client_secret"` // oauth2
	Scopes       []string `json:"scopes"`        // oauth2
	Audience     string   `json:"audience"`      // oauth2
	TokenFile    string   `json:"token_file"`    // oidc
	// Command is for type oidc: a program and its arguments, which print an ID
	// token. Only a target of the configuration file may have one: a token of the
	// admin API is no shell on the bridge's machine.
	Command    []string `json:"command"`
	Service    string   `json:"service"`     // sigv4
	Region     string   `json:"region"`      // sigv4
	AssumeRole string   `json:"assume_role"` // sigv4
}

// TargetSigning signs each attempt with Standard Webhooks. No secrets, the
// default, means unsigned; every secret signs (rotation).
type TargetSigning struct {
	// Scheme is v1 (the default) or v1a.
	Scheme string `json:"scheme"`
	// Secrets sign, every one of them (rotation): whsec_ for v1, whsk_ for v1a.
	Secrets []Secret `json:"secrets"`
}

// TargetTLS is the TLS of a target's connections: 1.2 or newer, the server
// always verified. The files are PEM, at most 1 MiB, and read again when they
// change; new connections use them.
type TargetTLS struct {
	// CA is a file of the authorities that are believed instead of the
	// system's. Empty means the system's.
	CA string `json:"ca"`
	// Cert and Key are files of the certificate shown to the server; both or
	// neither.
	Cert string `json:"cert"`
	// Key is the file of Cert's private key.
	Key string `json:"key"`
	// Pins are the base64 of SHA-256 of public keys (SubjectPublicKeyInfo,
	// RFC 7469 §2.4). The server's own certificate must have one of them,
	// besides being verified. Empty means any key.
	Pins []string `json:"pins"`
}

// Network guards which addresses a target may reach: the address that is
// dialled, after DNS, for the function and for a token URL alike.
type Network struct {
	// Profile is internal (the default: metadata and link-local refused) or
	// public (only globally routable).
	Profile string `json:"profile"`
	// Allow are CIDRs that may be reached whatever the profile says.
	Allow []string `json:"allow"`
	// Proxy is an http or https URL of host and port, without a user: calls
	// go through it, https ones by CONNECT. The profile then guards the
	// proxy's own address; what lies behind is for the proxy to guard.
	// Proxies of the environment are ignored. Empty means none.
	Proxy string `json:"proxy"`
}

// TargetRate is a token bucket of calls; 0 per second, the default, means off.
type TargetRate struct {
	// PerSecond is how many calls a second begin. 0, the default, means any
	// number.
	PerSecond float64 `json:"per_second"`
	// Burst is how many calls may begin at once. 0, the default, means as many
	// as a second allows.
	Burst int `json:"burst"`
	// Shared makes it one budget of all processes, kept in Queen's KV. Then
	// within burst/per_second seconds (whole ones, at least one) no more calls
	// begin than that time allows. Defaults to false: each process has its own.
	Shared bool `json:"shared"`
}

// Breaker opens after failures that are the target's, not the message's.
type Breaker struct {
	// Enabled defaults to true.
	Enabled bool `json:"enabled"`
	// Failures in a row that open it. Defaults to 10.
	Failures int `json:"failures"`
	// Open is the first open time. Defaults to 10 seconds.
	Open time.Duration `json:"open"`
	// MaxOpen bounds the doubling. Defaults to 5 minutes.
	MaxOpen time.Duration `json:"max_open"`
}
