package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// receivedLayout is RFC 3339 with microseconds, in UTC.
const receivedLayout = "2006-01-02T15:04:05.000000Z"

// ErrVersion says that a payload is ours, in a version this program does not
// know. It may become readable by an upgrade.
var ErrVersion = errors.New("written by a newer version of the bridge")

// AppendPayload appends the event as the payload of its queue item: one JSON
// object with "queenbridge":1 first (design.md, "The event in the queue").
//
// Body and header values are kept byte for byte: as a JSON string where they
// are valid UTF-8 without NUL, else in base64, as is a body whose string would
// not fit into a request to Queen. In the other fields bytes that
// JSON or PostgreSQL cannot hold are replaced: percent-escaped in Path and
// Query, U+FFFD elsewhere. Received is cut to microseconds.
func (e Event) AppendPayload(dst []byte) []byte {
	dst = slices.Grow(dst, e.payloadSize())
	dst = append(dst, `{"queenbridge":1,"id":`...)
	dst = appendText(dst, e.ID)
	dst = append(dst, `,"source":`...)
	dst = appendText(dst, e.Source)
	dst = append(dst, `,"type":`...)
	dst = appendText(dst, e.Type)
	dst = append(dst, `,"received":"`...)
	dst = e.Received.UTC().AppendFormat(dst, receivedLayout)
	dst = append(dst, `","class":`...)
	dst = appendText(dst, string(e.Class))
	dst = append(dst, `,"method":`...)
	dst = appendText(dst, e.Method)
	dst = append(dst, `,"path":`...)
	dst = appendQuoted(dst, escapeURLText(e.Path))
	dst = append(dst, `,"query":`...)
	dst = appendQuoted(dst, escapeURLText(e.Query))
	dst = append(dst, `,"headers":`...)
	dst = appendHeaders(dst, e.Headers)
	dst = append(dst, `,"content_type":`...)
	dst = appendText(dst, e.ContentType)
	dst = appendBytes(dst, "body", e.Body)
	dst = append(dst, `,"traceparent":`...)
	dst = appendText(dst, e.Traceparent)
	return append(dst, '}')
}

// payloadSize guesses the length of the payload, so that most appends
// allocate once: a JSON body needs an escape for about every eighth byte.
func (e Event) payloadSize() int {
	n := 320 + len(e.ID) + len(e.Path) + len(e.Query) + len(e.Body) + len(e.Body)/5
	for _, h := range e.Headers {
		n += len(h.Name) + len(h.Value) + 8
	}
	return n
}

