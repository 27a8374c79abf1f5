package bridge

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Decode reads a document into a configuration with every default filled in.
// It reports every problem of form: unknown and repeated fields, wrong types,
// unreadable durations and sizes; and warns about literal secrets. What a
// value means is checked by Config.Check, which also leaves out what only
// follows from a problem found here.
func Decode(doc Node) (Config, []Problem) {
	var c Config
	var d decoder
	d.structure("", doc, reflect.ValueOf(&c).Elem())
	return c, d.problems
}

// Defaults is the configuration of an empty document.
func Defaults() Config {
	c, _ := Decode(Node{})
	return c
}

// defaulter fills in a struct's defaults before its fields are read. n is the
// struct's node, for defaults that depend on another field.
type defaulter interface{ setDefaults(n Node) }

// decoder reads nodes into values by their json tags and collects problems.
type decoder struct{ problems []Problem }

func (d *decoder) fail(path, format string, args ...any) {
	d.problems = append(d.problems, Problem{Path: path, Text: fmt.Sprintf(format, args...), form: true})
}

// structure reads a map into a struct. An absent node leaves the defaults.
func (d *decoder) structure(path string, n Node, v reflect.Value) {
	n = d.usable(path, n)
	if n.Kind != NodeAbsent && n.Kind != NodeMap {
		d.fail(path, "must be a map of fields, got %s", describe(n))
		n = Node{}
	}
	if s, ok := v.Addr().Interface().(defaulter); ok {
		s.setDefaults(n)
	}
	var names []string
	for name, i := range fields(v.Type()) {
		d.value(atKey(path, name), n.Member(name), v.Field(i))
		names = append(names, name)
	}
	d.checkKeys(path, n, names)
}

// usable reports a node that could not be made and takes it for absent.
func (d *decoder) usable(path string, n Node) Node {
	if n.Err == "" {
		return n
	}
	d.fail(path, "%s", n.Err)
	return Node{}
}

// checkKeys reports unknown and repeated keys; names nil means any key.
func (d *decoder) checkKeys(path string, n Node, names []string) {
	first := map[string]Member{}
	for _, m := range n.Members {
		before, seen := first[m.Key]
		switch {
		case seen:
			p := Problem{Path: atKey(path, m.Key), Line: m.Line, form: true, Text: "is set twice"}
			if before.Line > 0 {
				p.Text += fmt.Sprintf(": first on line %d", before.Line)
			}
			d.problems = append(d.problems, p)
		case names != nil && !slices.Contains(names, m.Key):
			d.unknown(path, m.Key, names)
		}
		if !seen {
			first[m.Key] = m
		}
	}
}

func (d *decoder) unknown(path, key string, names []string) {
	p := Problem{Path: atKey(path, key), Text: "is unknown", form: true, unknown: true}
	if near := nearest(key, names); near != "" {
		p.Text += fmt.Sprintf(" (did you mean %q?)", near)
		p.meant = atKey(path, near)
	}
	d.problems = append(d.problems, p)
}

// fields yields the json name and the index of a struct's fields, in order.
func fields(t reflect.Type) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "-" && !yield(name, i) {
				return
			}
		}
	}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
	secretType   = reflect.TypeFor[Secret]()
)

// value reads any node; an absent one leaves v as it is, and so at its
// default.
func (d *decoder) value(path string, n Node, v reflect.Value) {
	if v.Kind() == reflect.Struct {
		d.structure(path, n, v)
		return
	}
	n = d.usable(path, n)
	if n.Kind == NodeAbsent {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.Interface:
		v.Set(reflect.ValueOf(d.anything(path, n)))
	default:
		d.scalar(path, n, v)
	}
}

func (d *decoder) list(path string, n Node, v reflect.Value) {
	if n.Kind != NodeList {
		d.fail(path, "must be a list, got %s", describe(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		if item.Kind == NodeAbsent && item.Err == "" {
			d.fail(atIndex(path, i), "must not be empty")
		}
		d.value(atIndex(path, i), item, v.Index(i))
	}
}

func (d *decoder) mapping(path string, n Node, v reflect.Value) {
	if n.Kind != NodeMap {
		d.fail(path, "must be a map, got %s", describe(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, m := range n.Members {
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(atKey(path, m.Key), m.Value, value)
		v.SetMapIndex(reflect.ValueOf(m.Key), value)
	}
	d.checkKeys(path, n, nil)
}

// anything reads a node whose shape is another's matter, as JSON would be.
func (d *decoder) anything(path string, n Node) any {
	switch n = d.usable(path, n); n.Kind {
	case NodeList:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = d.anything(atIndex(path, i), item)
		}
		return list
	case NodeMap:
		d.checkKeys(path, n, nil)
		m := make(map[string]any, len(n.Members))
		for _, member := range n.Members {
			m[member.Key] = d.anything(atKey(path, member.Key), member.Value)
		}
		return m
	}
	return n.plain()
}
