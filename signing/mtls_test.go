package signing_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// TestClientCertificate: who issued it, when it is valid, whom it names, and
// who may forward it.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	ca, key := newAuthority(t), keysOnce().ec[0]
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	uri, _ := url.Parse("spiffe://example/sender")
	issue := func(c x509.Certificate) *x509.Certificate {
		parsed, err := x509.ParseCertificate(ca.issue(t, key.Public(), c))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	good := issue(x509.Certificate{Subject: pkix.Name{CommonName: "client.webhooks.example"}, DNSNames: []string{"Sender.example.com"}, URIs: []*url.URL{uri}, IPAddresses: []net.IP{net.ParseIP("192.0.2.7")}, EmailAddresses: []string{"a@b.example"}, ExtKeyUsage: client})
	server := issue(x509.Certificate{DNSNames: []string{"sender.example.com"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	old := issue(x509.Certificate{DNSNames: []string{"sender.example.com"}, ExtKeyUsage: client, NotBefore: time.Unix(1, 0), NotAfter: time.Unix(derivedNow-1, 0)})
	stranger, err := certificateOf(selfSigned(t, key, "sender.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	base := func(pairs ...any) map[string]any {
		o := opts(pairs...)
		o["ca"] = pemCert(ca.certificate.Raw)
		return o
	}
	named, proxied := base("sans", "sender.example.com"), base("sans", "sender.example.com", "forwarded_header", "X-Client-Cert", "trusted_proxies", []any{"10.0.0.0/8", "2001:db8::1"})
	forward := func(c *x509.Certificate) string { return url.PathEscape(pemCert(c.Raw)) }
	tests := []struct {
		name    string
		options map[string]any
		shown   *x509.Certificate // on the connection
		peer    string
		header  []string
		reason  signing.Reason
	}{
		{"DNS name", named, good, "", nil, ""},
		{"common name", base("cns", []any{"x", "client.webhooks.example"}), good, "", nil, ""},
		{"URI", base("sans", []any{"spiffe://example/sender"}), good, "", nil, ""},
		{"IP", base("sans", "192.0.2.7"), good, "", nil, ""},
		{"mail", base("sans", "a@b.example"), good, "", nil, ""},
		{"common name is no SAN", base("sans", "client.webhooks.example"), good, "", nil, signing.ReasonNotAllowed},
		{"another name", base("sans", "other.example.com", "cns", "other"), good, "", nil, signing.ReasonNotAllowed},
		{"part of a name", base("sans", "example.com"), good, "", nil, signing.ReasonNotAllowed},
		{"no certificate", named, nil, "", nil, signing.ReasonMissingCredential},
		{"of a server", named, server, "", nil, signing.ReasonBadCertificate},
		{"out of date", named, old, "", nil, signing.ReasonBadCertificate},
		{"another issuer", named, stranger, "", nil, signing.ReasonBadCertificate},
		{"a header nobody asked for", named, nil, "10.1.2.3", []string{forward(good)}, signing.ReasonMissingCredential},
		{"forwarded", proxied, nil, "10.1.2.3", []string{forward(good)}, ""},
		{"forwarded over IPv6", proxied, nil, "2001:db8::1", []string{forward(good)}, ""},
		{"forwarded, mapped address", proxied, nil, "::ffff:10.1.2.3", []string{forward(good)}, ""},
		{"forwarded by a stranger", proxied, nil, "192.0.2.1", []string{forward(good)}, signing.ReasonMissingCredential},
		{"forwarded by nobody known", proxied, nil, "", []string{forward(good)}, signing.ReasonMissingCredential},
		{"forwarded, the proxy's own certificate", proxied, good, "10.1.2.3", nil, signing.ReasonMissingCredential},
		{"forwarded, two", proxied, nil, "10.1.2.3", []string{forward(good), forward(stranger)}, dup},
		{"forwarded, no PEM", proxied, nil, "10.1.2.3", []string{"x"}, signing.ReasonBadCredential},
		{"forwarded, bad escape", proxied, nil, "10.1.2.3", []string{"%zz"}, signing.ReasonMissingCredential},
		{"forwarded, another issuer", proxied, nil, "10.1.2.3", []string{forward(stranger)}, signing.ReasonBadCertificate},
		{"not forwarded", proxied, good, "192.0.2.1", nil, ""},
	}
	for _, tt := range tests {
		v, problems := signing.New(signing.Options{Scheme: "mtls", SchemeOptions: tt.options})
		if len(problems) > 0 {
			t.Fatalf("%s: New = %v", tt.name, problems)
		}
		r := &signing.Request{Method: "POST", Header: http.Header{}, Now: time.Unix(derivedNow, 0)}
		if tt.header != nil {
			r.Header["X-Client-Cert"] = tt.header
		}
		if tt.shown != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{tt.shown}}
		}
		if tt.peer != "" {
			r.Peer = netip.MustParseAddr(tt.peer)
		}
		proof, err := v.Verify(r)
		if checkReason(t, proof, err, tt.reason); t.Failed() {
			t.Fatal(tt.name)
		}
		if err == nil && (proof.Class != signing.Authenticated || proof.Secret != -1) {
			t.Errorf("%s: Verify = %+v", tt.name, proof)
		}
	}
}

func certificateOf(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	return x509.ParseCertificate(block.Bytes)
}
