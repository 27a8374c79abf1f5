package ingress_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// certificate writes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", der)
}

func TestTLSHasTheSameLimits(t *testing.T) {
	t.Parallel()
	c := sources(open("a"))
	cert, key := certificate(t)
	c.Settings.TLS = bridge.IngressTLS{Cert: cert, Key: key}
	w := serve(t, c)
	ca, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	for name, tc := range map[string]struct {
		request string
		status  int
	}{
		"accepted":            {request("POST /in/a", "{}"), 200},
		"contradicting sizes": {request("POST /in/a", "2\r\n{}\r\n0\r\n\r\n", "Content-Length: 2", "Transfer-Encoding: chunked"), 400},
		"unknown":             {request("POST /in/b", "{}"), 404},
	} {
		conn, err := tls.Dial("tcp", w.addr, &tls.Config{RootCAs: pool, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, tc.request); err != nil {
			t.Fatal(err)
		}
		if res := readAnswers(t, conn, 1)[0]; res.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d", name, res.StatusCode, tc.status)
		}
		_ = conn.Close()
	}
}

func TestACertificateThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	c := sources(open("a"))
	c.Queen = &queentest.Shelf{}
	c.Settings.TLS = bridge.IngressTLS{Cert: "no-such-file", Key: "no-such-file"}
	s, err := ingress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), l); err == nil {
		t.Error("Run = nil, want an error that names the file")
	}
}

// Certificates are renewed: an update reads the files again.
func TestAnUpdateReadsTheCertificateAgain(t *testing.T) {
	t.Parallel()
	c := sources(open("a"))
	cert, key := certificate(t)
	c.Settings.TLS = bridge.IngressTLS{Cert: cert, Key: key}
	w := serve(t, c)
	shown := func() []byte {
		conn, err := tls.Dial("tcp", w.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Raw
	}
	before := shown()
	newCert, newKey := certificate(t)
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	w.must(t, w.Update(c.Sources))
	after := shown()
	if bytes.Equal(before, after) {
		t.Error("the old certificate is still shown")
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := w.Update(c.Sources); err == nil {
		t.Error("Update without a key = nil, want an error")
	}
	if !bytes.Equal(shown(), after) {
		t.Error("an update that failed changed the certificate")
	}
}
