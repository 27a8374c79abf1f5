package signing

import (
	"slices"
	"strings"
)

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
	in.request.Header.Set(hubSpotVersion, version)
	in.request.Header.Set(hubSpotOld, hubSpotHash(v.keys[0].raw, prefix, in.request.Body))
	return nil
}
