package queen_test

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// newTLSBroker is a broker with a certificate of its own authority, whose PEM
// file it returns.
func newTLSBroker(t *testing.T, config *tls.Config) (url, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `[{"status":"queued"}]`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, ca
}

func TestAPrivateAuthorityIsAcceptedWhereNamed(t *testing.T) {
	t.Parallel()
	url, ca := newTLSBroker(t, nil)
	if _, err := client(t, queen.Config{URLs: []string{url}, CA: ca}).Push(t.Context(), items("a")); err != nil {
		t.Errorf("with its authority: Push() = %v", err)
	}
	_, err := client(t, queen.Config{URLs: []string{url}}).Push(t.Context(), items("a"))
	var unknown *tls.CertificateVerificationError
	if !errors.As(err, &unknown) || queen.Uncertain(err) {
		t.Errorf("with the system's: Push() error = %v; want an unknown authority, and certain that nothing was sent", err)
	}
	// The certificate is for 127.0.0.1 and example.com.
	elsewhere := strings.Replace(url, "127.0.0.1", "localhost", 1)
	if _, err := client(t, queen.Config{URLs: []string{elsewhere}, CA: ca}).Push(t.Context(), items("a")); !errors.As(err, &unknown) {
		t.Errorf("another name: Push() error = %v; want a wrong name", err)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	for version, good := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		url, ca := newTLSBroker(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version})
		_, err := client(t, queen.Config{URLs: []string{url}, CA: ca}).Push(t.Context(), items("a"))
		if (err == nil) != good {
			t.Errorf("%s: Push() error = %v, want accepted %v", tls.VersionName(version), err, good)
		}
	}
}

func TestNewRefusesBadAuthorities(t *testing.T) {
	t.Parallel()
	url, ca := newTLSBroker(t, nil)
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	if err := os.WriteFile(garbage, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]queen.Config{
		"not there":          {URLs: []string{url}, CA: ca + "x"},
		"no certificate":     {URLs: []string{url}, CA: garbage},
		"no https":           {URLs: []string{"http://queen"}, CA: ca},
		"another transport":  {URLs: []string{url}, CA: ca, Transport: http.DefaultTransport},
		"a key is no secret": {URLs: []string{url}, CA: t.TempDir()},
	} {
		if c, err := queen.New(cfg); err == nil || c != nil {
			t.Errorf("%s: New() = %v, %v; want an error", name, c, err)
		}
	}
}

// A proxy that compresses what nobody asked it to.
func TestACompressedAnswerIsAnErrorThatSaysSo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		said   bool
	}{{"said", 200, true}, {"not said", 200, false}, {"a refusal", 400, true}, {"an outage", 503, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("Accept-Encoding = %q", r.Header.Get("Accept-Encoding"))
				}
				if tt.said {
					w.Header().Set("Content-Encoding", "gzip")
				}
				w.WriteHeader(tt.status)
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, popped(message("a", `1`)))
				_ = z.Close()
			})
			for name, transport := range map[string]http.RoundTripper{"own": nil, "http's": &http.Transport{DisableKeepAlives: true}} {
				p, err := client(t, queen.Config{URLs: []string{b.URL}, Transport: transport}).Pop(t.Context(), popRequest())
				if err == nil || !strings.Contains(err.Error(), "compressed (gzip)") || len(p.Messages) > 0 {
					t.Errorf("%s: Pop() = %+v, %v; want an error that says it", name, p, err)
				}
				var status *queen.StatusError
				if isStatus := errors.As(err, &status); isStatus != (tt.status >= 300) || isStatus && status.Status != tt.status {
					t.Errorf("%s: Pop() error = %#v", name, err)
				}
				if queen.Uncertain(err) != (tt.status != 400) {
					t.Errorf("%s: Uncertain(%v) = %v", name, err, queen.Uncertain(err))
				}
			}
		})
	}
}

func TestIdentityCodingIsNoCompression(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "Identity")
		_, _ = io.WriteString(w, popped(message("a", `1`)))
	})
	if p, err := client(t, queen.Config{URLs: []string{b.URL}}).Pop(t.Context(), popRequest()); err != nil || len(p.Messages) != 1 {
		t.Errorf("Pop() = %+v, %v", p, err)
	}
}
