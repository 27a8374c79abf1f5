package signing

import (
	"fmt"
	"strconv"
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
	if path == wholeDocument {
		return d.raw, d.raw != nil
	}
	value, members := d.raw, d.members
	for depth, more := 0, true; more; depth++ {
		var step string
		step, path, more = cutStep(path)
		if depth > 0 {
			members = membersOf(value)
		}
		var ok bool
		if value, ok = child(members, step); !ok || depth == maxPathDepth {
			return nil, false
		}
	}
	return value, true
}

// child finds a key of an object or an index of an array.
func child(members []member, step string) ([]byte, bool) {
	if len(members) == 0 {
		return nil, false
	}
	if members[0].key == nil {
		return element(members, step)
	}
	var value []byte
	for _, m := range members {
		if !keyIs(m.key, step) {
			continue
		}
		if value != nil && !equalValues(value, m.value) {
			return nil, false
		}
		if value == nil {
			value = m.value
		}
	}
	return value, value != nil
}

func element(members []member, step string) ([]byte, bool) {
	if step == "" || len(step) > 9 || step[0] == '0' && step != "0" {
		return nil, false
	}
	i, err := strconv.ParseUint(step, 10, 32)
	if err != nil || i >= uint64(len(members)) {
		return nil, false
	}
	return members[i].value, true
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
