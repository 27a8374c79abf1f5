package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// unsendable are the schemes whose proof is no part of a request.
var unsendable = map[string]string{"mtls": "the proof is the client certificate of the connection"}

// sendable is one scheme's source, and the key its provider signs with.
type sendable struct {
	Name      string         `json:"name"`
	Scheme    string         `json:"scheme"`
	Secrets   []string       `json:"secrets"`
	Options   map[string]any `json:"scheme_options"`
	PublicURL string         `json:"public_url"`

	key string // kind of private key: rsa, ec, ed; "" for none
}

// keyPairs are one key of each kind, with its file.
type keyPairs struct {
	t     *testing.T
	dir   string
	pairs map[string]crypto.Signer
}

func newKeyPairs(t *testing.T, dir string) *keyPairs {
	t.Helper()
	k := &keyPairs{t: t, dir: dir, pairs: make(map[string]crypto.Signer)}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	k.must(err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.must(err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	k.must(err)
	k.pairs["rsa"], k.pairs["ec"], k.pairs["ed"] = rsaKey, ecKey, edKey
	for kind, key := range k.pairs {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		k.must(err)
		k.must(os.WriteFile(k.file(kind), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	}
	return k
}

func (k *keyPairs) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keyPairs) file(kind string) string { return filepath.Join(k.dir, kind+".pem") }

func (k *keyPairs) spki(kind string) []byte {
	der, err := x509.MarshalPKIXPublicKey(k.pairs[kind].Public())
	k.must(err)
	return der
}

func (k *keyPairs) public(kind string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.spki(kind)}))
}

func (k *keyPairs) certificate(kind, name string) string {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.pairs[kind].Public(), k.pairs[kind])
	k.must(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// source is what a user would write for a scheme.
func (k *keyPairs) source(p signing.Preset) sendable {
	s := sendable{Name: p.Name, Scheme: p.Name, Secrets: []string{whsecSecret}, Options: map[string]any{}}
	if p.NeedsURL {
		s.PublicURL = "https://hooks.example.com/in/" + p.Name
	}
	raw := []byte(plainSecret)
	edRaw, _ := k.pairs["ed"].Public().(ed25519.PublicKey)
	set := func(key string, secrets []string, options map[string]any) {
		s.key, s.Secrets, s.Options = key, secrets, options
	}
	pinned := func(id, key string, more map[string]any) map[string]any {
		more["keys"], more["fetch_keys"] = map[string]any{id: key}, false
		return more
	}
	none := []string{}
	switch p.Name {
	case "airtable", "ms-teams":
		s.Secrets = []string{base64.StdEncoding.EncodeToString(raw)}
	case "adyen", "adyen-platform", "authorize-net":
		s.Secrets = []string{hex.EncodeToString(raw)}
	case "postmark", "basic":
		s.Secrets = []string{"user:pass"}
	case "braintree":
		s.Options["public_key"] = "pub"
	case "wise":
		set("rsa", []string{k.public("rsa")}, s.Options)
	case "sendgrid":
		set("ec", []string{base64.StdEncoding.EncodeToString(k.spki("ec"))}, s.Options)
	case "discord":
		set("ed", []string{hex.EncodeToString(edRaw)}, s.Options)
	case "telnyx":
		set("ed", []string{base64.StdEncoding.EncodeToString(edRaw)}, s.Options)
	case "paypal":
		set("rsa", none, pinned("https://api.paypal.com/v1/notifications/certs/CERT-1", k.certificate("rsa", "x.paypal.com"), map[string]any{"webhook_id": "1JE4291016473214C"}))
	case "aws-sns":
		set("rsa", none, pinned("https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem", k.certificate("rsa", "sns.amazonaws.com"),
			map[string]any{"topics": []string{"arn:aws:sns:us-east-1:123456789012:orders"}}))
	case "plaid":
		set("ec", none, pinned("kid-1", k.public("ec"), map[string]any{}))
	case "ebay":
		set("ec", none, pinned("kid-1", k.public("ec"), map[string]any{"verification_token": "token"}))
	case "google-pubsub":
		set("rsa", none, pinned("kid-1", k.public("rsa"), map[string]any{"audience": "https://hooks.example.com", "email": "push@p.iam.gserviceaccount.com"}))
	case "adobe-sign":
		set("", none, map[string]any{"client_ids": []string{"CLIENT1"}})
	case "hmac":
		s.Options = map[string]any{"header": "X-Sig", "prefix": "v1=", "message": "{timestamp}.{body}", "timestamp": map[string]any{"header": "X-Time", "unit": "ms"}}
	case "public-key":
		set("ed", []string{k.public("ed")}, map[string]any{"header": "X-Sig", "algorithm": "ed25519", "encoding": "base64"})
	case "token":
		s.Options["header"] = "X-Api-Key"
	case "jwt":
		s.Options["algorithms"] = []string{"HS256"}
	case "rfc9421":
		set("", []string{base64.StdEncoding.EncodeToString(raw)}, map[string]any{"algorithm": "hmac-sha256"})
	case "none":
		s.Secrets = none
	}
	return s
}

// TestSendSignsEveryScheme sends one webhook for every scheme there is to a
// bridge that checks it. Each is stored in the source's own queue.
func TestSendSignsEveryScheme(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := newKeyPairs(t, w.dir)
	var sources []sendable
	for _, p := range signing.Presets() {
		if _, never := unsendable[p.Name]; !never {
			sources = append(sources, keys.source(p))
		}
	}
	config, err := json.Marshal(sources) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	p := w.start("sources: " + string(config) + "\n")
	for _, s := range sources {
		args := []string{"send", "--config", filepath.Join(w.dir, "bridge.yaml"), "--source", s.Name, "--url", p.ingress + "/in/" + s.Name}
		if s.key != "" {
			args = append(args, "--key", keys.file(s.key))
		}
		code, out, errs := runProgram(t, args...)
		for again := 0; faulty() && strings.Contains(out, " → 503") && again < 10; again++ { // pushed in vain for too long
			code, out, errs = runProgram(t, args...)
		}
		if code != 0 || !strings.Contains(out, " → 20") {
			t.Errorf("send as %s: exit code %d\n%s%s", s.Name, code, out, errs)
		}
	}
	_, metrics := get(t, p.admin+"/metrics")
	for _, s := range sources {
		// A duplicate: a push whose answer was lost.
		stored := fmt.Sprintf(`source="%s",verdict="(queued|duplicate)"} [1-9]`, regexp.QuoteMeta(s.Name))
		if !regexp.MustCompile(stored).MatchString(metrics) {
			t.Errorf("send as %s: nothing was stored (no %s)", s.Name, stored)
		}
	}
	code, out, errs := runProgram(t, "send", "--scheme", "github", "--secret", "wrong", "--url", p.ingress+"/in/github")
	if code != 1 || !strings.Contains(errs, "hint: the signature was refused") {
		t.Errorf("send with a wrong secret: exit code %d\n%s%s", code, out, errs)
	}
}

// runProgram runs the program in this process, as a user would type it.
func runProgram(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs}, os.LookupEnv)
	return code, out.String(), lastLines(errs.String())
}

