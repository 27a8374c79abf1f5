package rules

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// stored is one row as it was read.
type stored struct {
	key     string
	version int64
	row     row
	err     error // the row cannot be read; row may still say whose it is
}

// candidate is a stored resource on its way into a catalog.
type candidate struct {
	entry    Entry
	resolved bridge.Node
	dropped  bool
}

// build makes a catalog of the file and the rows. It depends on nothing else
// but the keyring and what references stand for now.
func (s *Store) build(file File, rows map[string]stored) *Catalog {
	c := &Catalog{entries: map[bridge.Resource]Entry{}, unreadable: map[string]string{}}
	s.addFile(c, file)
	candidates := s.candidates(c, rows)
	for {
		config, problems := s.compose(file, candidates)
		if !drop(candidates, problems) {
			c.Config = config
			break
		}
	}
	for _, one := range candidates {
		c.entries[one.entry.Resource] = one.entry
	}
	return c
}

// addFile lists the file's resources.
func (s *Store) addFile(c *Catalog, file File) {
	for _, kind := range bridge.Kinds() {
		for _, doc := range file.Document.Member(string(kind)).Items {
			r := bridge.Resource{Kind: kind, Name: doc.Member("name").Text}
			c.entries[r] = Entry{Resource: r, File: true, InUse: true, Document: bridge.Masked(kind, doc)}
		}
	}
}

// candidates are the stored resources that may come into use, oldest first: of
// two that exclude each other the older one stays.
func (s *Store) candidates(c *Catalog, rows map[string]stored) []*candidate {
	var all []*candidate
	for _, one := range rows {
		if !one.row.Kind.Valid() || one.row.Name == "" {
			c.unreadable[one.key] = one.err.Error()
			continue
		}
		if e, taken := c.entries[one.row.resource()]; taken {
			e.Problems = append(e.Problems, bridge.Problem{Warning: true,
				Text: "a resource of this name is stored, too: the file's is in use; delete one of them"})
			c.entries[e.Resource] = e
			continue
		}
		all = append(all, s.candidate(one))
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(a.entry.Created.Compare(b.entry.Created), cmp.Compare(a.entry.Resource.Name, b.entry.Resource.Name))
	})
	return all
}

func (s *Store) candidate(one stored) *candidate {
	r := one.row
	c := &candidate{entry: Entry{Resource: r.resource(), Version: one.version, InUse: true,
		Created: r.Created, Updated: r.Updated, By: r.By}}
	if r.Draining != nil {
		c.entry.Draining = *r.Draining
	}
	known, err := s.parse(one)
	if err != nil {
		c.refuse(bridge.Problem{Text: err.Error()})
		c.entry.Document = named(bridge.Node{Kind: bridge.NodeMap}, r.Name)
		_, c.entry.Newer = errors.AsType[*newerError](err)
		return c
	}
	c.entry.Document, c.resolved = known.doc, known.resolved
	return c
}

// parsed is a row's document, as written and with its references resolved.
// Neither is changed.
type parsed struct {
	write         string
	version       int64
	references    *references
	doc, resolved bridge.Node
}

// parse reads a row's document, once for each version of the row and each load
// of the file, unless a reference could not be resolved.
func (s *Store) parse(one stored) (parsed, error) {
	if one.err != nil {
		return parsed{}, one.err
	}
	known, ok := s.parsed[one.key]
	if ok && known.write == one.row.Write && known.version == one.version && known.references == s.references {
		return known, nil
	}
	doc, err := bridge.ParseJSON([]byte(one.row.Document))
	if err != nil {
		return parsed{}, err
	}
	known = parsed{one.row.Write, one.version, s.references, doc, doc.Clone()}
	s.resolve(one.row.resource(), &known.resolved, one.row.Sealed)
	failed := false
	known.resolved.Walk("", func(_ string, n *bridge.Node) { failed = failed || n.Err != "" })
	if !failed {
		s.parsed[one.key] = known
	}
	return known, nil
}

