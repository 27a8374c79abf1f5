package httptarget

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// RequestSigner signs requests by AWS Signature Version 4. It is called once
// per attempt, from many goroutines.
type RequestSigner interface {
	// Sign adds the headers of the signature to req, whose body is body, as of
	// now. It must not read req.Body. An error means that nothing is sent; its
	// text goes into logs and dead letters.
	Sign(ctx context.Context, req *http.Request, body []byte, now time.Time) error
}

// constantCredential is the header of the types of auth that never change; no
// name: none.
func constantCredential(a bridge.Auth) (name, value string) {
	switch a.Type {
	case bridge.AuthBasic:
		pair := a.Username + ":" + a.Password.Reveal()
		return headerAuth, "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
	case bridge.AuthBearer:
		return headerAuth, "Bearer " + a.Token.Reveal()
	case bridge.AuthAPIKey:
		return a.Header, a.Value.Reveal()
	}
	return "", ""
}

// setAuth prepares the types of auth whose credential is made while running.
func (s *Sender) setAuth(a bridge.Auth, o Options) error {
	switch a.Type {
	case "", bridge.AuthNone, bridge.AuthBasic, bridge.AuthBearer, bridge.AuthAPIKey:
	case bridge.AuthOAuth2:
		source, err := newClientCredentials(a, s.connections)
		if err != nil {
			return err
		}
		s.tokens = newTokens(s.now, source.fetch)
	case bridge.AuthOIDC:
		switch {
		case a.TokenFile != "":
			s.tokens = newTokens(s.now, tokenFile{a.TokenFile, s.now}.fetch)
		case len(a.Command) > 0 && a.Command[0] != "":
			s.tokens = newTokens(s.now, tokenCommand{a.Command, s.now}.fetch)
		default:
			return errors.New("auth.token_file or auth.command is required")
		}
	case bridge.AuthSigV4:
		if o.SigV4 == nil {
			return errors.New("auth.type sigv4 is not available here")
		}
		signer, err := o.SigV4(a)
		if err != nil {
			return fmt.Errorf("auth: %w", err)
		}
		s.sigv4 = signer
	default:
		return fmt.Errorf("auth.type %q is unknown", a.Type)
	}
	return nil
}

// authorized makes one request with its credential. Where the function refuses
// a token, one more request carries a new one: with its 401 the function says
// that it did not run, unless it names an outcome of its own.
func (s *Sender) authorized(ctx context.Context, r *bridge.Request) (resp bridge.Response, again bool) {
	if s.tokens == nil {
		return s.once(ctx, r, "")
	}
	held, err := s.tokens.token(ctx)
	if err != nil {
		return noCredential(err), false
	}
	resp, again = s.once(ctx, r, held.value)
	if resp.Status != http.StatusUnauthorized || resp.Header.Get(bridge.HeaderOutcome) != "" {
		return resp, again
	}
	if next := s.tokens.replace(ctx, held); next != nil {
		return s.once(ctx, r, next.value)
	}
	return resp, false
}

// noCredential is the response of a call that was not made.
func noCredential(err error) bridge.Response {
	failed, ok := errors.AsType[*credentialError](err)
	if !ok {
		failed = &credentialError{bridge.FailureConnect, err}
	}
	return bridge.Response{Err: failed, Class: failed.class}
}
