package ingress_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

// client connects with a certificate, or none, and sends one request.
func (w *world) tlsStatus(t *testing.T, path string, certs ...tls.Certificate) int {
	t.Helper()
	conn, err := tls.Dial("tcp", w.addr, &tls.Config{InsecureSkipVerify: true, Certificates: certs})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request("POST "+path, "{}")); err != nil {
		t.Fatal(err)
	}
	return readAnswers(t, conn, 1)[0].StatusCode
}

func clientCertificate(t *testing.T, a *authority, name string) tls.Certificate {
	t.Helper()
	key := ecKey(t)
	return tls.Certificate{Certificate: [][]byte{a.issue(t, key, name)}, PrivateKey: key}
}

func TestClientCertificatesAreJudgedByTheirSource(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	src := of("mtls", "ca", ours.pem, "sans", "sender.example.com").source
	src.Name, src.Secrets = "mtls", nil
	c := sources(src, open("plain"))
	cert, key := certificate(t)
	c.Settings.TLS = bridge.IngressTLS{Cert: cert, Key: key}
	w := serve(t, c)
	for name, tc := range map[string]struct {
		path  string
		certs []tls.Certificate
		want  int
	}{
		"ours":              {"/in/mtls", []tls.Certificate{clientCertificate(t, ours, "sender.example.com")}, 200},
		"another name":      {"/in/mtls", []tls.Certificate{clientCertificate(t, ours, "other.example.com")}, 401},
		"another authority": {"/in/mtls", []tls.Certificate{clientCertificate(t, theirs, "sender.example.com")}, 401},
		"none":              {"/in/mtls", nil, 401},
		"none, elsewhere":   {"/in/plain", nil, 200},
	} {
		if got := w.tlsStatus(t, tc.path, tc.certs...); got != tc.want {
			t.Errorf("%s: status %d, want %d; log:\n%s", name, got, tc.want, w.logs)
		}
	}
	// A source that comes later is asked for, too.
	w.must(t, w.Update([]bridge.Source{open("plain")}))
	w.must(t, w.Update([]bridge.Source{src}))
	if got := w.tlsStatus(t, "/in/mtls", clientCertificate(t, ours, "sender.example.com")); got != 200 {
		t.Errorf("after an update: status %d, want 200", got)
	}
}

func (w *world) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A certificate that a proxy forwards counts from the socket of that proxy,
// whatever X-Forwarded-For says.
func TestForwardedCertificatesCountFromTheSocketAlone(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	leaf := clientCertificate(t, ours, "sender.example.com").Certificate[0]
	header := url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})))
	for proxy, want := range map[string]int{"127.0.0.0/8": 200, "10.0.0.0/8": 401} {
		src := of("mtls", "ca", ours.pem, "sans", "sender.example.com", "forwarded_header", "X-Client-Cert", "trusted_proxies", []any{proxy}).source
		src.Secrets = nil
		c := sources(src)
		c.Settings.TrustedProxies = []string{"127.0.0.1"}
		w := serve(t, c)
		if res, _ := w.post(t, "/in/hook", "{}", "X-Client-Cert", header, "X-Forwarded-For", "10.0.0.1"); res.StatusCode != want {
			t.Errorf("from %s: status %d, want %d", proxy, res.StatusCode, want)
		}
	}
}

// client_ca is for the whole listener: without a certificate of it nothing is
// received, and the refusal can be read.
func TestClientCAIsAskedOfEveryone(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(ours.pem), 0o600); err != nil {
		t.Fatal(err)
	}
	c := sources(open("a"))
	cert, key := certificate(t)
	c.Settings.TLS = bridge.IngressTLS{Cert: cert, Key: key, ClientCA: ca}
	w := serve(t, c)
	if got := w.tlsStatus(t, "/in/a", clientCertificate(t, ours, "x")); got != 200 {
		t.Errorf("with a certificate: status %d, want 200", got)
	}
	for _, path := range []string{"/in/a", "/in/none"} {
		if got := w.tlsStatus(t, path); got != 401 {
			t.Errorf("%s without one: status %d, want 401", path, got)
		}
	}
	stranger := clientCertificate(t, theirs, "x")
	conn, err := tls.Dial("tcp", w.addr, &tls.Config{InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }})
	if err == nil { // TLS 1.3: the refusal comes with the first read
		defer conn.Close()
		_, _ = io.WriteString(conn, request("POST /in/a", "{}"))
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("a certificate of another authority: read %d bytes, want none", n)
		}
	}
	if n := len(w.queen.Items()); n != 1 {
		t.Errorf("%d events stored, want 1", n)
	}
}

func TestAClientCAThatIsNoCertificateIsAnError(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	if _, err := x509.ParseCertificate([]byte(key)); err == nil {
		t.Fatal("the key's file name is a certificate")
	}
	c := sources(open("a"))
	c.Settings.TLS = bridge.IngressTLS{Cert: cert, Key: key, ClientCA: key}
	runFails(t, c, "client_ca")
}
