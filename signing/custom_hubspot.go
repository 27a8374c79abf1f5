package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// HubSpot has three versions of its signature: v3 is an HMAC with a timestamp,
// v1 and v2 are plain hashes that begin with the secret and prove less, so
// they count only where they are listed (HubSpot, "Validating requests").

const (
	hubSpotV3      = "X-HubSpot-Signature-v3"
	hubSpotOld     = "X-HubSpot-Signature"
	hubSpotVersion = "X-HubSpot-Signature-Version"
)

var hubSpotVersions = []string{"v3", "v1", "v2"}

func hubSpotOptions(r *reader, s *scheme) {
	s.settings.versions = r.oneOrMore("versions")
	for i, version := range s.settings.versions {
		if !slices.Contains(hubSpotVersions, version) {
			r.add(fmt.Sprintf("%s[%d]", r.at("versions"), i), "must be v1, v2 or v3, got %q", version)
		}
	}
	if s.settings.versions == nil {
		s.settings.versions = []string{"v3"}
	}
}

func proveHubSpot(v *Verifier, in *input) (Proof, error) {
	versions := v.scheme.settings.versions
	v3, rej := in.single(hubSpotV3)
	if rej != nil {
		return Proof{}, rej
	}
	old := slices.DeleteFunc(slices.Clone(versions), func(s string) bool { return s == "v3" })
	if slices.Contains(versions, "v3") && (v3 != "" || len(old) == 0) {
		proof, rej := v.verifySignature(in)
		if rej != nil {
			return Proof{}, rej
		}
		return proof, nil
	}
	return v.proveHubSpotHash(in, old)
}

// proveHubSpotHash checks v1 (secret, body) and v2 (secret, method, URL, body).
func (v *Verifier) proveHubSpotHash(in *input, versions []string) (Proof, error) {
	text, rej := in.needed(hubSpotOld, ReasonMissingSignature)
	if rej != nil {
		return Proof{}, rej
	}
	stated, rej := in.single(hubSpotVersion)
	if rej != nil {
		return Proof{}, rej
	}
	for _, version := range versions {
		if stated != "" && stated != version {
			continue
		}
		prefix := ""
		if version == "v2" {
			prefix = in.request.Method + withQuery(in.url, in.request.RawQuery)
		}
		for i := range v.keys {
			if encodingHex.matches(text, []byte(hubSpotHash(v.keys[i].raw, prefix, in.request.Body)), nil) {
				return Proof{Class: Verified, Secret: i}, nil
			}
		}
	}
	return Proof{}, reject(ReasonBadSignature, "%s: no secret of this source made it, or its version is not in scheme_options.versions", hubSpotOld)
}

func hubSpotHash(secret []byte, prefix string, body []byte) string {
	h := sha256.New()
	h.Write(secret)
	h.Write([]byte(prefix))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// hubSpotDecodes are the escapes HubSpot decodes before it signs a URL. Its
// documents list two different sets, so both are tried after the URL itself.
var hubSpotDecodes = []string{":/?@!$'()*,;", ":/@&=+$`\",;><?"}

func hubSpotMessages(in *input) ([][]piece, *Rejection) {
	address := withQuery(in.url, in.request.RawQuery)
	tried, messages := []string{}, [][]piece{}
	for _, u := range []string{address, decodeOnly(address, hubSpotDecodes[0]), decodeOnly(address, hubSpotDecodes[1])} {
		if slices.Contains(tried, u) {
			continue
		}
		tried = append(tried, u)
		messages = append(messages, []piece{{text: in.request.Method}, {text: u}, {bytes: in.request.Body}, {text: in.stamp}})
	}
	return messages, nil
}

// decodeOnly decodes the escapes of some characters.
func decodeOnly(text, set string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) && hexDigit(text[i+1]) >= 0 && hexDigit(text[i+2]) >= 0 {
			if c := byte(hexDigit(text[i+1])<<4 | hexDigit(text[i+2])); strings.IndexByte(set, c) >= 0 {
				out.WriteByte(c)
				i += 2
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// signHubSpot signs by the newest version that counts.
func signHubSpot(v *Verifier, in *input, o Options) error {
	versions := v.scheme.settings.versions
	if slices.Contains(versions, "v3") {
		return v.forgeSignature(in.request, o)
	}
	version, prefix := slices.Max(versions), ""
	if version == "v2" {
		prefix = in.request.Method + withQuery(in.url, in.request.RawQuery)
	}
	in.request.Header.Set(http.CanonicalHeaderKey(hubSpotVersion), version)
	in.request.Header.Set(hubSpotOld, hubSpotHash(v.keys[0].raw, prefix, in.request.Body))
	return nil
}
