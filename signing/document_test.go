package signing_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

var update = flag.Bool("update", false, "write PROVIDERS.md")

const providersHead = `# Providers

Find the provider, paste the secret, done: ` + "`scheme`" + ` is the name in the first column, ` + "`secrets`" + ` what its row says, newest first.

` + "```yaml" + `
sources:
  - name: stripe                       # POST /in/stripe
    scheme: stripe
    secrets: ["${env:STRIPE_SECRET}"]
` + "```" + `

` + "`queenbridge schemes NAME`" + ` says all about one, ` + "`queenbridge sources show NAME`" + ` what to paste where for a source of yours. † is unverified: no document or library of the provider
confirms the row. *URL* in the last column: ` + "`public_url`" + ` is required, exactly as it was typed in at the provider, without its query.
A provider that is not here and sends Standard Webhooks is ` + "`standard-webhooks`" + `; any other is one of the [verifiers](#verifiers) at the end.

`

const verifiersHead = `
## Verifiers

` + "```yaml" + `
sources:
  - name: partner
    scheme: hmac
    secrets: ["${env:PARTNER_SECRET}"]
    scheme_options:
      header: X-Signature              # or headers (any may match), json (a path of the body), form (a field)
      prefix: "sha256="
      encoding: hex                    # hex, base64, base64url
      digest: sha256                   # sha256, sha1, sha512
      key: utf8                        # what an entry of secrets is: utf8, whsec, base64, hex, sha1 (of the text)
      message: "{timestamp}.{body}"
      timestamp: {header: X-Timestamp, unit: s, tolerance: 300s}   # header or json; s, ms, rfc3339, imf
    transaction_id: header:X-Event-Id  # what tells events apart; without it the hash of the body
    event_type: body:type
` + "```" + `

- ` + "`message`" + ` is what is signed, the body where it is left out. It is made of text and of ` + "`{body}` `{body_sha256}` `{timestamp}` `{method}` `{url}` `{path}` `{form}` `{header:NAME}` `{query:NAME}` `{json:PATH}`" + `,
  each also as ` + "`{…|lower}`" + `. What stands in ` + "`[…]`" + ` is left out where a part of it is absent; another absent part is a 401. ` + "`{{` `}}` `[[` `]]`" + ` are braces and brackets.
  Where the body is no part of it, events are ` + "`authenticated`" + `, not ` + "`verified`" + `.
- ` + "`format`" + ` is how the signature stands in its header: ` + "`plain`; `pairs` (`t=…,v1=…`); `groups` of pairs, apart by spaces; `tags` (`v1,… v1,…`); `list`; `positional` (the timestamp first)" + `. ` + "`signature_key` and `timestamp_key`" + `
  name the keys, ` + "`delimiter`" + ` what is between them. Every signature is tried with every secret, at most 16.
- ` + "`public-key`" + ` is the same with ` + "`algorithm`: `ed25519`, `ecdsa-p256-sha256`, `ecdsa-p256-sha1`, `rsa-sha256`, `rsa-sha1`" + `, and public keys as secrets.
- ` + "`token`: `header` (and `prefix`, such as `\"Bearer \"`), `query` or `json`. `basic`: secrets are `user:password`" + `.
- ` + "`jwt`: `algorithms` (HS256 with secrets; RS256, ES256 with `keys` or `jwks_url`), `header`, `prefix`, `issuer`, `audience`, `max_age`, `body_hash_claim`. `exp` is required" + `.
- ` + "`rfc9421`: `algorithm` (hmac-sha256, ed25519, ecdsa-p256-sha256, rsa-pss-sha512, rsa-v1_5-sha256), `label`, `components` (what must be signed at least), `tolerance`" + `.
- ` + "`mtls`: `ca`, `sans` or `cns`; where TLS ends before the bridge, `forwarded_header` and `trusted_proxies`. `none` accepts everything" + `.

`

// providersDocument is what PROVIDERS.md must be.
func providersDocument() string {
	var b strings.Builder
	b.WriteString(providersHead)
	generic := false
	for i, p := range signing.Presets() {
		if i == 0 || p.Generic != generic {
			if generic = p.Generic; generic {
				b.WriteString(verifiersHead)
			}
			b.WriteString("| scheme | what to do | an entry of `secrets` | `scheme_options` | |\n|---|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s%s | %s | %s | %s | %s |\n", p.Name, dagger(p), cell(p.Docs), cell(cmp.Or(p.SecretForm(), "none: `[]`")), cell(strings.Join(p.OptionNames(), ", ")), cell(notes(p)))
	}
	return b.String()
}

func dagger(p signing.Preset) string {
	if p.Unverified {
		return " †"
	}
	return ""
}

func notes(p signing.Preset) string {
	var all []string
	if p.NeedsURL {
		all = append(all, "*URL*")
	}
	if p.Horizon > 0 {
		all = append(all, "resends for up to "+spanText(p.Horizon))
	}
	if p.Class != signing.Verified && !p.Generic {
		all = append(all, "the body is not signed")
	}
	return strings.Join(all, "; ")
}

// spanText is a time of whole minutes without the units that are zero.
func spanText(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// The list of providers is a document, too, and holds what the table holds:
// go test ./signing -run ProvidersDocument -update writes it.
func TestProvidersDocumentIsFresh(t *testing.T) {
	t.Parallel()
	const name = "PROVIDERS.md"
	want := providersDocument()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is not what the table says (%v): run go test ./signing -run ProvidersDocument -update", name, err)
	}
}
