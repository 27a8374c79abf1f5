package httptarget_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

func quiet(server *httptest.Server) { server.Config.ErrorLog = log.New(io.Discard, "", 0) }

// identity is a certificate that signed itself, in files.
type identity struct {
	cert, key string
	der       []byte
}

func newIdentity(t *testing.T) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "queenbridge"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	id := identity{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), der}
	writeCertificate(t, id.cert, der)
	if err := os.WriteFile(id.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return id
}

// mutual serves a function that wants a client certificate and answers with
// its serial number.
func mutual(t *testing.T, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].SerialNumber.String())
	}))
	quiet(server)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	for _, http2 := range []bool{false, true} {
		server := mutual(t, http2)
		trust := trusting(t, server)
		s := newSender(t, server.URL, func(t *bridge.Target) { trust(t); t.TLS.Cert, t.TLS.Key = id.cert, id.key })
		if resp := send(t, s, request()); resp.Status != 200 {
			t.Errorf("HTTP/2 %v: Send = %d, %v", http2, resp.Status, resp.Err)
		}
	}
}

// With TLS 1.3 the request is on its way when the server refuses the client,
// which has read none of it: no attempt may count. Where the reset of the
// connection overtakes the reason, nothing tells it from a function that died.
func TestMissingClientCertificateIsAnUnsentFailure(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		server := mutual(t, http2)
		resp := send(t, newSender(t, server.URL, trusting(t, server)), request())
		if resp.Err == nil || resp.Sent && strings.Contains(resp.Err.Error(), "certificate") || !resp.Sent && resp.Class == bridge.FailureTimeout {
			t.Errorf("HTTP/2 %v: Send = %d, class %q, sent %v, %v; want an unsent failure of TLS", http2, resp.Status, resp.Class, resp.Sent, resp.Err)
		}
	}
}

// A certificate that is replaced in its files is shown by the next
// connections, without a restart; half a replacement changes nothing.
func TestChangedCertificateIsUsed(t *testing.T) {
	t.Parallel()
	server, old, next := mutual(t, true), newIdentity(t), newIdentity(t)
	trust := trusting(t, server)
	c := new(clock)
	var warned strings.Builder
	o := httptarget.Options{Now: c.now, Logger: slog.New(slog.NewTextHandler(&warned, nil))}
	s := newSenderWith(t, server.URL, o, func(t *bridge.Target) { trust(t); t.TLS.Cert, t.TLS.Key = old.cert, old.key })
	first := send(t, s, request())
	replace(t, next.cert, old.cert)
	c.turn(11 * time.Second)
	if resp := send(t, s, request()); string(resp.Body) != string(first.Body) || !strings.Contains(warned.String(), "tls.cert and tls.key") {
		t.Errorf("certificate without its key: Send = %d, %q, %v; want the old one, and a warning: %s", resp.Status, resp.Body, resp.Err, warned.String())
	}
	replace(t, next.key, old.key)
	c.turn(11 * time.Second)
	if resp := send(t, s, request()); resp.Status != 200 || string(resp.Body) == string(first.Body) {
		t.Errorf("Send = %d, %q, %v; want the new certificate", resp.Status, resp.Body, resp.Err)
	}
	if err := os.Remove(old.key); err != nil {
		t.Fatal(err)
	}
	c.turn(6 * time.Minute)
	if resp := send(t, s, request()); resp.Status != 200 {
		t.Errorf("key removed, connections old: Send = %d, %v; want the last one used", resp.Status, resp.Err)
	}
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	quiet(server)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().RawSubjectPublicKeyInfo)
	right, wrong := base64.StdEncoding.EncodeToString(sum[:]), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	trust := trusting(t, server)
	for _, tt := range []struct {
		name  string
		pins  []string
		trust bool
		want  bool
	}{
		{"the right one", []string{right}, true, true},
		{"one of several", []string{wrong, right}, true, true},
		{"another one", []string{wrong}, true, false},
		{"the right one, unknown authority", []string{right}, false, false},
	} {
		s := newSender(t, server.URL, func(t *bridge.Target) {
			if tt.trust {
				trust(t)
			}
			t.TLS.Pins = tt.pins
		})
		resp := send(t, s, request())
		if (resp.Status == 200) != tt.want || !tt.want && (resp.Class != bridge.FailureTLS || resp.Sent) {
			t.Errorf("%s: Send = %d, class %q, sent %v, %v; want reached %v", tt.name, resp.Status, resp.Class, resp.Sent, resp.Err, tt.want)
		}
	}
}

func TestPrivateAuthorityReplacesTheSystems(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	quiet(server)
	other := newIdentity(t)
	s := newSender(t, server.URL, func(t *bridge.Target) { t.TLS.CA = other.cert })
	if resp := send(t, s, request()); resp.Class != bridge.FailureTLS || resp.Sent {
		t.Errorf("Send = %d, class %q, sent %v, %v; want a TLS failure", resp.Status, resp.Class, resp.Sent, resp.Err)
	}
}

// Files that cannot be used fail New, with their field.
func TestWrongTLSFiles(t *testing.T) {
	t.Parallel()
	id, other := newIdentity(t), newIdentity(t)
	missing, empty, large := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "large")
	for path, size := range map[string]int{empty: 0, large: 1<<20 + 1} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		tls  bridge.TargetTLS
		want string
	}{
		{bridge.TargetTLS{CA: missing}, "tls.ca: open " + missing},
		{bridge.TargetTLS{CA: empty}, "tls.ca holds no certificate"},
		{bridge.TargetTLS{CA: large}, "is larger than 1MiB"},
		{bridge.TargetTLS{CA: t.TempDir()}, "tls.ca: read "},
		{bridge.TargetTLS{Cert: id.cert}, "tls.cert and tls.key need each other"},
		{bridge.TargetTLS{Cert: id.cert, Key: missing}, "tls.key: open " + missing},
		{bridge.TargetTLS{Cert: id.cert, Key: other.key}, "tls.cert and tls.key: "},
		{bridge.TargetTLS{Pins: []string{"abc"}}, "tls.pins[0] must be"},
	} {
		_, err := httptarget.New(bridge.Target{HTTP: &bridge.HTTPTarget{URL: "https://example.com/"}, TLS: tt.tls}, httptarget.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v) = %v, want %q in it", tt.tls, err, tt.want)
		}
	}
}
