package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/queenbridge/queenbridge/bridge"
)

// formProblems are those of a document that is not stored for another reason.
func (s *Store) formProblems(r bridge.Resource, doc bridge.Node) []bridge.Problem {
	c := &candidate{entry: Entry{Resource: r, InUse: true}, resolved: doc.Clone()}
	s.resolve(r, &c.resolved, nil)
	_, found := s.compose(s.file, []*candidate{c})
	return slices.DeleteFunc(found[c], func(p bridge.Problem) bool { return p.Warning || missing(p) })
}

// missing says that a problem is about another resource, which formProblems
// does not know.
func missing(p bridge.Problem) bool { return p.Path == "target" }

// try finds out what the catalog becomes with a row. It fails where the
// resource could not be used, or another one no longer.
func (s *Store) try(next row, version int64) (Entry, error) {
	rows := maps.Clone(s.rows)
	key := bridge.RuleKey(next.resource())
	rows[key] = stored{key: key, version: version, row: next}
	c := s.build(s.file.without(next.resource()), rows)
	if e, _ := s.catalog.Load().Entry(next.resource()); !e.File {
		s.tried = tried{c, next.Write}
	}
	entry, _ := c.Entry(next.resource())
	var problems []bridge.Problem
	if !entry.InUse {
		problems = slices.DeleteFunc(slices.Clone(entry.Problems), func(p bridge.Problem) bool { return p.Warning })
	}
	problems = append(problems, leaving(c, next.resource())...)
	if len(problems) == 0 { // else others only miss what cannot be used
		problems = s.broken(c, next.resource())
	}
	if len(problems) > 0 {
		return entry, &InvalidError{Problems: problems}
	}
	_, err := next.encode()
	return entry, err
}

// leaving says that a route's target was deleted, and would never go.
func leaving(c *Catalog, r bridge.Resource) []bridge.Problem {
	route, _ := c.Entry(r)
	to := bridge.Resource{Kind: bridge.KindTarget, Name: route.Document.Member("target").Text}
	if target, _ := c.Entry(to); r.Kind != bridge.KindRoute || target.Draining.IsZero() {
		return nil
	}
	return []bridge.Problem{{Path: "target", Text: fmt.Sprintf("target %q was deleted and goes as soon as its routes have drained: name another one", to.Name)}}
}

// broken lists the problems of other resources that are in use now and would
// not be in c.
func (s *Store) broken(c *Catalog, changed bridge.Resource) []bridge.Problem {
	now := s.catalog.Load()
	var problems []bridge.Problem
	for _, r := range c.Invalid() {
		was, known := now.Entry(r)
		if r == changed || !known || !was.InUse {
			continue
		}
		for _, p := range c.entries[r].Problems {
			if !p.Warning {
				problems = append(problems, bridge.Problem{Path: at(r, p.Path), Text: p.Text})
			}
		}
	}
	return problems
}
