package signing

import (
	"fmt"
	"strings"
)

// maxPathDepth bounds how deep a path may reach. Documents may be deeper.
const maxPathDepth = 64

// wholeDocument is the path of the document itself.
const wholeDocument = "@this"

// parsePath splits a dotted path; \. is a dot in a key.
func parsePath(path string) ([]string, error) {
	if path == "" {
		return nil, fmt.Errorf("a path must not be empty: %s is the document", wholeDocument)
	}
	var steps []string
	for rest, more := path, path != wholeDocument; more; {
		var step string
		step, rest, more = cutStep(rest)
		steps = append(steps, step)
	}
	if len(steps) > maxPathDepth {
		return nil, fmt.Errorf("a path may have at most %d steps, got %d", maxPathDepth, len(steps))
	}
	return steps, nil
}

// cutStep takes the first step off a path. It copies only where a dot is
// escaped.
func cutStep(path string) (step, rest string, more bool) {
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+1 < len(path) && path[i+1] == '.' {
			i++
			continue
		}
		if path[i] == '.' {
			step, rest, more = path[:i], path[i+1:], true
			break
		}
	}
	if !more {
		step = path
	}
	if strings.Contains(step, `\.`) {
		step = strings.ReplaceAll(step, `\.`, ".")
	}
	return step, rest, more
}

// at returns the raw value at a path; false where there is none, or where a
// key on the way stands twice with different values.
func (d *document) at(path string) ([]byte, bool) {
	raw, state := d.find(path)
	return raw, state == present
}

// lookup is what a path leads to.
type lookup int

const (
	missing lookup = iota
	present
	ambiguous // a key on the way stands twice with different values
)

// find is at, with the reason where there is no value.
func (d *document) find(path string) ([]byte, lookup) {
	if len(d.raw) == 0 {
		return nil, missing
	}
	if path == wholeDocument {
		return d.raw, present
	}
	value, members := d.raw, d.members
	for depth, more := 0, true; more; depth++ {
		var step string
		step, path, more = cutStep(path)
		f := newFinder(value, step)
		if len(members) > 0 {
			f.all(members)
		} else {
			walk(value, f.visit)
		}
		switch {
		case f.conflict:
			return nil, ambiguous
		case !f.found || depth == maxPathDepth:
			return nil, missing
		}
		value, members = f.value, nil
	}
	return value, present
}

// finder looks for one member of a container: a key of an object, or an index
// of an array.
type finder struct {
	key    string
	index  int // -1 where an object is searched, or no index was meant
	object bool

	seen     int
	value    []byte
	found    bool
	conflict bool
}

func newFinder(container []byte, step string) finder {
	f := finder{key: step, index: -1, object: container[0] == '{'}
	if !f.object {
		f.index = arrayIndex(step)
	}
	return f
}

// arrayIndex reads a canonical index, -1 where the step is none.
func arrayIndex(step string) int {
	if len(step) > 9 || len(step) > 1 && step[0] == '0' {
		return -1
	}
	n, ok := digits(step)
	if !ok {
		return -1
	}
	return int(n)
}

func (f *finder) all(members []member) {
	for _, m := range members {
		if !f.visit(m) {
			return
		}
	}
}

// visit looks at one member; an object is searched to its end, as the same
// key may come again.
func (f *finder) visit(m member) bool {
	if !f.object {
		if f.seen == f.index {
			f.value, f.found = m.value, true
		}
		f.seen++
		return !f.found
	}
	if !keyIs(m.key, f.key) {
		return true
	}
	if !f.found {
		f.value, f.found = m.value, true
		return true
	}
	f.conflict = f.conflict || !equalValues(f.value, m.value)
	return !f.conflict
}

// scalar is the text of a value: strings decoded, numbers as they are
// written, true and false. null, "", objects and arrays have none.
func scalar(value []byte) (string, bool) {
	switch value[0] {
	case '"':
		text, ok := decodeString(value)
		return text, ok && text != ""
	case '{', '[', 'n':
		return "", false
	}
	return string(value), true
}
