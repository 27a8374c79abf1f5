package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
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
