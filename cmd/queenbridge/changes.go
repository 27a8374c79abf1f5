package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// resourceDiff are the names of resources of one kind that differ between two
// configurations.
type resourceDiff struct{ added, changed, removed []string }

func (c resourceDiff) none() bool { return len(c.added)+len(c.changed)+len(c.removed) == 0 }

// changes is what a running bridge follows without a restart.
type changes struct{ sources, targets, routes, queues resourceDiff }

func (c changes) none() bool {
	return c.sources.none() && c.targets.none() && c.routes.none() && c.queues.none()
}

func changesOf(before, after bridge.Config) changes {
	return changes{
		sources: changedNames(before.Sources, after.Sources, func(s bridge.Source) string { return s.Name }),
		targets: changedNames(before.Targets, after.Targets, func(t bridge.Target) string { return t.Name }),
		routes:  changedNames(before.Routes, after.Routes, func(r bridge.Route) string { return r.Name }),
		queues:  changedNames(before.Queues, after.Queues, func(q bridge.Queue) string { return q.Name }),
	}
}

func changedNames[T any](before, after []T, name func(T) string) resourceDiff {
	known := make(map[string]T, len(before))
	for _, v := range before {
		known[name(v)] = v
	}
	var c resourceDiff
	for _, v := range after {
		old, ok := known[name(v)]
		delete(known, name(v))
		switch {
		case !ok:
			c.added = append(c.added, name(v))
		case !reflect.DeepEqual(old, v):
			c.changed = append(c.changed, name(v))
		}
	}
	c.removed = slices.Sorted(maps.Keys(known))
	return c
}

// restartChanges names what differs and is only read at the start, by its
// path. Values are not shown: some are secrets.
func restartChanges(before, after bridge.Config) []string {
	before.Sources, before.Targets, before.Routes, before.Queues = nil, nil, nil, nil
	after.Sources, after.Targets, after.Routes, after.Queues = nil, nil, nil, nil
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
