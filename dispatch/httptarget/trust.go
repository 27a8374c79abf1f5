package httptarget

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxFile bounds a file of certificates, a key or a token, in bytes.
const maxFile = 1 << 20

// errPin is a certificate that verified and is not among the pinned ones.
var errPin = errors.New("the server's public key is not among tls.pins")

// trust is a target's TLS as configured: which servers it believes, and what
// it shows them.
type trust struct {
	config bridge.TargetTLS
	pins   [][sha256.Size]byte
}

// newTrust reads the pins: base64 of the SHA-256 of a public key
// (SubjectPublicKeyInfo, RFC 7469 §2.4).
func newTrust(t bridge.TargetTLS) (*trust, error) {
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("tls.cert and tls.key need each other")
	}
	c := &trust{config: t}
	for i, text := range t.Pins {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("tls.pins[%d] must be the base64 of a SHA-256", i)
		}
		c.pins = append(c.pins, [sha256.Size]byte(raw))
	}
	return c, nil
}

// hasFiles says that the TLS of a target may change while it runs.
func (c *trust) hasFiles() bool { return c.config.CA != "" || c.config.Cert != "" }

// material is what a target's TLS files hold at one time.
type material struct {
	ca, cert, key []byte
}

func (m material) equal(o material) bool {
	return slices.Equal(m.ca, o.ca) && slices.Equal(m.cert, o.cert) && slices.Equal(m.key, o.key)
}

// read reads the files.
func (c *trust) read() (m material, err error) {
	for _, f := range []struct {
		field, path string
		into        *[]byte
	}{{"ca", c.config.CA, &m.ca}, {"cert", c.config.Cert, &m.cert}, {"key", c.config.Key, &m.key}} {
		if f.path == "" {
			continue
		}
		if *f.into, err = readFile(f.path); err != nil {
			return material{}, fmt.Errorf("tls.%s: %w", f.field, err)
		}
	}
	return m, nil
}

// load reads the files and makes of them the TLS towards the target.
func (c *trust) load() (material, *tls.Config, error) {
	m, err := c.read()
	if err != nil {
		return material{}, nil, err
	}
	config, err := c.target(m)
	return m, config, err
}

// target is the TLS towards the target. tls.ca replaces the system's
// authorities; a pin is one more condition on a certificate that verified, and
// takes no other's place.
func (c *trust) target(m material) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(m.ca) {
			return nil, errors.New("tls.ca holds no certificate in PEM form")
		}
	}
	if m.cert != nil {
		pair, err := tls.X509KeyPair(m.cert, m.key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if len(c.pins) > 0 {
		config.VerifyConnection = c.pinned
	}
	return config, nil
}

// others is the TLS towards an https proxy or a token URL: the system's
// authorities and those of tls.ca, without the target's certificate and pins.
func (c *trust) others(m material) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.ca == nil {
		return config
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(m.ca)
	config.RootCAs = roots
	return config
}

// pinned looks at the server's own certificate, the one whose key it has
// proven to hold; it runs after verification, on resumed sessions, too.
func (c *trust) pinned(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errPin
	}
	sum := sha256.Sum256(state.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if !slices.Contains(c.pins, sum) {
		return errPin
	}
	return nil
}

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %s", path, bridge.Size(maxFile))
	}
	return data, err
}
