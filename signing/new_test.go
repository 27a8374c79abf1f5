package signing_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/signing"
)

func TestNewProblems(t *testing.T) {
	t.Parallel()
	one := []string{"s3cret-value"}
	tests := []struct {
		name    string
		options signing.Options
		want    []string // path: words of the text
	}{
		{"no scheme", signing.Options{}, []string{"scheme: is required"}},
		{"typing error", signing.Options{Scheme: "githb"}, []string{`scheme: scheme "githb" is unknown (did you mean "github"?)`}},
		{"unknown", signing.Options{Scheme: "quite-something-else"}, []string{`scheme: scheme "quite-something-else" is unknown`}},
		{"none with secrets", signing.Options{Scheme: "none", Secrets: one}, []string{"secrets: scheme none takes no secrets"}},
		{"no secrets", signing.Options{Scheme: "github"}, []string{"secrets: scheme github needs at least one secret"}},
		{"everything", signing.Options{Scheme: "twilio", Secrets: []string{"", " "}, SchemeOptions: opts("tolerance", "1s", "x", 1)}, []string{
			"scheme_options.tolerance: is unknown: this scheme takes no options", "scheme_options.x: is unknown", "public_url: is required",
			"secrets[0]: is empty", "secrets[1]: is only white space",
		}},
		{"whsec not base64", signing.Options{Scheme: "svix", Secrets: []string{"whsec_!!!"}}, []string{"secrets[0]: is not base64"}},
		{"whsec of nothing", signing.Options{Scheme: "gitlab", Secrets: []string{"whsec_"}}, []string{"secrets[0]: decodes to zero bytes"}},
		{"svix with a public key", signing.Options{Scheme: "svix", Secrets: []string{"whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}}, []string{"secrets[0]: is not base64"}},
		{"private key", signing.Options{Scheme: "standard-webhooks", Secrets: []string{"whsk_AAAA"}}, []string{"secrets[0]: is a private signing key"}},
		{"short public key", signing.Options{Scheme: "standard-webhooks", Secrets: []string{"whpk_AAAA"}}, []string{"secrets[0]: is no Ed25519 public key"}},
		{"url with query", signing.Options{Scheme: "twilio", Secrets: one, PublicURL: "https://h/x?y=1"}, []string{"public_url: must have no query"}},
		{"url with empty query", signing.Options{Scheme: "twilio", Secrets: one, PublicURL: "https://h/x?"}, []string{"public_url: must have no query"}},
		{"url with fragment", signing.Options{Scheme: "twilio", Secrets: one, PublicURL: "https://h/x#rc=2"}, []string{"public_url: must have no fragment"}},
		{"url without host", signing.Options{Scheme: "twilio", Secrets: one, PublicURL: "/in/x"}, []string{"public_url: must begin with https://"}},
		{"url that is none", signing.Options{Scheme: "twilio", Secrets: one, PublicURL: "https://a b"}, []string{"public_url: is no URL"}},
		{"tolerance type", signing.Options{Scheme: "stripe", Secrets: one, SchemeOptions: opts("tolerance", int64(300))}, []string{"scheme_options.tolerance: must be a duration such as 300s or 5m, got a number"}},
		{"tolerance text", signing.Options{Scheme: "stripe", Secrets: one, SchemeOptions: opts("tolerance", "5 minutes")}, []string{`scheme_options.tolerance: must be a duration such as 300s or 5m, got "5 minutes"`}},
		{"tolerance negative", signing.Options{Scheme: "slack", Secrets: one, SchemeOptions: opts("tolerance", "-1s")}, []string{"scheme_options.tolerance: must not be negative"}},
		{"unknown option", signing.Options{Scheme: "slack", Secrets: one, SchemeOptions: opts("tolerancee", "1s")}, []string{`scheme_options.tolerancee: is unknown (did you mean "tolerance"?)`}},
		{"hmac without source", signing.Options{Scheme: "hmac", Secrets: one}, []string{"scheme_options: does not say where the signature is"}},
		{"hmac with two sources", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "json", "a.b")}, []string{"scheme_options: says in more than one way"}},
		{"hmac headers empty", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("headers", []any{})}, []string{"scheme_options.headers: must be a list of at least one text"}},
		{"hmac headers type", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("headers", []any{"X", true})}, []string{"scheme_options.headers[1]: must be text that is not empty, got a boolean"}},
		{"hmac header name", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X Sig")}, []string{"scheme_options.header: is no header name"}},
		{"hmac header type", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", int64(1))}, []string{"scheme_options.header: must be text, got a number", "scheme_options.header"}[:1]},
		{"hmac words", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "encoding", "base-64", "digest", "md5", "key", "raw", "format", "pair")}, []string{
			`scheme_options.encoding: must be one of hex, base64, base64url, got "base-64" (did you mean "base64"?)`, "scheme_options.digest: must be one of", "scheme_options.key: must be one of",
			`scheme_options.format: must be one of plain, pairs, groups, tags, list, positional, got "pair" (did you mean "pairs"?)`,
		}},
		{"hmac pairs without key", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "format", "pairs")}, []string{"scheme_options.signature_key: is required with format pairs"}},
		{"hmac misplaced", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "signature_key", "v1", "timestamp_key", "t")}, []string{"scheme_options.signature_key: means nothing with format plain", "scheme_options.timestamp_key: means nothing with format plain"}},
		{"hmac prefix with pairs", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "format", "pairs", "signature_key", "v1", "prefix", "a")}, []string{"scheme_options.prefix: means nothing with format pairs"}},
		{"hmac message", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "message", "{bdy}")}, []string{"scheme_options.message: {bdy} is unknown"}},
		{"hmac constant message", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "message", "hello")}, []string{"scheme_options.message: has no placeholder"}},
		{"hmac timestamp nowhere", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "message", "{timestamp}{body}")}, []string{"scheme_options.message: uses {timestamp}, but nothing says where it is"}},
		{"hmac timestamp twice", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "format", "positional", "timestamp", opts("header", "T"))}, []string{"scheme_options.timestamp: says in more than one way"}},
		{"hmac timestamp without place", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "timestamp", opts("unit", "ms"))}, []string{"scheme_options.timestamp: does not say where"}},
		{"hmac timestamp type", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "timestamp", "ms")}, []string{"scheme_options.timestamp: must be a map, got text", "scheme_options.timestamp: does not say where"}},
		{"hmac timestamp options", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "timestamp", opts("header", "T", "unit", "sec", "tolerance", "x", "skew", "1s"))}, []string{
			"scheme_options.timestamp.unit: must be one of s, ms, rfc3339, imf", "scheme_options.timestamp.tolerance: must be a duration", "scheme_options.timestamp.skew: is unknown",
		}},
		{"hmac tolerance without timestamp", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "tolerance", "1s")}, []string{"scheme_options.tolerance: means nothing without a timestamp"}},
		{"hmac url", signing.Options{Scheme: "hmac", Secrets: one, SchemeOptions: opts("header", "X", "message", "{url}{body}")}, []string{"public_url: is required"}},
		{"hmac keys", signing.Options{Scheme: "hmac", Secrets: []string{"xyz"}, SchemeOptions: opts("header", "X", "key", "hex")}, []string{"secrets[0]: is not hex"}},
		{"hmac base64 key", signing.Options{Scheme: "hmac", Secrets: []string{"a"}, SchemeOptions: opts("header", "X", "key", "base64")}, []string{"secrets[0]: is not base64 with padding"}},
		{"token nowhere", signing.Options{Scheme: "token", Secrets: one}, []string{"scheme_options: does not say where the token is"}},
		{"token twice", signing.Options{Scheme: "token", Secrets: one, SchemeOptions: opts("header", "X", "query", "q")}, []string{"scheme_options: says in more than one way where the token is"}},
		{"token prefix", signing.Options{Scheme: "token", Secrets: one, SchemeOptions: opts("query", "q", "prefix", "Bearer ")}, []string{"scheme_options.prefix: belongs to header"}},
		{"token with a line break", signing.Options{Scheme: "gitlab-token", Secrets: []string{"abcde ", "a b"}}, []string{"secrets[0]: begins or ends with white space"}},
		{"basic without colon", signing.Options{Scheme: "basic", Secrets: []string{"user", "usr:", ":p"}}, []string{"secrets[0]: must be user:password", "secrets[1]: must be user:password"}},
		{"basic with options", signing.Options{Scheme: "basic", Secrets: []string{"u:p"}, SchemeOptions: opts("realm", "x")}, []string{"scheme_options.realm: is unknown: this scheme takes no options"}},
	}
	for _, tt := range tests {
		v, problems := signing.New(tt.options)
		if v != nil {
			t.Errorf("%s: New gave a verifier", tt.name)
		}
		var got []string
		for i, p := range problems {
			text := p.Path + ": " + p.Text
			if i < len(tt.want) && strings.HasPrefix(text, tt.want[i]) {
				text = tt.want[i]
			}
			got = append(got, text)
			for _, secret := range tt.options.Secrets {
				if len(secret) > 4 && strings.Contains(p.Text, secret) {
					t.Errorf("%s: problem shows the secret: %s", tt.name, p.Text)
				}
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: New problems (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestPresets pins what other packages read from the table.
func TestPresets(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range signing.Presets() {
		names = append(names, p.Name)
		if p.MaxBody <= 0 || p.Class == "" {
			t.Errorf("preset %s: MaxBody %d, Class %q", p.Name, p.MaxBody, p.Class)
		}
		if again, ok := signing.Lookup(p.Name); !ok || !cmp.Equal(again, p) {
			t.Errorf("Lookup(%s) = %+v, %t, want %+v", p.Name, again, ok, p)
		}
	}
	if len(names) != 114+8 {
		t.Errorf("Presets = %d names, want 114 presets and 8 generic verifiers", len(names))
	}
	for _, name := range []string{"", "GitHub"} {
		if _, ok := signing.Lookup(name); ok {
			t.Errorf("Lookup(%q) finds a scheme", name)
		}
	}
}

func TestHeadersToKeepAndToDrop(t *testing.T) {
	t.Parallel()
	tests := []struct {
		options           signing.Options
		keep, drop, query []string
	}{
		{signing.Options{Scheme: "github"}, []string{"X-GitHub-Delivery", "X-GitHub-Event", "X-Hub-Signature-256"}, nil, nil},
		{signing.Options{Scheme: "svix"}, []string{"svix-id", "svix-signature", "svix-timestamp", "webhook-id", "webhook-signature", "webhook-timestamp"}, nil, nil},
		{signing.Options{Scheme: "gitlab"}, []string{"X-Gitlab-Event", "webhook-id", "webhook-signature", "webhook-timestamp"}, []string{"X-Gitlab-Token"}, nil},
		{signing.Options{Scheme: "gitlab-token"}, []string{"Idempotency-Key", "X-Gitlab-Event"}, []string{"X-Gitlab-Token"}, nil},
		{signing.Options{Scheme: "twilio"}, []string{"I-Twilio-Idempotency-Token", "X-Twilio-Signature"}, nil, nil},
		{signing.Options{Scheme: "basic"}, nil, []string{"Authorization"}, nil},
		{signing.Options{Scheme: "token", SchemeOptions: opts("header", "X-Api-Key")}, nil, []string{"X-Api-Key"}, nil},
		{signing.Options{Scheme: "token", SchemeOptions: opts("query", "code")}, nil, nil, []string{"code"}},
		{signing.Options{Scheme: "hmac", SchemeOptions: opts("headers", []any{"X-A-Secret", "X-B"}, "message", "{header:X-Token}{timestamp}", "timestamp", opts("header", "X-T"))}, []string{"X-A-Secret", "X-B", "X-T", "X-Token"}, nil, nil},
	}
	for _, tt := range tests {
		p, _ := signing.Lookup(tt.options.Scheme)
		for what, pair := range map[string][2][]string{
			"KeepHeaders": {p.KeepHeaders(tt.options), tt.keep}, "CredentialHeaders": {p.CredentialHeaders(tt.options), tt.drop}, "CredentialQuery": {p.CredentialQuery(tt.options), tt.query},
		} {
			if !slices.Equal(pair[0], pair[1]) {
				t.Errorf("%s(%s) = %q, want %q", what, tt.options.Scheme, pair[0], pair[1])
			}
		}
	}
	p, _ := signing.Lookup("shopify")
	if keep := p.KeepHeaders(signing.Options{Scheme: "shopify"}); !slices.Contains(keep, "Shopify-Webhook-Id") || !slices.Contains(keep, "X-Shopify-Hmac-SHA256") {
		t.Errorf("KeepHeaders(shopify) = %q, want both families", keep)
	}
}
