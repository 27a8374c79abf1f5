package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json/jsontext"
	"unicode/utf8"
)

// shape is what a body's bytes are.
type shape int8

const (
	unknown shape = iota
	isJSON        // one JSON value, as RFC 8259 has it
	isText        // other UTF-8
	isBinary
)

const (
	base64Before = `{"body_base64":"`
	base64After  = `"}`
)

// shapeOf looks once at the body of an item.
func (it *Item) shapeOf() shape {
	if it.shape == unknown {
		it.shape = shapeOf(it.Event.Body)
	}
	return it.shape
}

// shapeOf is strict in nothing but the grammar: a repeated key is JSON, and so
// is the escape of a lone surrogate.
func shapeOf(body []byte) shape {
	switch {
	case !utf8.Valid(body):
		return isBinary
	case jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)):
		return isJSON
	}
	return isText
}

// appendValue appends a body as one JSON value.
func appendValue(dst []byte, it *Item) []byte {
	switch it.shapeOf() {
	case isJSON:
		return append(dst, it.Event.Body...)
	case isText:
		return appendString(dst, it.Event.Body)
	}
	dst = append(dst, base64Before...)
	dst = base64.StdEncoding.AppendEncode(dst, it.Event.Body)
	return append(dst, base64After...)
}

// appendLine appends a body as one line. In JSON a raw line break can only
// stand between two tokens, where a space means the same.
func appendLine(dst []byte, it *Item) []byte {
	start := len(dst)
	dst = appendValue(dst, it)
	if line := dst[start:]; bytes.ContainsAny(line, "\r\n") {
		for i, c := range line {
			if c == '\r' || c == '\n' {
				line[i] = ' '
			}
		}
	}
	return dst
}

func valueSize(it *Item) int {
	switch it.shapeOf() {
	case isJSON:
		return len(it.Event.Body)
	case isText:
		return quotedSize(it.Event.Body)
	}
	return len(base64Before) + base64.StdEncoding.EncodedLen(len(it.Event.Body)) + len(base64After)
}

// appendString appends s as a JSON string; what is no UTF-8 becomes U+FFFD.
func appendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // its error only tells of the U+FFFD
	return dst
}

// quotedSize is how long s, which is UTF-8, is as a JSON string.
func quotedSize[T ~string | ~[]byte](s T) int {
	n := len(s) + 2
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}

// textSize is how long any s is as a JSON string, at most: a byte that is no
// UTF-8 becomes the three of U+FFFD.
func textSize(s string) int {
	n := quotedSize(s)
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			n += 2
		}
	}
	return n
}
