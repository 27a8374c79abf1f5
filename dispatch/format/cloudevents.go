package format

import (
	"encoding/base64"
	"mime"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/queenbridge/queenbridge/bridge"
)

// defaultType is the type of an event that has none: CloudEvents demand one.
const defaultType = "queen.message"

// attribute is one of a CloudEvent (CloudEvents 1.0.2 §3), and the documented
// extensions partitionkey and distributed tracing.
type attribute struct{ name, value string }

// attributes are those of an event, but datacontenttype. Those without a value
// are left out: an empty attribute is not valid.
func attributes(it *Item) []attribute {
	e, o := it.Event, it.Delivery.Origin
	list := make([]attribute, 0, 7)
	add := func(name, value string) {
		if value = cleanAttribute(value); value != "" {
			list = append(list, attribute{name, value})
		}
	}
	add("specversion", "1.0")
	add("id", it.id())
	add("source", "queen:///"+url.PathEscape(o.Queue))
	if e.Type != "" {
		add("type", e.Type)
	} else {
		add("type", defaultType)
	}
	if !e.Received.IsZero() {
		add("time", e.Received.UTC().Format(time.RFC3339Nano))
	}
	add("partitionkey", o.Partition)
	add("traceparent", e.Traceparent)
	return list
}

// cleanAttribute replaces what a CloudEvents string must not contain
// (CloudEvents 1.0.2 §3.1): control characters and noncharacters.
func cleanAttribute(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
			return utf8.RuneError
		}
		return r
	}, s)
}

// dataType is the event's content type where CloudEvents may carry it: a media
// type of RFC 2046.
func dataType(e *bridge.Event) string {
	if _, _, err := mime.ParseMediaType(e.ContentType); err != nil {
		return ""
	}
	return cleanAttribute(e.ContentType)
}

// saysJSON says that a media type is JSON (CloudEvents JSON format §3.1.1), as
// an absent one is.
func saysJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	_, sub, _ := strings.Cut(strings.ToLower(strings.TrimSpace(media)), "/")
	return contentType == "" || sub == "json" || strings.HasSuffix(sub, "+json")
}

// structuredCloudEvent appends an event in the JSON format of CloudEvents. The
// attributes stand before the data, so a reader may work on the fly.
func structuredCloudEvent(dst []byte, it *Item) []byte {
	dst = append(dst, '{')
	for i, a := range attributes(it) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMember(dst, a.name)
		dst = appendString(dst, a.value)
	}
	contentType := dataType(it.Event)
	if contentType != "" {
		dst = appendMember(append(dst, ','), "datacontenttype")
		dst = appendString(dst, contentType)
	}
	return append(appendData(dst, it, saysJSON(contentType)), '}')
}

// appendData appends the body: the JSON itself where the type says JSON, a
// string where it says otherwise, and base64 where neither is true to its
// bytes.
func appendData(dst []byte, it *Item, json bool) []byte {
	body, shape := it.Event.Body, it.shapeOf()
	switch {
	case len(body) == 0:
		return dst
	case json && shape == isJSON:
		return append(appendMember(append(dst, ','), "data"), body...)
	case !json && shape != isBinary:
		return appendString(appendMember(append(dst, ','), "data"), body)
	}
	dst = append(appendMember(append(dst, ','), "data_base64"), '"')
	dst = base64.StdEncoding.AppendEncode(dst, body)
	return append(dst, '"')
}

func appendMember(dst []byte, name string) []byte {
	dst = append(append(dst, '"'), name...)
	return append(dst, '"', ':')
}

func cloudEventSize(it *Item) int {
	n := 2
	for _, a := range attributes(it) {
		n += len(a.name) + 4 + textSize(a.value)
	}
	contentType, body := dataType(it.Event), it.Event.Body
	n += len(`"datacontenttype":,`) + textSize(contentType) + len(`"data_base64":,`)
	switch json := saysJSON(contentType); {
	case json && it.shapeOf() == isJSON:
		return n + len(body)
	case !json && it.shapeOf() != isBinary:
		return n + quotedSize(body)
	}
	return n + base64.StdEncoding.EncodedLen(len(body)) + 2
}

// binaryCloudEvent is an event in the binary mode of CloudEvents over HTTP: its
// attributes beside its own headers, the body as it is. What the provider sent
// as ce- headers gives way: half of each would be a third event.
func binaryCloudEvent(it Item) Message {
	m := Message{Body: it.Event.Body, ContentType: dataType(it.Event)}
	for _, h := range it.Event.Headers {
		if !strings.HasPrefix(strings.ToLower(h.Name), "ce-") {
			m.Headers = append(m.Headers, h)
		}
	}
	for _, a := range attributes(&it) {
		m.Headers = append(m.Headers, bridge.Header{Name: "ce-" + a.name, Value: headerValue(a.value)})
	}
	return m
}

// headerValue percent-encodes an attribute for a header (CloudEvents HTTP
// binding §3.1.3.2).
func headerValue(s string) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c == '"' || c == '%' || c > '~' {
			out = append(out, '%', hex[c>>4], hex[c&15])
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}
