package signing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// reader reads one map of scheme_options: it checks types, remembers which
// keys the scheme knows and reports the others.
type reader struct {
	*checklist
	path   string
	values map[string]any
	known  []string
}

func newReader(c *checklist, path string, values map[string]any) *reader {
	return &reader{checklist: c, path: path, values: values}
}

func (r *reader) at(key string) string { return r.path + "." + key }

// take returns the value of a key; nil counts as left out.
func (r *reader) take(key string) (any, bool) {
	r.known = append(r.known, key)
	v, ok := r.values[key]
	return v, ok && v != nil
}

// has reports whether the user set the key.
func (r *reader) has(key string) bool { return r.values[key] != nil }

// text reads a string that is not empty when it is there.
func (r *reader) text(key string) string {
	v, ok := r.take(key)
	if !ok {
		return ""
	}
	s, isText := v.(string)
	switch {
	case !isText:
		r.add(r.at(key), "must be text, got %s: put it in quotes", typeName(v))
	case s == "":
		r.add(r.at(key), "is empty: set it, or leave the key out")
	}
	return s
}

// oneOf reads a word of a fixed set; the first is the default.
func (r *reader) oneOf(key string, words []string) string {
	s := r.text(key)
	if s == "" {
		return words[0]
	}
	if !slices.Contains(words, s) {
		r.add(r.at(key), "must be one of %s, got %q%s", strings.Join(words, ", "), s, suggest(s, words))
		return words[0]
	}
	return s
}

// list reads a list of strings that are not empty.
func (r *reader) list(key string) []string {
	v, ok := r.take(key)
	if !ok {
		return nil
	}
	items, isList := v.([]any)
	if texts, ok := v.([]string); ok && len(texts) > 0 {
		return texts
	}
	if !isList || len(items) == 0 {
		r.add(r.at(key), "must be a list of at least one text, got %s", typeName(v))
		return nil
	}
	all := make([]string, 0, len(items))
	for i, item := range items {
		s, ok := item.(string)
		if !ok || s == "" {
			r.add(fmt.Sprintf("%s[%d]", r.at(key), i), "must be text that is not empty, got %s", typeName(item))
			continue
		}
		all = append(all, s)
	}
	return all
}

// boolean reads true or false.
func (r *reader) boolean(key string, standard bool) bool {
	v, ok := r.take(key)
	if !ok {
		return standard
	}
	switch b := v.(type) {
	case bool:
		return b
	case string: // from a command line
		if b == "true" || b == "false" {
			return b == "true"
		}
	}
	r.add(r.at(key), "must be true or false, got %s", quoted(v))
	return standard
}

// oneOrMore reads a text or a list of texts.
func (r *reader) oneOrMore(key string) []string {
	if _, isText := r.values[key].(string); isText {
		if s := r.text(key); s != "" {
			return []string{s}
		}
		return nil
	}
	return r.list(key)
}

// texts reads a map of texts that are not empty.
func (r *reader) texts(key string) map[string]string {
	v, ok := r.take(key)
	m, isMap := v.(map[string]any)
	if ok && !isMap {
		r.add(r.at(key), "must be a map, got %s", typeName(v))
	}
	all := make(map[string]string, len(m))
	for name, value := range m {
		s, isText := value.(string)
		if !isText || s == "" {
			r.add(r.at(key)+"."+name, "must be text that is not empty, got %s", typeName(value))
			continue
		}
		all[name] = s
	}
	return all
}

// duration reads a Go duration of zero or more.
func (r *reader) duration(key string, standard time.Duration) time.Duration {
	v, ok := r.take(key)
	if !ok {
		return standard
	}
	s, isText := v.(string)
	d, err := time.ParseDuration(s)
	switch {
	case !isText, err != nil:
		r.add(r.at(key), "must be a duration such as 300s or 5m, got %s", quoted(v))
	case d < 0:
		r.add(r.at(key), "must not be negative, got %s: 0s turns the window off", s)
	default:
		return d
	}
	return standard
}

// section reads a nested map; finish must be called on it.
func (r *reader) section(key string) *reader {
	v, ok := r.take(key)
	m, isMap := v.(map[string]any)
	if ok && !isMap {
		r.add(r.at(key), "must be a map, got %s", typeName(v))
	}
	return newReader(r.checklist, r.at(key), m)
}

// finish reports the keys the scheme does not know.
func (r *reader) finish() {
	for _, key := range slices.Sorted(maps.Keys(r.values)) {
		if slices.Contains(r.known, key) {
			continue
		}
		if len(r.known) == 0 {
			r.add(r.at(key), "is unknown: this scheme takes no options")
			continue
		}
		r.add(r.at(key), "is unknown%s: this scheme takes %s", suggest(key, r.known), strings.Join(r.known, ", "))
	}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int, int64, uint64, float64:
		return "a number"
	case []any, []string:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("%T", v)
}

// quoted shows a scalar option in a message. Options hold no secrets.
func quoted(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return typeName(v)
}
