package bridge

import "slices"

// authField is one field of Auth besides its type.
type authField struct {
	name string
	set  bool
	// types it belongs to, and those of them that need it.
	types, required []string
}

func (a Auth) fields() []authField {
	only := func(name string, set bool, t string) authField {
		return authField{name, set, []string{t}, []string{t}}
	}
	option := func(name string, set bool, t string) authField {
		return authField{name, set, []string{t}, nil}
	}
	return []authField{
		only("username", a.Username != "", AuthBasic),
		option("password", a.Password != "", AuthBasic),
		only("token", a.Token != "", AuthBearer),
		only("header", a.Header != "", AuthAPIKey),
		only("value", a.Value != "", AuthAPIKey),
		only("token_url", a.TokenURL != "", AuthOAuth2),
		only("client_id", a.ClientID != "", AuthOAuth2),
		only("client_secret", a.ClientSecret != "", AuthOAuth2),
		option("scopes", len(a.Scopes) > 0, AuthOAuth2),
		option("audience", a.Audience != "", AuthOAuth2),
		option("token_file", a.TokenFile != "", AuthOIDC),
		option("command", len(a.Command) > 0, AuthOIDC),
		only("service", a.Service != "", AuthSigV4),
		option("region", a.Region != "", AuthSigV4),
		option("assume_role", a.AssumeRole != "", AuthSigV4),
	}
}

func (a Auth) check(k checklist) {
	if !slices.Contains(authTypes, a.Type) {
		k.word("type", a.Type, authTypes)
		return
	}
	for _, f := range a.fields() {
		k.when(f.set && !slices.Contains(f.types, a.Type), f.name, "belongs to auth type %s, not %s", orList(f.types), a.Type)
		k.when(!f.set && slices.Contains(f.required, a.Type), f.name, "is required by auth type %s", a.Type)
	}
	k.when(a.Type == AuthAPIKey && a.Header != "" && !isToken(a.Header), "header", "must be a header name, got %q", a.Header)
	k.when(a.Type == AuthOIDC && (a.TokenFile == "") == (len(a.Command) == 0), "token_file", "auth type oidc needs exactly one of token_file and command")
	if a.Type == AuthOAuth2 && a.TokenURL != "" {
		k.webURL("token_url", a.TokenURL)
	}
}
