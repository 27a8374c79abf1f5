package bridge

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// quickEvent reads an event that stands as AppendPayload writes it, its members
// in that order and no space between them: nearly every event there is. It takes
// less than half of the general decoder's time, which was a tenth of a whole
// delivery (BenchmarkDecodeEvent, BenchmarkDeliver). What is the least bit
// different, and every mistake, is the general decoder's: not ok.
func quickEvent(payload []byte) (e Event, ok bool) {
	const body = `,"body":"`
	at := bytes.Index(payload, []byte(body)) // inside a string its quotes would be escaped
	if at < 0 {
		return Event{}, false
	}
	e, ok = quickHead(string(payload[:at])) // one allocation for all its texts
	if !ok {
		return Event{}, false
	}
	rest := payload[at+len(body):]
	text, n := unquoteText(make([]byte, 0, len(rest)), rest)
	if n < 0 {
		return Event{}, false
	}
	tail := quick{rest: string(rest[n:])}
	e.Body, e.Traceparent = text, tail.text(`,"traceparent":`)
	return e, !tail.odd && tail.rest == "}" && e.ID != ""
}

// quickHead reads the members before the body.
func quickHead(head string) (e Event, ok bool) {
	q := quick{rest: head}
	e = Event{ID: q.text(`{"queenbridge":1,"id":`), Source: q.text(`,"source":`), Type: q.text(`,"type":`)}
	e.Received = q.time(`,"received":`)
	e.Class, e.Method = Class(q.text(`,"class":`)), q.text(`,"method":`)
	e.Path, e.Query = q.text(`,"path":`), q.text(`,"query":`)
	e.Headers = q.headers(`,"headers":`)
	e.ContentType = q.text(`,"content_type":`)
	return e, !q.odd && q.rest == ""
}

// quick reads JSON from the front of a text; once something is odd it reads
// nothing more.
type quick struct {
	rest string
	odd  bool
}

// skip takes what stands at the front, exactly.
func (q *quick) skip(exactly string) {
	rest, found := strings.CutPrefix(q.rest, exactly)
	q.rest, q.odd = rest, q.odd || !found
}

// text reads a string behind a member's name. It shares the memory of what is
// read, unless it has escapes.
func (q *quick) text(name string) string {
	if q.skip(name); q.odd || q.rest == "" || q.rest[0] != '"' {
		q.odd = true
		return ""
	}
	for i := 1; i < len(q.rest); i++ {
		switch c := q.rest[i]; {
		case c == '"':
			s := q.rest[1:i]
			q.rest, q.odd = q.rest[i+1:], !utf8.ValidString(s)
			return s
		case c == '\\':
			return q.escaped()
		case c < 0x20:
			q.odd = true
			return ""
		}
	}
	q.odd = true
	return ""
}

// escaped reads a string that has escapes.
func (q *quick) escaped() string {
	text, n := unquoteText(nil, []byte(q.rest[1:]))
	if n < 0 {
		q.odd = true
		return ""
	}
	q.rest = q.rest[1+n:]
	return string(text)
}

// time reads a time as receivedLayout has it.
func (q *quick) time(name string) time.Time {
	s := q.text(name)
	if q.odd || len(s) != len(receivedLayout) {
		q.odd = true
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s) // receivedLayout takes thrice as long
	q.odd = err != nil || s[len(s)-1] != 'Z' || s[len(s)-8] != '.'
	return t.UTC()
}

// headers reads pairs; a triple, whose value is in base64, is odd.
func (q *quick) headers(name string) []Header {
	if q.skip(name + "["); q.odd || strings.HasPrefix(q.rest, "]") {
		q.skip("]")
		return nil
	}
	headers := make([]Header, 0, 16)
	for !q.odd {
		headers = append(headers, Header{Name: q.text("["), Value: q.text(",")})
		if q.skip("]"); strings.HasPrefix(q.rest, "]") {
			break
		}
		q.skip(",")
	}
	q.skip("]")
	return headers
}

// unquoteText appends what a JSON string stands for, of which src begins behind
// the first quote; n is the length with the last quote. -1: it is no string, or
// has an escape of two parts (a surrogate pair).
func unquoteText(dst, src []byte) (text []byte, n int) {
	for start, i := 0, 0; i < len(src); {
		c := src[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, src[start:i]...)
		if c == '"' {
			if !utf8.Valid(dst) {
				return nil, -1
			}
			return dst, i + 1
		}
		r, size := unescape(src[i:])
		if size == 0 {
			return nil, -1
		}
		dst = utf8.AppendRune(dst, r)
		i += size
		start = i
	}
	return nil, -1
}

// unescape reads the escape that src begins with; size 0: it is none, or half of
// one.
func unescape(src []byte) (r rune, size int) {
	if len(src) < 2 || src[0] != '\\' {
		return 0, 0
	}
	switch src[1] {
	case '"', '\\', '/':
		return rune(src[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeHex(src)
	}
	return 0, 0
}

// unescapeHex reads \uXXXX, unless it is a surrogate.
func unescapeHex(src []byte) (r rune, size int) {
	if len(src) < 6 {
		return 0, 0
	}
	v, err := strconv.ParseUint(string(src[2:6]), 16, 32)
	if err != nil || v >= 0xd800 && v <= 0xdfff {
		return 0, 0
	}
	return rune(v), 6
}
