package signing

import (
	"crypto"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// certificateAge is how long a fetched certificate is used without asking
// again. Its URL changes when it does.
const certificateAge = 24 * time.Hour

// errStale is a certificate outside its dates.
var errStale = errors.New("the certificate is not valid now")

// loadCertificate fetches the certificate at a URL that has passed the
// scheme's rule; trusted judges what was fetched. The connection has proven
// the host already.
func loadCertificate(v *Verifier, in *input, address string, trusted func(v *Verifier, chain []*x509.Certificate, now time.Time) error) (crypto.PublicKey, error) {
	raw, err := v.fetch(KeyRequest{Method: http.MethodGet, URL: address, MaxAge: certificateAge})
	if err != nil {
		return nil, err
	}
	keys, err := v.parsed.get(address, raw, func(raw []byte) (map[string]crypto.PublicKey, error) {
		chain, err := certificates(string(raw))
		if err != nil {
			return nil, err
		}
		if err := trusted(v, chain, in.request.Now); err != nil {
			return nil, err
		}
		return map[string]crypto.PublicKey{"": chain[0].PublicKey}, nil
	})
	if err != nil {
		return nil, &FetchError{URL: withoutQuery(address), Err: err}
	}
	return keys[""], nil
}

// inDate trusts a certificate within its dates.
func inDate(_ *Verifier, chain []*x509.Certificate, now time.Time) error {
	if now.Before(chain[0].NotBefore) || now.After(chain[0].NotAfter) {
		return errStale
	}
	return nil
}

// roots are who may have issued certificates of providers; nil is the system's.
func (v *Verifier) roots() *x509.CertPool {
	if r, ok := v.fetcher.(interface{ Roots() *x509.CertPool }); ok {
		return r.Roots()
	}
	return nil
}
