package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
)

// issue makes a certificate for a client; a nil parent signs itself.
func issue(t *testing.T, name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
	if parent == nil {
		template.IsCA, template.KeyUsage, parent, by = true, x509.KeyUsageCertSign, template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestACertificateThatTheGatewayTookIsProof as one of a listener would be, and
// one of another issuer is none.
func TestACertificateThatTheGatewayTookIsProof(t *testing.T) {
	t.Parallel()
	ca, caKey, caPEM := issue(t, "our CA", nil, nil)
	_, _, good := issue(t, "sender", ca, caKey)
	other, otherKey, _ := issue(t, "our CA", nil, nil)
	_, _, foreign := issue(t, "sender", other, otherKey)
	f, err := newFunction(ingress.Config{Queen: pusher(stored), Sources: []bridge.Source{{
		Name: "github", Scheme: "mtls", SchemeOptions: map[string]any{"ca": caPEM, "cns": []any{"sender"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		certificate string
		status      int
	}{"good": {good, 200}, "another issuer": {foreign, 401}, "none": {"", 401}, "broken": {"-----BEGIN CERTIFICATE-----", 400}} {
		for document, at := range map[string]string{"rest-api-custom-domain": "identity", "http-api": "authentication"} {
			doc, err := f.Invoke(t.Context(), withCertificate(t, document, at, tc.certificate))
			if err != nil || status(t, doc) != tc.status {
				t.Errorf("%s, %s: %s, %v; want %d", name, document, doc, err, tc.status)
			}
		}
	}
}

func withCertificate(t *testing.T, document, at, certificate string) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.NewDecoder(bytes.NewReader(readEvent(t, document))).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	requestContext := doc["requestContext"].(map[string]any)
	holder, ok := requestContext[at].(map[string]any)
	if !ok {
		holder = map[string]any{}
		requestContext[at] = holder
	}
	if certificate != "" {
		holder["clientCert"] = map[string]any{"clientCertPem": certificate, "subjectDN": "CN=sender", "validity": map[string]any{}}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
