package bridge

import (
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

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
	switch a.Type {
	case AuthBasic:
		// RFC 7617 §2: the first colon ends the user.
		k.when(strings.Contains(a.Username, ":"), "username", "must not hold a colon: it ends the username")
		k.carriable("username", a.Username)
		k.carriable("password", a.Password.Reveal())
	case AuthBearer:
		k.carriable("token", a.Token.Reveal())
	case AuthAPIKey:
		a.checkHeader(k)
		k.carriable("value", a.Value.Reveal())
	case AuthOAuth2:
		a.checkOAuth2(k)
	case AuthOIDC:
		k.when((a.TokenFile == "") == (len(a.Command) == 0), "token_file", "auth type oidc needs exactly one of token_file and command")
		k.when(len(a.Command) > 0 && a.Command[0] == "", "command", "must begin with the program to run")
	case AuthSigV4:
		k.roleARN("assume_role", a.AssumeRole)
	}
}

// carriable refuses what no header can carry. The text is never shown: it may
// be a secret.
func (c checklist) carriable(field, text string) {
	c.when(strings.ContainsFunc(text, isControl), field, "must not hold control characters such as a line break")
}

func (a Auth) checkHeader(k checklist) {
	switch {
	case a.Header == "":
	case !isToken(a.Header):
		k.fail("header", "must be a header name, got %q", a.Header)
	case slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(a.Header)):
		k.fail("header", "%q is set by the bridge on every call: choose another header", a.Header)
	}
}

func (a Auth) checkOAuth2(k checklist) {
	if a.TokenURL != "" {
		k.webURL("token_url", a.TokenURL)
		u, err := url.Parse(a.TokenURL)
		k.when(err == nil && u.Scheme == "http" && u.User == nil && !isLoopbackHost(u.Hostname()), "token_url",
			"must begin with https://: the client secret would travel in clear (RFC 6749 §3.2)")
	}
	for i, scope := range a.Scopes {
		// RFC 6749 §3.3: a space separates two scopes.
		bad := scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		k.when(bad, atIndex("scopes", i), "must be one scope, without spaces, got %q", cutText(scope, 100))
	}
}
