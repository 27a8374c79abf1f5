package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// File is what the configuration file says.
type File struct {
	// Config is valid, with its defaults.
	Config bridge.Config
	// Document is the file's document, as written. It is only shown.
	Document bridge.Node
}

// without is the file that does not have a resource.
func (f File) without(r bridge.Resource) File {
	list := f.Document.Member(string(r.Kind))
	at := slices.IndexFunc(list.Items, func(n bridge.Node) bool { return n.Member("name").Text == r.Name })
	if at < 0 {
		return f
	}
	list.Items = slices.Delete(slices.Clone(list.Items), at, at+1)
	doc := bridge.Node{Kind: bridge.NodeMap}
	for _, m := range f.Document.Members {
		if m.Key == string(r.Kind) {
			m.Value = list
		}
		doc.Members = append(doc.Members, m)
	}
	f.Document = doc
	f.Config.Sources = except(r, bridge.KindSource, f.Config.Sources, func(s bridge.Source) string { return s.Name })
	f.Config.Targets = except(r, bridge.KindTarget, f.Config.Targets, func(t bridge.Target) string { return t.Name })
	f.Config.Routes = except(r, bridge.KindRoute, f.Config.Routes, func(r bridge.Route) string { return r.Name })
	f.Config.Queues = except(r, bridge.KindQueue, f.Config.Queues, func(q bridge.Queue) string { return q.Name })
	return f
}

func except[T any](r bridge.Resource, kind bridge.Kind, list []T, name func(T) string) []T {
	if r.Kind != kind {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return name(v) == r.Name })
}

// Entry is one resource, in use or not. It is read-only.
type Entry struct {
	Resource bridge.Resource
	// File says that the configuration file owns the resource.
	File bool
	// Document is as it was written, without any secret: a sealed one stands
	// as ${sealed:ID}, a literal one of the file as ***.
	Document bridge.Node
	// Version is Queen's of the stored row, 0 for a resource of the file.
	// Compare for equality only.
	Version int64
	// Created, Updated and By are those of the stored row.
	Created, Updated time.Time
	By               string
	// Draining is when the route or target was deleted, zero while it was not.
	Draining time.Time
	// InUse is false where the resource is stored and cannot be used: Problems
	// then has at least one that is no warning. Their paths are relative to the
	// resource.
	InUse    bool
	Problems []bridge.Problem
	// Newer says that a newer version of the bridge stored the resource: it is
	// not changed here.
	Newer bool
}

// Catalog is one state of all resources. It never changes; a later state is
// another Catalog.
type Catalog struct {
	// Config is the configuration in effect: the file's, with the stored
	// resources that can be used behind the file's own.
	Config bridge.Config
	// Generation is the version of the shared row of all changes.
	Generation int64
	// Synced is when the stored resources were first read; zero: not yet, and
	// Config is the file's.
	Synced time.Time

	entries map[bridge.Resource]Entry
	// unreadable are rows that say not even whose they are, by key.
	unreadable map[string]string
}

// Entry is the resource of that kind and name.
func (c *Catalog) Entry(r bridge.Resource) (Entry, bool) {
	e, ok := c.entries[r]
	return e, ok
}

// Entries are the resources of a kind, in the order of their names.
func (c *Catalog) Entries(k bridge.Kind) []Entry {
	var all []Entry
	for _, e := range c.entries {
		if e.Resource.Kind == k {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Resource.Name, b.Resource.Name) })
	return all
}

// Problems says what is stored and not in use, one line each, in order.
func (c *Catalog) Problems() []string {
	var lines []string
	for _, e := range c.entries {
		for _, p := range e.Problems {
			if !p.Warning && !e.InUse {
				lines = append(lines, at(e.Resource, p.Path)+": "+p.Text)
			}
		}
	}
	for key, reason := range c.unreadable {
		lines = append(lines, "stored row "+key+": "+reason)
	}
	slices.Sort(lines)
	return lines
}

// Invalid are the resources that are stored and not in use, in order.
func (c *Catalog) Invalid() []bridge.Resource {
	return c.sorted(func(e Entry) bool { return !e.InUse })
}

// Draining are the routes and targets that were deleted and are not gone yet, in
// order.
func (c *Catalog) Draining() []bridge.Resource {
	return c.sorted(func(e Entry) bool { return !e.Draining.IsZero() })
}

// DrainingRoutes are the routes of Draining.
func (c *Catalog) DrainingRoutes() []bridge.Resource {
	return slices.DeleteFunc(c.Draining(), func(r bridge.Resource) bool { return r.Kind != bridge.KindRoute })
}

func (c *Catalog) sorted(want func(Entry) bool) []bridge.Resource {
	var all []bridge.Resource
	for _, r := range slices.SortedFunc(maps.Keys(c.entries), func(a, b bridge.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		if want(c.entries[r]) {
			all = append(all, r)
		}
	}
	return all
}

// Users are the resources that need this one: the routes of a target, the
// sources and routes of a queue. Stored ones that are not in use count, too.
func (c *Catalog) Users(r bridge.Resource) []bridge.Resource {
	return c.sorted(func(e Entry) bool { return needs(e, r) })
}

// needs says that a resource names another one. It asks the document: a
// resource that is not in use may have no other form.
func needs(e Entry, r bridge.Resource) bool {
	field := func(name, fallback string) string {
		if n := e.Document.Member(name); n.Kind != bridge.NodeAbsent {
			return n.Text
		}
		return fallback
	}
	switch {
	case r.Kind == bridge.KindTarget:
		return e.Resource.Kind == bridge.KindRoute && field("target", "") == r.Name
	case r.Kind == bridge.KindQueue && e.Resource.Kind == bridge.KindSource:
		return field("queue", e.Resource.Name) == r.Name
	case r.Kind == bridge.KindQueue && e.Resource.Kind == bridge.KindRoute:
		return field("queue", "") == r.Name
	}
	return false
}

// at is a place in a resource, for people: routes/pushes-to-ci.target.
func at(r bridge.Resource, path string) string {
	switch {
	case path == "":
		return r.String()
	case path[0] == '[':
		return r.String() + path
	}
	return r.String() + "." + path
}
