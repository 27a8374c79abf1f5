package rules

import (
	"errors"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// The errors of a change that cannot be made in this state.
var (
	ErrNotFound      = errors.New("there is no such resource")
	ErrManagedByFile = errors.New("managed by file: change it in the configuration file")
	ErrDraining      = errors.New("it was deleted and is draining")
	ErrBusy          = errors.New("the change was not made: others change the rules all the time")
)

// PreconditionError says that a resource has another version than the change
// was made for.
type PreconditionError struct {
	// Absent says that there is none.
	Absent bool
}

func (e *PreconditionError) Error() string {
	if e.Absent {
		return "there is no such resource (any more)"
	}
	return "the resource is not at the version the change was made for: read it again and repeat the change"
}

// InvalidError lists everything that is wrong with a resource. Paths are
// relative to it; those of other resources begin with their kind and name, as
// in routes/pushes-to-ci.target.
type InvalidError struct{ Problems []bridge.Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = strings.TrimPrefix(p.String(), ": ")
	}
	return strings.Join(lines, "\n")
}

// NewerError says that a newer version of the bridge stored a resource.
type NewerError struct{ Problems []bridge.Problem }

func (e *NewerError) Error() string {
	return "a newer version of the bridge stored this resource, with what this one does not know: change it with the newer one, or delete it"
}

// InUseError says which resources need the one that was to be deleted.
type InUseError struct{ By []bridge.Resource }

func (e *InUseError) Error() string {
	names := make([]string, len(e.By))
	for i, r := range e.By {
		names[i] = r.String()
	}
	return "in use by " + strings.Join(names, ", ")
}

// raceError says that somebody else changed the resource, or any other one.
type raceError struct{ resource bool } // it was the resource itself

func (e *raceError) Error() string { return "the rules were changed meanwhile" }