// refuse keeps the resource out of use.
func (c *candidate) refuse(p bridge.Problem) {
	c.entry.Problems = append(c.entry.Problems, p)
	c.entry.InUse, c.dropped = false, true
}

// compose makes one configuration of the file and the candidates that are not
// dropped, and finds what is wrong with each of these.
func (s *Store) compose(file File, candidates []*candidate) (bridge.Config, map[*candidate][]bridge.Problem) {
	config := file.Config
	config.Sources, config.Targets = slices.Clone(config.Sources), slices.Clone(config.Targets)
	config.Routes, config.Queues = slices.Clone(config.Routes), slices.Clone(config.Queues)
	places := map[string]*candidate{}
	var decoded []bridge.Problem
	for _, c := range candidates {
		if c.dropped {
			continue
		}
		path, problems := config.Add(c.entry.Resource.Kind, c.resolved)
		decoded = append(decoded, problems...)
		places[path] = c
	}
	found := map[*candidate][]bridge.Problem{}
	for _, p := range append(config.Check(decoded), s.checkFilters(config.Routes)...) {
		head := p.Path[:strings.IndexByte(p.Path, ']')+1]
		if c := places[head]; c != nil {
			found[c] = append(found[c], c.relative(p, head))
		}
	}
	for _, c := range places {
		found[c] = append(found[c], fileOnly(c.entry.Resource.Kind, c.resolved)...)
	}
	return config, found
}

// fileOnly refuses what only those may write who own the machine: an admin
// token is no shell.
func fileOnly(kind bridge.Kind, doc bridge.Node) []bridge.Problem {
	if kind != bridge.KindTarget || doc.Member("auth").Member("command").Kind == bridge.NodeAbsent {
		return nil
	}
	return []bridge.Problem{{Path: "auth.command",
		Text: "runs a program on the bridge's machine: only a target of the configuration file may have one; use token_file"}}
}

// relative is a problem with its path in the resource, without what the
// resource's references stand for.
func (c *candidate) relative(p bridge.Problem, head string) bridge.Problem {
	p.Path, _ = bridge.Within(p.Path, head)
	p.Text = scrub(p.Text, c.resolved, c.entry.Resource.Kind)
	return p
}

// drop takes the candidates with errors out and says whether there were any:
// others may need them. Warnings are kept of the last round only.
func drop(candidates []*candidate, problems map[*candidate][]bridge.Problem) bool {
	any := false
	for _, c := range candidates {
		if c.dropped {
			continue
		}
		c.entry.Problems = problems[c]
		if slices.ContainsFunc(problems[c], isError) {
			c.entry.InUse, c.dropped, any = false, true, true
			c.entry.Newer = slices.ContainsFunc(problems[c], bridge.Problem.Unknown)
		}
	}
	return any
}

func isError(p bridge.Problem) bool { return !p.Warning }

// filterCheck is what compiling a route's expressions came to.
type filterCheck struct {
	route    bridge.Route
	problems []bridge.Problem
}

// checkFilters compiles what is not compiled already: a catalog has many routes
// and a change is about one.
func (s *Store) checkFilters(routes []bridge.Route) []bridge.Problem {
	var all []bridge.Problem
	now := make(map[string]filterCheck, len(routes))
	for i, r := range routes {
		known, ok := s.filters[r.Name]
		if !ok || !reflect.DeepEqual(known.route, r) {
			known = filterCheck{r, filter.Check([]bridge.Route{r})}
		}
		now[r.Name] = known
		for _, p := range known.problems {
			rest, _ := bridge.Within(p.Path, "routes[0]")
			p.Path = fmt.Sprintf("routes[%d].%s", i, rest)
			all = append(all, p)
		}
	}
	s.filters = now
	return all
}

// named puts a name in front of a document that has none.
func named(doc bridge.Node, name string) bridge.Node {
	if doc.Member("name").Kind != bridge.NodeAbsent {
		return doc
	}
	doc = doc.Clone()
	doc.Remove("name")
	doc.Members = slices.Insert(doc.Members, 0,
		bridge.Member{Key: "name", Value: bridge.Node{Kind: bridge.NodeString, Text: name}})
	return doc
}
