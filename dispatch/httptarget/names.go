package httptarget

import (
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of the header names that a target remembers: providers send a few
// dozen short ones, and anybody may send any.
const (
	maxNames = 512
	maxName  = 64 // bytes
)

// names are the names of header lines as HTTP writes them. A name is made once:
// that took a fiftieth of a whole delivery. Safe for concurrent use; the zero
// value is empty.
type names struct {
	known sync.Map // of string
	n     atomic.Int64
}

// of is a line's name as it is sent, "" for one that is not passed on.
func (k *names) of(line string) string {
	if name, known := k.known.Load(line); known {
		return name.(string)
	}
	name := textproto.CanonicalMIMEHeaderKey(line)
	if dropped[name] || !validName(name) {
		name = ""
	}
	if len(line) <= maxName && k.n.Load() < maxNames {
		k.n.Add(1)
		name = strings.Clone(name) // both are parts of an event
		k.known.Store(strings.Clone(line), name)
	}
	return name
}
