package signing

// googleKeySet is where Google publishes the keys of its tokens.
const googleKeySet = "https://www.googleapis.com/oauth2/v3/certs"

// googleOptions: anyone can have Google sign a token for any audience, so the
// account counts as well.
func googleOptions(r *reader, s *scheme) {
	s.settings.token = tokenRules{
		header: "Authorization", prefix: "Bearer ", algorithms: []string{"RS256"}, expires: true,
		issuers: []string{"accounts.google.com", "https://accounts.google.com"}, jwksURL: googleKeySet,
		audience: r.text("audience"),
	}
	email := r.text("email")
	for _, name := range []string{"audience", "email"} {
		if !r.has(name) {
			r.add(r.at(name), "is required: as set at the push subscription")
		}
	}
	s.settings.token.check = func(_ *Verifier, _ *input, claims *document) *Rejection {
		if shown, _ := claims.text("email"); shown != email {
			return reject(ReasonNotAllowed, "claim email is another account")
		}
		if raw, _ := claims.at("email_verified"); string(raw) != "true" {
			return reject(ReasonBadClaim, "claim email_verified is not true")
		}
		return nil
	}
	s.settings.token.forged = func(*Verifier, *input) map[string]any {
		return map[string]any{"email": email, "email_verified": true}
	}
	s.algorithm = algRSA
	keysOption(r, s)
	needsKeys(r, s)
}
