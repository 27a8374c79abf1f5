package bridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// hidden stands for every credential.
const hidden = "***"

// Effective is the configuration as a document, every field with the value in
// effect, in the order of config.md: durations as 30s, sizes as 4MiB,
// credentials as ***. Fields whose 0 stands for another value show that value.
// Decode reads it back to the same configuration, but for the credentials.
func (c Config) Effective() Node {
	c.Sources, c.Queues = slices.Clone(c.Sources), slices.Clone(c.Queues)
	for i := range c.Sources {
		if preset, ok := signing.Lookup(c.Sources[i].Scheme); ok && c.Sources[i].MaxBody == 0 {
			c.Sources[i].MaxBody = Size(preset.MaxBody)
		}
	}
	for i := range c.Queues {
		c.Queues[i] = c.resolved(c.Queues[i])
	}
	return document(reflect.ValueOf(c))
}

// document writes a value as a node.
func document(v reflect.Value) Node {
	switch value := v.Interface().(type) {
	case time.Duration:
		return textNode(FormatDuration(value))
	case Size:
		return textNode(value.String())
	case Secret:
		return textNode(value.String())
	case map[string]string:
		return mapNode(value, func(name, text string) Node { return textNode(hideText(name, text)) })
	}
	switch v.Kind() {
	case reflect.Struct:
		return structNode(v)
	case reflect.Pointer:
		return document(v.Elem())
	case reflect.Slice:
		list := Node{Kind: NodeList}
		for i := range v.Len() {
			list.Items = append(list.Items, document(v.Index(i)))
		}
		return list
	case reflect.Map, reflect.Interface:
		return looseNode("", v.Interface())
	}
	return plainNode(v.Interface())
}

// structNode writes the fields in order; a nil pointer is left out, as the two
// kinds of a target exclude each other.
func structNode(v reflect.Value) Node {
	n := Node{Kind: NodeMap}
	for name, i := range fields(v.Type()) {
		field := v.Field(i)
		if field.Kind() == reflect.Pointer && field.IsNil() {
			continue
		}
		n.Members = append(n.Members, Member{Key: name, Value: document(field)})
	}
	return n
}

// looseNode writes what a document holds without a type: scheme options,
// patterns. Values whose key names a credential are hidden.
func looseNode(key string, value any) Node {
	switch v := value.(type) {
	case map[string]any:
		return mapNode(v, looseNode)
	case []any:
		list := Node{Kind: NodeList}
		for _, item := range v {
			list.Items = append(list.Items, looseNode(key, item))
		}
		return list
	case string:
		return textNode(hideText(key, v))
	}
	return plainNode(value)
}

func mapNode[V any](m map[string]V, write func(key string, value V) Node) Node {
	n := Node{Kind: NodeMap}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		n.Members = append(n.Members, Member{Key: key, Value: write(key, m[key])})
	}
	return n
}

func textNode(text string) Node { return Node{Kind: NodeString, Text: text} }

// plainNode writes a basic value.
func plainNode(value any) Node {
	switch v := value.(type) {
	case nil:
		return Node{}
	case bool:
		return Node{Kind: NodeBool, Text: strconv.FormatBool(v)}
	case float64:
		return Node{Kind: NodeNumber, Text: strconv.FormatFloat(v, 'g', -1, 64)}
	case int, int64, json.Number:
		return Node{Kind: NodeNumber, Text: fmt.Sprint(v)}
	}
	return textNode(fmt.Sprint(value))
}

// hideText hides the text of a header or option whose name says that it is a
// credential.
func hideText(name, text string) string {
	name = strings.ToLower(name)
	for _, word := range []string{"authorization", "token", "secret", "password", "api-key", "apikey", "api_key", "cookie"} {
		if strings.Contains(name, word) && text != "" {
			return hidden
		}
	}
	return text
}