func appendHeaders(dst []byte, headers []Header) []byte {
	dst = append(dst, '[')
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = appendText(dst, h.Name)
		dst = append(dst, ',')
		if storable(h.Value) {
			dst = appendQuoted(dst, h.Value)
		} else {
			dst = appendBase64(dst, []byte(h.Value))
			dst = append(dst, `,"base64"`...)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// maxQuoted bounds a body as a JSON string: what is larger does not fit into a
// request to Queen, with the rest of the event around it.
const maxQuoted = int(maxQueenBody) - 1<<20

// appendBytes appends b as the member name where it can be a JSON string, else
// as the member name_base64. A string of quotes grows to twice its size, of
// control characters to six times: one that no request could hold is better
// written in base64, which adds a third.
func appendBytes(dst []byte, name string, b []byte) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	start := len(dst)
	if storable(b) {
		dst = appendQuoted(append(dst, `":`...), b)
		if len(dst)-start <= maxQuoted {
			return dst
		}
	}
	return appendBase64(append(dst[:start], `_base64":`...), b)
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// wireEvent is an event as it is read: members in any order, unknown ones
// ignored, names in exact case, no name twice.
type wireEvent struct {
	ID          string      `json:"id"`
	Source      string      `json:"source"`
	Type        string      `json:"type"`
	Received    time.Time   `json:"received"`
	Class       Class       `json:"class"`
	Method      string      `json:"method"`
	Path        string      `json:"path"`
	Query       string      `json:"query"`
	Headers     wireHeaders `json:"headers"`
	ContentType string      `json:"content_type"`
	Body        textBytes   `json:"body"`
	BodyBase64  []byte      `json:"body_base64"`
	Traceparent string      `json:"traceparent"`
}

// DecodeEvent reads the payload of a queue item. ours is false, and the event
// empty, where the payload is any other JSON than an event of ours: one is
// known by "queenbridge" being the number 1, wherever it stands (a transaction
// push sorts keys). An event of ours that cannot be read is an error, which is
// ErrVersion for a higher number. A retry envelope is no event.
func DecodeEvent(payload []byte) (e Event, ours bool, err error) {
	if e, ok := quickEvent(payload); ok {
		return e, true, nil
	}
	return decodeEvent(payload)
}

// decodeEvent is DecodeEvent for whatever is written.
func decodeEvent(payload []byte) (e Event, ours bool, err error) {
	return decodeOurs(payload, kindEvent, "event", wireEvent.event)
}

// decodeOurs reads a payload of one of our kinds, which read makes of its wire
// form W. ours is false where it is anything else.
func decodeOurs[W, T any](payload []byte, want kind, what string, read func(W) (T, error)) (v T, ours bool, err error) {
	var none T
	is, err := payloadKind(payload)
	if err != nil {
		return none, true, fmt.Errorf("decode %s: %w", what, err)
	}
	if is != want {
		return none, false, nil
	}
	var w W
	if err := json.Unmarshal(payload, &w); err != nil {
		return none, true, fmt.Errorf("decode %s: %w", what, hideValue(err))
	}
	if v, err = read(w); err != nil {
		return none, true, fmt.Errorf("decode %s: %w", what, err)
	}
	return v, true, nil
}

func (w wireEvent) event() (Event, error) {
	switch {
	case w.ID == "":
		return Event{}, errors.New("it has no id")
	case w.Body != nil && w.BodyBase64 != nil:
		return Event{}, errors.New("it has both body and body_base64")
	}
	body := []byte(w.Body)
	if w.BodyBase64 != nil {
		body = w.BodyBase64
	}
	return Event{
		ID: w.ID, Source: w.Source, Type: w.Type, Received: w.Received.UTC(),
		Class: w.Class, Method: w.Method, Path: w.Path, Query: w.Query,
		Headers: w.Headers, ContentType: w.ContentType, Body: body,
		Traceparent: w.Traceparent,
	}, nil
}

// kind is what a payload is, before it is read whole.
type kind int

const (
	kindForeign kind = iota
	kindEvent
	kindEnvelope
)

// payloadKind tells an event of ours, an envelope of ours and everything else
// apart. Text that is no JSON is foreign.
func payloadKind(payload []byte) (kind, error) {
	switch {
	case bytes.HasPrefix(payload, []byte(`{"queenbridge":1,"id":`)):
		return kindEvent, nil
	case bytes.HasPrefix(payload, []byte(`{"queenbridge":1,"retry":`)):
		return kindEnvelope, nil
	case !bytes.Contains(payload, []byte(`"queenbridge"`)):
		return kindForeign, nil
	}
	return probeKind(payload)
}

// probeKind reads the members that tell what a payload is.
func probeKind(payload []byte) (kind, error) {
	var probe struct {
		Version jsontext.Value `json:"queenbridge"`
		Retry   jsontext.Value `json:"retry"`
	}
	// A foreign object may hold what a payload of ours never does.
	err := json.Unmarshal(payload, &probe, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || probe.Version.Kind() != '0' {
		return kindForeign, nil //nolint:nilerr // no object, or not ours: delivered as it is
	}
	version, err := strconv.ParseFloat(string(probe.Version), 64)
	switch {
	case err != nil || version < 1 || version != float64(int64(version)):
		return kindForeign, nil //nolint:nilerr // no version of ours was ever written so
	case version > 1:
		return kindForeign, fmt.Errorf("version %s: %w", probe.Version, ErrVersion)
	case probe.Retry != nil:
		return kindEnvelope, nil
	}
	return kindEvent, nil
}

// textBytes is a JSON string read into bytes, without a copy in between.
type textBytes []byte

// UnmarshalJSONFrom reads a string; null leaves b as it is.
func (b *textBytes) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch value.Kind() {
	case 'n':
		return nil
	case '"':
		*b, err = jsontext.AppendUnquote(make([]byte, 0, len(value)-2), value)
		return err
	}
	return errors.New("must be a string")
}

// wireHeaders are pairs ["name","value"], or triples ["name","…","base64"].
type wireHeaders []Header

// UnmarshalJSONFrom reads an array of pairs and triples.
func (h *wireHeaders) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var lines [][]string
	if err := json.UnmarshalDecode(dec, &lines); err != nil {
		return err
	}
	if len(lines) == 0 {
		return nil
	}
	*h = make(wireHeaders, 0, len(lines))
	for _, line := range lines {
		header, err := decodeHeader(line)
		if err != nil {
			return err
		}
		*h = append(*h, header)
	}
	return nil
}

func decodeHeader(line []string) (Header, error) {
	switch {
	case len(line) == 2:
		return Header{Name: line[0], Value: line[1]}, nil
	case len(line) == 3 && line[2] == "base64":
		value, err := base64.StdEncoding.DecodeString(line[1])
		if err != nil {
			return Header{}, errors.New("a header value is no base64")
		}
		return Header{Name: line[0], Value: string(value)}, nil
	}
	return Header{}, errors.New("a header is neither a pair nor a base64 triple")
}

// hideValue keeps where a decoding error is and drops the value it may quote:
// bodies are never logged.
func hideValue(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return fmt.Errorf("at %q: no %v", semantic.JSONPointer, semantic.GoType)
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fmt.Errorf("at byte %d: no JSON an event may be", syntactic.ByteOffset)
	}
	return errors.New("no JSON an event may be")
}
