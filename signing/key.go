package signing

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // some providers still sign with HMAC-SHA1, which is not broken
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"sync"
)

// key checks signatures with one secret: either macs is set, or public and
// its algorithm.
type key struct {
	// tag is the tag or key of the entries this key may check. It pins a
	// version: a v1a entry never meets a v1 key.
	tag       string
	macs      *macPool
	raw       []byte // the key of macs, for schemes that use it otherwise too
	public    crypto.PublicKey
	algorithm algorithm
}

// macPool keeps HMAC states of one key: building one costs two hash blocks
// and four allocations, resetting one costs none.
type macPool struct{ pool sync.Pool }

type mac struct {
	hash.Hash
	sum, encoded, scratch []byte
}

func newMACPool(d digest, secret []byte) *macPool {
	return &macPool{sync.Pool{New: func() any {
		return &mac{Hash: hmac.New(d.hash, secret), scratch: make([]byte, 0, 512)}
	}}}
}

func (d digest) hash() hash.Hash {
	switch d {
	case digestSHA1:
		return sha1.New() //nolint:gosec // see the import
	case digestSHA512:
		return sha512.New()
	}
	return sha256.New()
}

// newKey derives the key of one secret.
func (s *scheme) newKey(secret string) (key, error) {
	switch s.key {
	case keyStandard:
		return standardKey(secret)
	case keyPublic:
		public, err := newPublicKey(s.algorithm, secret)
		return key{tag: s.tag, public: public, algorithm: s.algorithm}, err
	}
	raw, err := s.key.derive(secret)
	if err != nil {
		return key{}, err
	}
	return key{tag: s.tag, macs: newMACPool(s.digest, raw), raw: raw}, nil
}

// standardKey pins the version of Standard Webhooks by the form of the
// secret: whpk_ is an Ed25519 public key (v1a), everything else an HMAC key
// (v1).
func standardKey(secret string) (key, error) {
	if strings.HasPrefix(secret, "whsk_") {
		return key{}, errors.New("is a private signing key (whsk_): a receiver needs the public key, whpk_ followed by base64")
	}
	text, ok := strings.CutPrefix(secret, "whpk_")
	if !ok {
		raw, err := keyWhsec.derive(secret)
		if err != nil {
			return key{}, err
		}
		return key{tag: "v1", macs: newMACPool(digestSHA256, raw)}, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return key{}, errors.New("is no Ed25519 public key: after whpk_ the base64 of exactly 32 bytes is needed")
	}
	return key{tag: "v1a", public: ed25519.PublicKey(raw), algorithm: algEd25519}, nil
}

// derive turns the text of a secret into the bytes of the key. Its errors
// never quote the secret.
func (f keyForm) derive(secret string) ([]byte, error) {
	if secret == "" {
		return nil, errors.New("is empty: set it, or remove the entry")
	}
	if strings.TrimSpace(secret) == "" {
		return nil, errors.New("is only white space: set it, or remove the entry")
	}
	var raw []byte
	var err error
	switch f {
	case keyWhsec:
		if raw, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err != nil {
			return nil, errors.New("is not base64: paste the whole whsec_… secret (an optional whsec_, then padded base64)")
		}
	case keyBase64:
		if raw, err = base64.StdEncoding.DecodeString(secret); err != nil {
			return nil, errors.New("is not base64 with padding: paste it as the provider shows it")
		}
	case keyHex:
		if raw, err = hex.DecodeString(secret); err != nil {
			return nil, errors.New("is not hex: paste it as the provider shows it")
		}
	case keySHA1:
		sum := sha1.Sum([]byte(secret)) //nolint:gosec // Braintree's key derivation
		raw = sum[:]
	default:
		raw = []byte(secret)
	}
	if len(raw) == 0 {
		return nil, errors.New("decodes to zero bytes: paste the whole secret")
	}
	return raw, nil
}

// matches reports whether any of the received signatures is this key's over
// the message.
func (k *key) matches(message []piece, found *candidates, e encoding) bool {
	if k.public != nil {
		return k.matchesPublic(message, found, e)
	}
	m := k.macs.pool.Get().(*mac)
	defer k.macs.pool.Put(m)
	encoded := m.sign(message, e)
	for _, c := range found.all() {
		if c.tag == k.tag && e.matches(c.text, encoded, m.scratch) {
			return true
		}
	}
	return false
}

// sign returns the encoded MAC of the message, valid until the next call.
func (m *mac) sign(message []piece, e encoding) []byte {
	m.Reset()
	for _, p := range message {
		if p.bytes != nil {
			m.Write(p.bytes)
			continue
		}
		m.scratch = append(m.scratch[:0], p.text...)
		m.Write(m.scratch)
	}
	m.sum = m.Sum(m.sum[:0])
	m.encoded = e.encode(m.encoded[:0], m.sum)
	return m.encoded
}

// mac is the encoded MAC of a message.
func (k *key) mac(message []piece, e encoding) string {
	m := k.macs.pool.Get().(*mac)
	defer k.macs.pool.Put(m)
	return string(m.sign(message, e))
}

// mac is the encoded MAC of a text by the newest secret.
func (v *Verifier) mac(text []byte) string {
	return v.keys[0].mac([]piece{{bytes: text}}, v.scheme.encoding)
}

func (k *key) matchesPublic(message []piece, found *candidates, e encoding) bool {
	text := join(message)
	for _, c := range found.all() {
		if c.tag != k.tag {
			continue
		}
		if sig, err := e.decode(c.text); err == nil && k.algorithm.verify(k.public, text, sig) {
			return true
		}
	}
	return false
}
