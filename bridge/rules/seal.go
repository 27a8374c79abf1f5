package rules

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// KeySize is the length of an encryption key: AES-256.
const KeySize = 32

// Keyring seals secrets under its first key and opens those of all of them, so
// that a key can be replaced: put the new one in front, reseal, take the old one
// away. The zero value seals nothing. It is immutable.
type Keyring struct{ keys []sealingKey }

type sealingKey struct {
	id   string
	aead cipher.AEAD
}

// NewKeyring makes a keyring of keys of KeySize bytes, newest first.
func NewKeyring(keys ...[]byte) (Keyring, error) {
	var k Keyring
	for i, key := range keys {
		if len(key) != KeySize {
			return Keyring{}, fmt.Errorf("encryption key %d: must be %d bytes, got %d", i+1, KeySize, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return Keyring{}, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return Keyring{}, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		k.keys = append(k.keys, sealingKey{id: keyID(key), aead: aead})
	}
	return k, nil
}

// keyID names a key without telling anything about it: it is one of 2^256.
func keyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("queenbridge encryption key\x00"), key...))
	return hex.EncodeToString(sum[:6])
}

// Empty says that nothing can be sealed.
func (k Keyring) Empty() bool { return len(k.keys) == 0 }

// current is the id of the key that seals, "" where there is none.
func (k Keyring) current() string {
	if k.Empty() {
		return ""
	}
	return k.keys[0].id
}

// sealedForm begins every sealed text: its format, and behind it the key's id
// and base64 of nonce and ciphertext.
const sealedForm = "v1"

// seal seals a text for one place: of whom and under which id it is, so that a
// stored secret is of no use in another resource.
func (k Keyring) seal(of bridge.Resource, id, text string) (string, error) {
	if k.Empty() {
		return "", ErrNoKey
	}
	key := k.keys[0]
	nonce := make([]byte, key.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	data := key.aead.Seal(nonce, nonce, []byte(text), place(of, id))
	return sealedForm + "." + key.id + "." + base64.StdEncoding.EncodeToString(data), nil
}

// ErrNoKey says that literal secrets cannot be sealed.
var ErrNoKey = errors.New("QUEENBRIDGE_ENCRYPTION_KEY is not set")

// open returns the text that seal sealed. Its errors are for people.
func (k Keyring) open(of bridge.Resource, id, sealed string) (string, error) {
	form, rest, _ := strings.Cut(sealed, ".")
	keyID, encoded, found := strings.Cut(rest, ".")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if form != sealedForm || !found || err != nil {
		return "", errors.New("is sealed in a form that this version does not know")
	}
	for _, key := range k.keys {
		if key.id != keyID {
			continue
		}
		size := key.aead.NonceSize()
		if len(data) < size {
			return "", errors.New("is sealed and damaged")
		}
		text, err := key.aead.Open(nil, data[:size], data[size:], place(of, id))
		if err != nil {
			return "", errors.New("is sealed and damaged, or was moved here from another resource")
		}
		return string(text), nil
	}
	return "", fmt.Errorf("is sealed under a key that this process does not have (id %s): add it to QUEENBRIDGE_ENCRYPTION_KEY", keyID)
}

// sealedUnder is the id of the key that sealed a text.
func sealedUnder(sealed string) string {
	_, rest, _ := strings.Cut(sealed, ".")
	id, _, _ := strings.Cut(rest, ".")
	return id
}

// place is what a sealed text is bound to; lengths make it unambiguous.
func place(of bridge.Resource, id string) []byte {
	return fmt.Appendf(nil, "queenbridge sealed 1 %d:%s %d:%s %s", len(of.Kind), of.Kind, len(of.Name), of.Name, id)
}

// The reference to a sealed secret, as it stands in a document.
const (
	sealedBegin = "${sealed:"
	sealedEnd   = "}"
)

func sealedReference(id string) string { return sealedBegin + id + sealedEnd }

// sealedID is the id of a text that is a reference to a sealed secret.
func sealedID(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, sealedBegin)
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(rest, sealedEnd)
	return id, ok && id != "" && !strings.ContainsAny(id, "${}")
}

// newSealedID is a random name: it says nothing about the secret.
func newSealedID() string { return strings.ToLower(rand.Text()[:16]) }
