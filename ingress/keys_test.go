package ingress_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
)

// rsaKey is a key that all tests share: making one takes time.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{key: ecKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// issue makes a certificate of a client.
func (a *authority) issue(t testing.TB, key crypto.Signer, name string) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publicPEM(t testing.TB, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// signer is a source and what signs its requests.
type signer struct {
	source bridge.Source
	key    crypto.Signer
}

// of is a source of a scheme with a secret and options, in pairs.
func of(scheme string, pairs ...any) signer {
	s := signer{source: bridge.Source{Name: "hook", Scheme: scheme, Secrets: []bridge.Secret{"s3cret"}, SchemeOptions: map[string]any{}}}
	for i := 0; i < len(pairs); i += 2 {
		s.source.SchemeOptions[pairs[i].(string)] = pairs[i+1]
	}
	return s
}

const (
	snsTopic = "arn:aws:sns:us-east-1:123456789012:orders"
	snsCert  = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
)

func sns(t testing.TB, pairs ...any) signer {
	t.Helper()
	s := of("aws-sns", append([]any{"topics", []any{snsTopic}, "keys", map[string]any{snsCert: publicPEM(t, rsaKey().Public())}, "fetch_keys", false}, pairs...)...)
	s.source.Secrets, s.key = nil, rsaKey()
	return s
}

func discord(t testing.TB) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := of("discord")
	s.source.Secrets, s.key = []bridge.Secret{bridge.Secret(publicPEM(t, public))}, private
	return s
}

func sendGrid(t testing.TB) signer {
	t.Helper()
	s := of("sendgrid")
	s.key = ecKey(t)
	s.source.Secrets = []bridge.Secret{bridge.Secret(publicPEM(t, s.key.Public()))}
	return s
}

// sign adds to a request what the provider would.
func (s signer) sign(t testing.TB, r *signing.Request) {
	t.Helper()
	o := s.source.SigningOptions()
	o.ForgeKey = s.key
	if err := signing.Forge(o, r); err != nil {
		t.Fatalf("Forge(%s) = %v", o.Scheme, err)
	}
}
