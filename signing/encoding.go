package signing

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// encoding is how a signature is written. Base64 is strict: padding, no line
// breaks and no stray bits, so that one signature has one spelling. Hex may
// be in either case.
type encoding string

const (
	encodingHex       encoding = "hex"
	encodingBase64    encoding = "base64"
	encodingBase64URL encoding = "base64url" // without padding
)

var encodings = []string{"hex", "base64", "base64url"}

func (e encoding) encode(dst, sum []byte) []byte {
	switch e {
	case encodingBase64:
		return base64.StdEncoding.AppendEncode(dst, sum)
	case encodingBase64URL:
		return base64.RawURLEncoding.AppendEncode(dst, sum)
	}
	return hex.AppendEncode(dst, sum)
}

func (e encoding) decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") { // encoding/base64 would skip them
		return nil, fmt.Errorf("line break in %s", e)
	}
	switch e {
	case encodingBase64:
		return base64.StdEncoding.Strict().DecodeString(text)
	case encodingBase64URL:
		return base64.RawURLEncoding.Strict().DecodeString(text)
	}
	return hex.DecodeString(text)
}

// matches compares in constant time a received signature with one that is
// encoded already. Comparing the canonical text needs no decoding buffer;
// the length of a signature is no secret.
func (e encoding) matches(received string, encoded, scratch []byte) bool {
	if len(received) != len(encoded) {
		return false
	}
	scratch = append(scratch[:0], received...)
	if e == encodingHex {
		lowerASCII(scratch)
	}
	return subtle.ConstantTimeCompare(scratch, encoded) == 1
}

func lowerASCII(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}
