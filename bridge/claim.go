package bridge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strconv"
)

// Claim stands in an envelope for a payload too large to travel in it (claim
// check; design.md, "The event in the queue"): the payload is in the route's
// LargeQueue, in the LargeLane of the lineage and under the lineage as its
// transaction id. It proves what is read back.
type Claim struct {
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"` // hex, of the payload
}

// ErrOtherPayload says that what is stored for a claim is not its payload.
var ErrOtherPayload = errors.New("what is stored is not the payload of the claim check")

// NewClaim is the claim of a payload.
func NewClaim(payload []byte) *Claim {
	sum := sha256.Sum256(payload)
	return &Claim{Size: len(payload), SHA256: hex.EncodeToString(sum[:])}
}

// AppendLarge appends a payload as it is stored for a claim: a JSON string, so
// that no re-encoding reaches its bytes, or {"base64":"…"} where it cannot be
// one.
func AppendLarge(dst, payload []byte) []byte {
	if storable(payload) {
		return appendQuoted(dst, payload)
	}
	return append(appendBase64(append(dst, `{"base64":`...), payload), '}')
}

// Open reads the payload of the claim out of what is stored for it. The error
// is ErrOtherPayload where it is another one.
func (c Claim) Open(stored []byte) ([]byte, error) {
	payload, err := decodeLarge(stored)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read back a payload of %d bytes: %w", c.Size, err)
	case *NewClaim(payload) != c:
		return nil, fmt.Errorf("read back a payload of %d bytes: %w", c.Size, ErrOtherPayload)
	}
	return payload, nil
}

func decodeLarge(stored []byte) ([]byte, error) {
	var text textBytes
	if len(stored) > 0 && stored[0] == '"' {
		if err := json.Unmarshal(stored, &text); err != nil {
			return nil, hideValue(err)
		}
		return text, nil
	}
	var wire struct {
		Base64 *string `json:"base64"`
	}
	if err := json.Unmarshal(stored, &wire); err != nil {
		return nil, hideValue(err)
	}
	if wire.Base64 == nil {
		return nil, ErrOtherPayload
	}
	return base64.StdEncoding.DecodeString(*wire.Base64)
}

func (c Claim) appendJSON(dst []byte) []byte {
	dst = append(dst, `,"large":{"size":`...)
	dst = strconv.AppendInt(dst, int64(c.Size), 10)
	dst = append(dst, `,"sha256":`...)
	dst = appendText(dst, c.SHA256)
	return append(dst, '}')
}
