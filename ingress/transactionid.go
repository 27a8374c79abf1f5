package ingress

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"
)

// maxID bounds a transaction id in bytes (presets.md §2).
const maxID = 200

// values reads one proven request. The rules of presets.md §2 are its own:
// trimmed headers, two different values of one header are none, exact keys,
// numbers as their literal text.
type values interface {
	Header(name string) (string, bool)
	Query(name string) (string, bool)
	Form(name string) (string, bool)
	JSON(path string) (string, bool)
}

// itemValues reads one element of a split batch.
type itemValues interface {
	JSON(path string) (string, bool)
}

// facts are what the expressions of one event are evaluated over.
type facts struct {
	values values
	body   []byte
	// item and raw are set in a split batch: raw is the item's text as it
	// stands in the body.
	item itemValues
	raw  []byte
}

// itemValue reads the item, or the body where nothing was split.
func (f *facts) itemValue(path string) (string, bool) {
	if f.item == nil {
		return f.values.JSON(path)
	}
	return f.item.JSON(path)
}

func (f *facts) hashBody() (string, bool) {
	if len(f.body) == 0 {
		return "", false
	}
	return hexSHA256(f.body), true
}

func (f *facts) hashItem() (string, bool) {
	if f.item == nil {
		return f.hashBody()
	}
	return hexSHA256(f.raw), true
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// idRule makes the transaction ids of one source.
type idRule struct {
	scheme     string
	expression expression
	// dedup off: every accepted request is a new event.
	random bool
}

// id is the transaction id of one event. missing says that the provider's id
// was not there, so the hash of the content (or a random id where there is
// none) stands in.
func (r *idRule) id(f *facts) (id string, missing bool) {
	if r.random {
		return r.uuid(), false
	}
	v, t, ok := r.expression.value(f)
	switch {
	case !ok:
		return r.contentID(f), len(r.expression) > 0
	case t.hashes():
		return r.hashed(v), false
	case f.item != nil && !t.ofItem():
		// The same for every item of the batch: alone it would make all but
		// the first one duplicates. Hashes rather than positions tell them
		// apart, because providers batch anew when they resend.
		item, _ := f.hashItem()
		return r.format(v + "," + item), false
	}
	return r.format(v), false
}

// contentID stands in for an id: the hash of the item or body. Nothing to hash
// is never hashed, or all empty requests would be one event.
func (r *idRule) contentID(f *facts) string {
	if sum, ok := f.hashItem(); ok {
		return r.hashed(sum)
	}
	return r.uuid()
}

func (r *idRule) hashed(sum string) string { return r.scheme + ":sha256:" + sum }
func (r *idRule) uuid() string             { return r.scheme + ":uuid:" + uuid.NewString() }

// format is <scheme>:<id> where that is short and printable, else its hash.
func (r *idRule) format(id string) string {
	if len(r.scheme)+1+len(id) <= maxID && between(id, 0x21, 0x7e) {
		return r.scheme + ":" + id
	}
	return r.hashed(hexSHA256([]byte(id)))
}

// between says that every byte of s is in [from, to].
func between(s string, from, to byte) bool {
	for i := range len(s) {
		if s[i] < from || s[i] > to {
			return false
		}
	}
	return true
}
