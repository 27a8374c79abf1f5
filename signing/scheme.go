package signing

import (
	"crypto"
	"time"
)

// The words below are those of scheme_options, so a preset's row and a user's
// hmac options describe the same thing in the same language.

type kind int

const (
	kindSignature kind = iota // a signature over parts of the request
	kindToken                 // a value of the request equals a secret
	kindBasic                 // HTTP Basic authentication
	kindNone                  // nothing is proven
	kindCustom                // scheme.prove decides alone
)

// format is the grammar of the signature header.
type format string

const (
	formatPlain      format = "plain"      // <prefix><signature>
	formatPairs      format = "pairs"      // t=1,v1=<signature>
	formatGroups     format = "groups"     // t=1,v1=<signature> t=1,v1=<signature>
	formatTags       format = "tags"       // v1,<signature> v1a,<signature>
	formatList       format = "list"       // <signature>,<signature>
	formatPositional format = "positional" // <timestamp>,<signature>,<signature>
)

var formats = []string{"plain", "pairs", "groups", "tags", "list", "positional"}

// keyForm is how the text of a secret becomes a key.
type keyForm string

const (
	keyUTF8     keyForm = "utf8"     // the text itself
	keyWhsec    keyForm = "whsec"    // optional whsec_, then base64
	keyBase64   keyForm = "base64"   // base64
	keyHex      keyForm = "hex"      // hex
	keySHA1     keyForm = "sha1"     // SHA-1 of the text
	keyStandard keyForm = "standard" // whsec (tag v1) or whpk_ base64 (tag v1a)
	keyPublic   keyForm = "public"   // a public key of scheme.algorithm
)

var keyForms = []string{"utf8", "whsec", "base64", "hex", "sha1"}

// digest is the hash function of an HMAC.
type digest string

const (
	digestSHA1   digest = "sha1"
	digestSHA256 digest = "sha256"
	digestSHA512 digest = "sha512"
)

var digests = []string{"sha256", "sha1", "sha512"}

// defaultTolerance is the window of every scheme with a timestamp that names
// no other (Standard Webhooks, Stripe and Slack all use five minutes).
const defaultTolerance = 300 * time.Second

// stamp says where the signed timestamp stands when it is not a field of the
// signature header. JSON is tried before Header.
type stamp struct {
	header, json string
	unit         unit
	// tolerance 0 means the window is not enforced.
	tolerance time.Duration
}

// grammar says how the signatures are written.
type grammar struct {
	format format
	// prefix is required in front of a plain signature or a list's entries.
	prefix    string
	delimiter string
	// stampKey is the key of the timestamp in pairs and groups.
	stampKey string
}

// scheme describes how a request proves its sender. It is data only.
type scheme struct {
	kind kind

	// Where the signature, or the token, stands: headers (any may match), or
	// a JSON path, a form field or a query parameter.
	headers           []string
	json, form, query string

	grammar
	// tag is the key (pairs, groups) or tag (tags) of the signature.
	tag      string
	encoding encoding
	digest   digest
	key      keyForm
	// message is a template; see parseTemplate.
	message string
	stamp   stamp
	stamped bool
	// mustStamp refuses a request without timestamp even where the signed
	// message has none.
	mustStamp bool

	// algorithm is that of public keys; "" is HMAC with digest and key.
	algorithm algorithm
	// require are headers that must be there with exactly this value.
	require []requirement
	// secrets says whether the scheme takes any; with account they are no
	// keys but what an account of the provider fetches keys with.
	secrets secretRule
	account bool
	// settings are options beside those of the signature.
	settings settings
	// pinned are the public keys of the option keys; fetchKeys allows load to
	// fetch others.
	pinned    map[string]crypto.PublicKey
	fetchKeys bool
	load      loadFunc

	// alias is a second family of the same headers: a prefix of their names
	// and what stands in its place. One request uses one family.
	alias alias
	// messages replaces the template where no template can say it.
	messages messageFunc
	// prove decides where no declaration can say how.
	prove proveFunc
	// complete adds to a request what the provider sends besides headers
	// (Forge calls it before signing); sign replaces Forge's own signing.
	complete func(*Request) error
	sign     signFunc
	class    Class
}

// proveFunc proves a request. Its error is a *Rejection or a *FetchError.
type proveFunc func(v *Verifier, in *input) (Proof, error)

// signFunc signs a request as the provider would.
type signFunc func(v *Verifier, in *input, o Options) error

// loadFunc fetches the public key of an id whose form has been checked.
type loadFunc func(v *Verifier, in *input, id string) (crypto.PublicKey, error)

// requirement is a header that must have a value.
type requirement struct{ header, value string }

// secretRule says whether a scheme takes secrets.
type secretRule int

const (
	secretsRequired secretRule = iota
	secretsOptional
	secretsNone
)

// settings are the scheme_options that are no part of a signature.
type settings struct {
	armed         bool     // asana, notion: a new secret may be handed over
	confirm       bool     // aws-sns: subscriptions are confirmed
	verifyToken   string   // meta: hub.verify_token
	endpointToken string   // ebay: verification_token
	publicKey     string   // braintree: the gateway's public key id
	webhookID     string   // paypal
	clientID      string   // plaid, ebay: the account that may fetch keys
	topics        []string // aws-sns: allowed TopicArns
	clientIDs     []string // adobe-sign: allowed client ids
	origins       []string // cloudevents, azure-event-grid: allowed origins
	versions      []string // hubspot: accepted signature versions
	token         tokenRules
	message       httpRules
	client        clientRules
}

// alias renames headers from one family to another.
type alias struct{ from, to string }