// lastLines leaves out the warnings about each secret of a test.
func lastLines(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "warning: ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestSignAndVerifyEveryScheme: what sign prints, verify accepts, offline.
func TestSignAndVerifyEveryScheme(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := newKeyPairs(t, dir)
	var sources []sendable
	for _, p := range signing.Presets() {
		if _, never := unsendable[p.Name]; !never {
			sources = append(sources, keys.source(p))
		}
	}
	text, err := json.Marshal(map[string]any{"sources": sources})
	keys.must(err)
	config := filepath.Join(dir, "bridge.yaml")
	keys.must(os.WriteFile(config, text, 0o600))
	for _, s := range sources {
		args := []string{"sign", "--config", config, "--source", s.Name, "--json", "--at", "1769860800"}
		if s.key != "" {
			args = append(args, "--key", keys.file(s.key))
		}
		code, out, errs := runProgram(t, args...)
		var signed signedView
		if code != 0 || json.Unmarshal([]byte(out), &signed) != nil {
			t.Errorf("sign as %s: exit code %d\n%s%s", s.Name, code, out, errs)
			continue
		}
		body := filepath.Join(dir, s.Name+".body")
		keys.must(os.WriteFile(body, signed.Body, 0o600))
		args = []string{"verify", "--config", config, "--source", s.Name, "--method", signed.Method, "--query", signed.Query, "--data", "@" + body, "--at", "1769860801"}
		for name, values := range signed.Headers {
			args = append(args, "--header", name+": "+values[0])
		}
		if code, out, errs = runProgram(t, args...); code != 0 || !strings.HasPrefix(out, "proven: ") {
			t.Errorf("verify as %s: exit code %d\n%s%s", s.Name, code, out, errs)
		}
	}
}
