package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// changedSources are the names of sources that differ between two
// configurations.
type changedSources struct{ added, changed, removed []string }

func (c changedSources) none() bool { return len(c.added)+len(c.changed)+len(c.removed) == 0 }

func sourceChanges(before, after []bridge.Source) changedSources {
	known := make(map[string]bridge.Source, len(before))
	for _, s := range before {
		known[s.Name] = s
	}
	var c changedSources
	for _, s := range after {
		old, ok := known[s.Name]
		delete(known, s.Name)
		switch {
		case !ok:
			c.added = append(c.added, s.Name)
		case !reflect.DeepEqual(old, s):
			c.changed = append(c.changed, s.Name)
		}
	}
	for name := range known {
		c.removed = append(c.removed, name)
	}
	slices.Sort(c.removed)
	return c
}

// restartChanges names what differs and is only read at the start: settings by
// their path, targets, routes and queues by their name. Values are not shown:
// some are secrets.
func restartChanges(before, after bridge.Config) []string {
	before.Sources, after.Sources = nil, nil
	return differences("", reflect.ValueOf(before), reflect.ValueOf(after))
}

func differences(path string, a, b reflect.Value) []string {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
		return nil
	case a.Kind() == reflect.Slice && isNamed(a.Type().Elem()):
		return namedDifferences(path, a, b)
	case a.Kind() == reflect.Struct:
		return fieldDifferences(path, a, b)
	}
	return []string{path}
}

func fieldDifferences(path string, a, b reflect.Value) []string {
	var all []string
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			name = "token of the environment"
		}
		if path != "" {
			name = path + "." + name
		}
		all = append(all, differences(name, a.Field(i), b.Field(i))...)
	}
	return all
}

func isNamed(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("Name")
	return ok && f.Type.Kind() == reflect.String
}

// namedDifferences compares lists of resources by their names.
func namedDifferences(path string, a, b reflect.Value) []string {
	before, after := byName(a), byName(b)
	var names []string
	for name, value := range after {
		if old, ok := before[name]; !ok || !reflect.DeepEqual(old, value) {
			names = append(names, fmt.Sprintf("%s[%s]", path, name))
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, fmt.Sprintf("%s[%s]", path, name))
		}
	}
	if len(names) == 0 { // only their order
		names = []string{path}
	}
	slices.Sort(names)
	return names
}

func byName(list reflect.Value) map[string]any {
	out := make(map[string]any, list.Len())
	for i := range list.Len() {
		out[list.Index(i).FieldByName("Name").String()] = list.Index(i).Interface()
	}
	return out
}
