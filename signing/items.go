package signing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// The paths of what Items found out about an item.
const (
	itemID   = "@id"
	itemKind = "@type"
)

// maxItems bounds what is looked at of a batch. The largest ones providers send
// hold about a thousand; an item of two bytes would cost thirty to remember.
const maxItems = 10_000

// itemsFunc finds the events of a request where no path says it.
type itemsFunc func(v *Values) ([]Item, bool)

// Items are the events of a proven request by the preset's own split; values
// must come from [Verifier.Values]. False means that the request is one event.
// No items and true is an empty batch: accepted, with nothing to queue.
func (v *Verifier) Items(values *Values) ([]Item, bool) {
	switch {
	case v.row.items != nil:
		return v.row.items(values)
	case v.row.Split != "":
		return values.Items(v.row.Split)
	}
	return nil, false
}

// formItems splits the JSON array in a form field (Mandrill).
func formItems(field string) itemsFunc {
	return func(v *Values) ([]Item, bool) {
		text, ok := v.Form(field)
		if !ok {
			return nil, false
		}
		doc, ok := parseDocument([]byte(text))
		if !ok {
			return nil, false
		}
		return arrayItems(doc.raw)
	}
}

// arrayItems are the elements of an array.
func arrayItems(raw []byte) ([]Item, bool) {
	if raw[0] != '[' {
		return nil, false
	}
	items := []Item{}
	walk(raw, func(m member) bool {
		items = append(items, Item{raw: m.value})
		return len(items) < maxItems
	})
	return items, true
}

// mediaType is the Content-Type without parameters, in lower case.
func (v *Values) mediaType() string {
	value, _ := headerValue(v.request.Header, "Content-Type")
	media, _, _ := strings.Cut(value, ";")
	return strings.ToLower(trimOWS(media))
}

// cloudEventItems splits the array of the batch mode; in every other mode the
// request is one event.
func cloudEventItems(v *Values) ([]Item, bool) {
	if v.mediaType() != "application/cloudevents-batch+json" {
		return nil, false
	}
	return v.Items(wholeDocument)
}

// lineItems splits an array, or lines of JSON where the request says that it
// holds such (Auth0). One line that is no JSON makes the request one event,
// so that nothing of it is lost.
func lineItems(v *Values) ([]Item, bool) {
	if v.mediaType() != "application/x-ndjson" {
		return v.Items(wholeDocument)
	}
	items := []Item{}
	for line := range bytes.Lines(v.request.Body) {
		if len(bytes.TrimSpace(line)) == 0 || len(items) == maxItems {
			continue
		}
		doc, ok := parseDocument(line)
		if !ok {
			return nil, false
		}
		items = append(items, Item{raw: doc.raw})
	}
	return items, true
}

// metaItems are one event per entry[].changes[] and entry[].messaging[]. Meta
// gives no delivery an id, so one is made of what stays the same when it
// resends (its retries hold the same messages and statuses).
func metaItems(v *Values) ([]Item, bool) {
	entries, ok := v.at("entry")
	if !ok || entries[0] != '[' {
		return nil, false
	}
	items, lists := []Item{}, 0
	walk(entries, func(m member) bool {
		entry := document{raw: m.value}
		found := lists
		if list, ok := entry.at("changes"); ok && list[0] == '[' {
			lists++
			walk(list, func(m member) bool {
				items = append(items, metaChange(&entry, m.value))
				return len(items) < maxItems
			})
		}
		if list, ok := entry.at("messaging"); ok && list[0] == '[' {
			lists++
			walk(list, func(m member) bool {
				items = append(items, metaMessaging(&entry, m.value))
				return len(items) < maxItems
			})
		}
		if lists == found { // of a kind that has neither: nothing is lost
			items = append(items, Item{raw: m.value})
		}
		return len(items) < maxItems
	})
	return items, lists > 0 || len(items) == 0
}

// metaChange names a change: by its messages, by its statuses, or by itself.
func metaChange(entry *document, raw []byte) Item {
	change := document{raw: raw}
	made := madeValues{kind: textOf(&change, "field")}
	if ids, ok := metaIDs(&change, "value.messages"); ok {
		made.id = compositeID(append([]string{"messages"}, ids...)...)
	} else if ids, ok := metaIDs(&change, "value.statuses", "status"); ok {
		made.id = compositeID(append([]string{"statuses"}, ids...)...)
	} else {
		made.id = compositeID(textOf(entry, "id"), made.kind, textOf(entry, "time"), hexDigest(raw))
	}
	return Item{raw: raw, made: &made}
}

func metaMessaging(entry *document, raw []byte) Item {
	messaging := document{raw: raw}
	made := madeValues{kind: "messaging"}
	if mid := textOf(&messaging, "message.mid"); mid != "" {
		made.id = compositeID("message", mid)
	} else {
		made.id = compositeID(textOf(entry, "id"), made.kind, hexDigest(raw))
	}
	return Item{raw: raw, made: &made}
}

// metaIDs are the ids of a list's elements, each followed by more of its
// values. A list that is empty or has an element without id gives none: two
// different events would share one id.
func metaIDs(change *document, path string, more ...string) ([]string, bool) {
	list, ok := change.at(path)
	if !ok || list[0] != '[' {
		return nil, false
	}
	var ids []string
	complete := true
	walk(list, func(m member) bool {
		element := document{raw: m.value}
		id := textOf(&element, "id")
		complete = id != ""
		ids = append(ids, id)
		for _, path := range more {
			ids = append(ids, textOf(&element, path))
		}
		return complete
	})
	return ids, complete && len(ids) > 0
}

// textOf is a scalar of a document, "" where it is absent.
func textOf(d *document, path string) string {
	raw, ok := d.at(path)
	if !ok {
		return ""
	}
	text, _ := scalar(raw)
	return text
}

// compositeID writes each part with its length in front, as the value
// expression c(…) does, so that no two lists of parts give the same text.
func compositeID(parts ...string) string {
	var out []byte
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(len(p)), 10)
		out = append(append(out, ':'), p...)
	}
	return string(out)
}

func hexDigest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
