package signing

// genericRows are the verifiers a user describes with scheme_options.
var genericRows = []row{
	{Preset: Preset{Name: "hmac", Generic: true}, options: hmacOptions},
	{Preset: Preset{Name: "public-key", Generic: true}, options: publicKeyOptions},
	{Preset: Preset{Name: "token", Generic: true, Class: Authenticated}, scheme: scheme{kind: kindToken}, options: tokenOptions},
	{Preset: Preset{Name: "basic", Generic: true, Class: Authenticated}, scheme: scheme{kind: kindBasic}},
	{
		Preset: Preset{Name: "jwt", Generic: true, Class: Authenticated},
		scheme: scheme{kind: kindCustom, prove: proveToken, sign: signToken}, options: webTokenOptions,
	},
	{
		Preset: Preset{Name: "rfc9421", Generic: true, NeedsURL: true},
		scheme: scheme{kind: kindCustom, prove: proveMessage, sign: signMessage}, options: messageOptions,
		keep: []string{"Signature", "Signature-Input", "Content-Digest"},
	},
	{
		Preset: Preset{Name: "mtls", Generic: true, Class: Authenticated},
		scheme: scheme{kind: kindCustom, secrets: secretsNone, prove: proveClient}, options: clientOptions,
	},
	{Preset: Preset{Name: "none", Generic: true, Class: Unproven}, scheme: scheme{kind: kindNone}},
}
