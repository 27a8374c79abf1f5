package bridge

import (
	"reflect"
	"slices"
)

// Kind is one of the four kinds of resources, named as in a configuration file
// and in the paths of the admin API.
type Kind string

// The kinds.
const (
	KindSource Kind = "sources"
	KindTarget Kind = "targets"
	KindRoute  Kind = "routes"
	KindQueue  Kind = "queues"
)

// Kinds are all kinds, in the order of a configuration file.
func Kinds() []Kind { return []Kind{KindSource, KindTarget, KindRoute, KindQueue} }

// Singular is the kind's word for one resource.
func (k Kind) Singular() string {
	switch k {
	case KindSource:
		return "source"
	case KindTarget:
		return "target"
	case KindRoute:
		return "route"
	case KindQueue:
		return "queue"
	}
	return string(k)
}

// Valid says that k is one of Kinds.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// ValidName says that a resource of the kind may have that name (config.md).
func (k Kind) ValidName(name string) bool {
	if k != KindQueue {
		return namePattern.MatchString(name)
	}
	var problems []Problem
	checklist{problems: &problems}.foreignQueue("name", name)
	return len(problems) == 0
}

// Type is the Go type of the kind's resources: Source, Target, Route, Queue.
// Nil where k is not valid.
func (k Kind) Type() reflect.Type {
	switch k {
	case KindSource:
		return reflect.TypeFor[Source]()
	case KindTarget:
		return reflect.TypeFor[Target]()
	case KindRoute:
		return reflect.TypeFor[Route]()
	case KindQueue:
		return reflect.TypeFor[Queue]()
	}
	return nil
}

// Resource names one resource.
type Resource struct {
	Kind Kind
	Name string
}

// String is routes/pushes-to-ci.
func (r Resource) String() string { return string(r.Kind) + "/" + r.Name }

// list is the configuration's list of a kind's resources.
func (c *Config) list(k Kind) reflect.Value {
	v := reflect.ValueOf(c).Elem()
	for name, i := range fields(v.Type()) {
		if name == string(k) {
			return v.Field(i)
		}
	}
	panic("no kind " + string(k)) // callers check Valid
}

// Add decodes a document as the last resource of its kind, with its defaults,
// and returns its place and every problem of form, as Decode does. The kind
// must be valid. Check, on the whole, says the rest.
func (c *Config) Add(k Kind, doc Node) (path string, problems []Problem) {
	list := c.list(k)
	path = atIndex(string(k), list.Len())
	var d decoder
	value := reflect.New(k.Type()).Elem()
	d.structure(path, doc, value)
	list.Set(reflect.Append(list, value))
	return path, d.problems
}

// Within says that a problem's path is parent or below it, and returns the rest
// of the path.
func Within(path, parent string) (rest string, ok bool) {
	if !within(path, parent) {
		return "", false
	}
	rest = path[len(parent):]
	if len(rest) > 0 && rest[0] == '.' {
		rest = rest[1:]
	}
	return rest, true
}
