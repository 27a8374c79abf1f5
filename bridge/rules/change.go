package rules

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Write is one resource to be stored.
type Write struct {
	Resource bridge.Resource
	// Document has the fields of config.md. It need not have the name.
	Document bridge.Node
	// Patch says that Document is a JSON merge patch of what is stored.
	Patch bool
	Precondition
	// Stored writes under a name that the file has, too: it comes into use when
	// the file no longer has it.
	Stored bool
	// ValidateOnly finds out what would happen and stores nothing.
	ValidateOnly bool
	// By is the name of the token that asks.
	By string
}

// Precondition is what the stored version must be. The zero value asks nothing.
type Precondition struct {
	// Match: it must be one of these. Nil means any, or none.
	Match []int64
	// Exists: there must be one, of whatever version.
	Exists bool
	// Absent: there must be none.
	Absent bool
}

// asks says that anything is demanded.
func (p Precondition) asks() bool { return p.Match != nil || p.Exists || p.Absent }

func (p Precondition) holds(version int64, found bool) bool {
	switch {
	case p.Absent:
		return !found
	case p.Match != nil:
		return found && slices.Contains(p.Match, version)
	}
	return found || !p.Exists
}

// Written is what a Write came to.
type Written struct {
	// Entry is the resource after it.
	Entry Entry
	// Before is the version it replaced, 0 where there was none.
	Before int64
	// After is the version it was stored with; the same as Before where nothing
	// was stored.
	After int64
	// Changed is false where the resource was so already.
	Changed bool
	// Fields are the paths of what changed, without values.
	Fields []string
}

// Write stores a resource, and has every process use it within seconds, this
// one at once. It is checked together with all others first. Writing what is
// stored already changes nothing, whichever version is demanded (RFC 9110
// §13.1.1 allows it: an answer may have been lost), unless there must be none
// (§13.1.2 does not). The error is ErrNotFound (of a
// patch), ErrManagedByFile, ErrDraining, or of type *PreconditionError,
// *InvalidError, *NewerError, *TooLargeError; any other one is Queen's, and the
// change may have been made then.
func (s *Store) Write(ctx context.Context, w Write) (Written, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		return Written{}, err
	}
	defer s.end()
	for try := 0; ; try++ {
		out, err := s.write(ctx, w)
		if again, err := s.lost(ctx, err, w.asks(), try); !again {
			return out, err
		}
	}
}

// write is one try of Write.
func (s *Store) write(ctx context.Context, w Write) (Written, error) {
	if err := s.refresh(ctx); err != nil {
		return Written{}, err
	}
	s.mu.Lock()
	out, next, err := s.plan(w)
	s.mu.Unlock()
	if err != nil || !out.Changed || w.ValidateOnly {
		return out, err
	}
	if err := s.put(ctx, out.Before, next); err != nil {
		return Written{}, err
	}
	s.metrics.writes.WithLabelValues(string(w.Resource.Kind)).Inc()
	out.Entry, _ = s.Catalog().Entry(w.Resource)
	s.mu.Lock()
	out.After = s.rows[bridge.RuleKey(w.Resource)].version
	s.mu.Unlock()
	return out, nil
}

// plan decides what a write comes to, and makes the row it stores. mu is held.
func (s *Store) plan(w Write) (Written, row, error) {
	before, found, err := s.current(w.Resource, w.Stored)
	if err != nil {
		return Written{}, row{}, err
	}
	if before.row.Draining != nil {
		return Written{}, row{}, fmt.Errorf("%w: wait until it is gone, or choose another name", ErrDraining)
	}
	if w.Patch && !found {
		return Written{}, row{}, ErrNotFound
	}
	out := Written{Before: before.version, After: before.version}
	next, fields, err := s.nextRow(w, before, found)
	if err != nil {
		return Written{}, row{}, err
	}
	out.Fields = fields
	out.Changed = !found || len(fields) > 0
	if !out.Changed && !w.Absent {
		out.Entry, _ = s.catalog.Load().Entry(w.Resource)
		return out, next, nil
	}
	if !w.holds(before.version, found) {
		return Written{}, row{}, &PreconditionError{Absent: !found}
	}
	out.Entry, err = s.try(next, before.version)
	return out, next, err
}

// current is the stored row of a resource that may be changed here.
func (s *Store) current(r bridge.Resource, shadow bool) (stored, bool, error) {
	if e, ok := s.catalog.Load().Entry(r); ok && e.File && !shadow {
		return stored{}, false, ErrManagedByFile
	} else if ok && e.Newer {
		return stored{}, false, &NewerError{Problems: e.Problems}
	}
	one, found := s.rows[bridge.RuleKey(r)]
	return one, found, nil
}

// nextRow is the row that a write stores, its secrets sealed, and which fields
// differ from the one before.
func (s *Store) nextRow(w Write, before stored, found bool) (row, []string, error) {
	old := bridge.Node{Kind: bridge.NodeMap}
	if found {
		old, _ = bridge.ParseJSON([]byte(before.row.Document)) // what cannot be read is replaced
	}
	doc := w.Document
	if w.Patch {
		doc = old.Merged(doc)
	}
	if doc.Kind != bridge.NodeMap {
		return row{}, nil, &InvalidError{Problems: []bridge.Problem{{Text: "must be an object of fields"}}}
	}
	doc = named(doc.Clone(), w.Resource.Name)
	if got := doc.Member("name"); got.Kind != bridge.NodeString || got.Text != w.Resource.Name {
		return row{}, nil, &InvalidError{Problems: []bridge.Problem{{Path: "name",
			Text: fmt.Sprintf("must be %q, as in the path, or left out", w.Resource.Name)}}}
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	next := row{Version: rowVersion, Kind: w.Resource.Kind, Name: w.Resource.Name,
		Created: before.row.Created, Updated: now, By: w.By, Write: newSealedID()}
	if next.Created.IsZero() {
		next.Created = now
	}
	var problems []bridge.Problem
	next.Sealed, problems = s.sealAll(w.Resource, &doc, before.row.Sealed)
	if len(problems) > 0 {
		// What else is wrong is found, too, with the literals in place.
		return row{}, nil, &InvalidError{Problems: append(problems, s.formProblems(w.Resource, doc)...)}
	}
	next.Document = string(doc.AppendJSON(nil))
	return next, old.Differences(doc), nil
}

// lost decides what becomes of a lost race: without a precondition of the
// caller's the change is decided anew on what the other one stored. Who won need
// not read everything anew and so is faster the next time, too: there is no bound
// but the time of the whole.
func (s *Store) lost(ctx context.Context, err error, asks bool, try int) (again bool, final error) {
	race, ok := errors.AsType[*raceError](err)
	switch {
	case !ok && try > 0 && ctx.Err() != nil:
		return false, fmt.Errorf("%w: %w", ErrBusy, err)
	case !ok:
		return false, err
	case race.resource && asks:
		return false, &PreconditionError{}
	}
	most := min(time.Millisecond<<min(try, 10), 50*time.Millisecond)
	if pause(ctx, rand.N(most)) != nil { //nolint:gosec // jitter
		return false, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
	return true, nil
}
