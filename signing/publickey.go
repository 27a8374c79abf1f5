package signing

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// maxPEM bounds a key or certificate file, in bytes. Chains of four
// certificates have about 8 KiB.
const maxPEM = 64 << 10

// newPublicKey reads a public key in whatever form providers show it: PEM
// (public key or certificate), base64 SPKI, and for Ed25519 the 32 bytes
// themselves in hex or base64.
func newPublicKey(a algorithm, text string) (crypto.PublicKey, error) {
	if err := presentKey(text); err != nil {
		return nil, err
	}
	public, err := readPublicKey(a, text)
	if err != nil {
		return nil, err
	}
	if err := a.fits(public); err != nil {
		return nil, err
	}
	return public, nil
}

func presentKey(text string) error {
	_, err := keyUTF8.derive(text)
	return err
}

func readPublicKey(a algorithm, text string) (crypto.PublicKey, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "-----BEGIN ") {
		return publicKeyFromPEM(text)
	}
	if a == algEd25519 {
		if raw, err := hex.DecodeString(text); err == nil && len(raw) == ed25519.PublicKeySize {
			return ed25519.PublicKey(raw), nil
		}
	}
	der, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil && a == algEd25519:
		return nil, errors.New("is no Ed25519 public key: 32 bytes in hex or base64, or PEM, are needed")
	case err != nil:
		return nil, errors.New("is no public key: PEM or base64 is needed, as the provider shows it")
	case a == algEd25519 && len(der) == ed25519.PublicKeySize:
		return ed25519.PublicKey(der), nil
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("is no public key: its base64 holds no SubjectPublicKeyInfo")
	}
	return public, nil
}

// publicKeyFromPEM reads the first block: a public key or a certificate.
func publicKeyFromPEM(text string) (crypto.PublicKey, error) {
	kind, der, _, err := cutPEM(text)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "PUBLIC KEY":
		public, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, errors.New("is no public key: its PEM holds no SubjectPublicKeyInfo")
		}
		return public, nil
	case "RSA PUBLIC KEY":
		public, err := x509.ParsePKCS1PublicKey(der)
		if err != nil {
			return nil, errors.New("is no public key: its PEM holds no RSA key")
		}
		return public, nil
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errors.New("is no certificate: its PEM cannot be read")
		}
		return certificate.PublicKey, nil
	}
	if strings.Contains(kind, "PRIVATE KEY") {
		return nil, errors.New("is a private key: a receiver needs the public one")
	}
	return nil, fmt.Errorf("is PEM of type %q: a public key or a certificate is needed", kind)
}

// ReadPrivateKey reads a private key in PEM (PKCS #8, or the older forms of EC
// and RSA keys) for Options.ForgeKey. Its errors never show the key.
func ReadPrivateKey(text string) (crypto.Signer, error) {
	kind, der, _, err := cutPEM(text)
	if err != nil {
		return nil, fmt.Errorf("the private key %w", err)
	}
	var private any
	switch kind {
	case "PRIVATE KEY":
		private, err = x509.ParsePKCS8PrivateKey(der)
	case "EC PRIVATE KEY":
		private, err = x509.ParseECPrivateKey(der)
	case "RSA PRIVATE KEY":
		private, err = x509.ParsePKCS1PrivateKey(der)
	default:
		return nil, fmt.Errorf("the private key is PEM of type %q: PRIVATE KEY is needed", kind)
	}
	signer, ok := private.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("the private key cannot be read: PKCS #8 in PEM is needed, without a password")
	}
	return signer, nil
}

// certificates reads every certificate of a PEM file, the leaf first.
func certificates(text string) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for strings.Contains(text, "-----BEGIN ") {
		kind, der, rest, err := cutPEM(text)
		if err != nil {
			return nil, err
		}
		text = rest
		if kind != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errors.New("is no certificate: its PEM cannot be read")
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("holds no certificate in PEM")
	}
	return all, nil
}

// cutPEM takes the first block off the text. Unlike encoding/pem it takes a
// block whose lines were joined, or whose line breaks became \n in an
// environment variable: that is how keys reach people (eBay's API sends
// them so).
func cutPEM(text string) (kind string, der []byte, rest string, err error) {
	broken := errors.New("is no PEM: paste it whole, from -----BEGIN to -----END")
	if len(text) > maxPEM {
		return "", nil, "", fmt.Errorf("is longer than %d KiB: only the key or certificate is needed", maxPEM>>10)
	}
	_, after, ok := strings.Cut(text, "-----BEGIN ")
	if !ok {
		return "", nil, "", broken
	}
	if kind, after, ok = strings.Cut(after, "-----"); !ok {
		return "", nil, "", broken
	}
	body, rest, ok := strings.Cut(after, "-----END "+kind+"-----")
	if !ok {
		return "", nil, "", broken
	}
	body = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", `\r`, "", `\n`, "").Replace(body)
	if der, err = base64.StdEncoding.DecodeString(body); err != nil || len(der) == 0 {
		return "", nil, "", broken
	}
	return kind, der, rest, nil
}
