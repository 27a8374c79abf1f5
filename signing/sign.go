package signing

import (
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Signer signs our own requests by Standard Webhooks. It is immutable and
// safe for concurrent use.
type Signer struct{ keys []signingKey }

// signingKey has either macs (v1) or private (v1a).
type signingKey struct {
	macs    *macPool
	private ed25519.PrivateKey
}

// NewSigner makes a signer of version "v1" (secrets whsec_ base64) or "v1a"
// (secrets whsk_ base64 of a 32-byte seed or a 64-byte private key). Every
// secret signs, so that receivers may rotate; at least one is needed.
func NewSigner(scheme string, secrets []string) (*Signer, error) {
	if scheme != "v1" && scheme != "v1a" {
		return nil, fmt.Errorf("signing scheme must be v1 or v1a, got %q", scheme)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("signing scheme %s needs at least one secret", scheme)
	}
	s := &Signer{}
	for i, secret := range secrets {
		k, err := newSigningKey(scheme, secret)
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, err)
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

func newSigningKey(version, secret string) (signingKey, error) {
	if version == "v1a" {
		private, err := privateKey(secret)
		return signingKey{private: private}, err
	}
	if strings.HasPrefix(secret, "whsk_") || strings.HasPrefix(secret, "whpk_") {
		return signingKey{}, errors.New("is an asymmetric key: v1 needs whsec_ followed by base64, or choose v1a")
	}
	raw, err := keyWhsec.derive(secret)
	if err != nil {
		return signingKey{}, err
	}
	return signingKey{macs: newMACPool(digestSHA256, raw)}, nil
}

// privateKey reads a seed, or a private key whose second half must be the
// public key of its first: signing with another one would leak the key.
func privateKey(secret string) (ed25519.PrivateKey, error) {
	if strings.HasPrefix(secret, "whpk_") {
		return nil, errors.New("is a public key (whpk_): signing needs the private key, whsk_ followed by base64")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsk_"))
	if err != nil {
		return nil, errors.New("is not base64: paste the whole whsk_… secret")
	}
	switch len(raw) {
	case ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(raw), nil
	case ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
		if subtle.ConstantTimeCompare(private, raw) != 1 {
			return nil, errors.New("is no Ed25519 key: its public half does not belong to its private half")
		}
		return private, nil
	}
	return nil, fmt.Errorf("is no Ed25519 key: the base64 of 32 (seed) or 64 bytes is needed, got %d", len(raw))
}

// Sign returns the value of the webhook-signature header: one entry for each
// secret, separated by spaces. The webhook-id header must be id and the
// webhook-timestamp header the Unix seconds of at.
func (s *Signer) Sign(id string, at time.Time, body []byte) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	message := []piece{{text: id + "." + stamp + "."}, {bytes: body}}
	var out strings.Builder
	for i := range s.keys {
		if i > 0 {
			out.WriteByte(' ')
		}
		s.keys[i].write(&out, message)
	}
	return out.String()
}

func (k *signingKey) write(out *strings.Builder, message []piece) {
	if k.private != nil {
		out.WriteString("v1a,")
		out.WriteString(base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, join(message))))
		return
	}
	m := k.macs.pool.Get().(*mac)
	defer k.macs.pool.Put(m)
	out.WriteString("v1,")
	out.Write(m.sign(message, encodingBase64))
}
