package shape

import (
	"github.com/queenbridge/queenbridge/bridge"
)

// Patch is the JSON merge patch (RFC 7396) that makes want of have. It mentions
// only what differs, so that fields which neither of them has, because this
// provider does not know them, stay as they are. It is absent where nothing
// differs.
func Patch(have, want bridge.Node) bridge.Node {
	if have.Kind != bridge.NodeMap || want.Kind != bridge.NodeMap {
		if Same(have, want) {
			return bridge.Node{}
		}
		return want
	}
	patch := bridge.Node{Kind: bridge.NodeMap}
	for _, m := range want.Members {
		before := have.Member(m.Key)
		if Same(before, m.Value) {
			continue
		}
		value := m.Value
		if before.Kind == bridge.NodeMap && value.Kind == bridge.NodeMap {
			value = Patch(before, value)
		}
		patch.Members = append(patch.Members, bridge.Member{Key: m.Key, Value: value})
	}
	for _, m := range have.Members {
		if m.Value.Kind != bridge.NodeAbsent && !has(want, m.Key) {
			patch.Members = append(patch.Members, bridge.Member{Key: m.Key}) // null: it goes
		}
	}
	if len(patch.Members) == 0 {
		return bridge.Node{}
	}
	return patch
}

func has(n bridge.Node, key string) bool {
	for _, m := range n.Members {
		if m.Key == key {
			return true
		}
	}
	return false
}

// Same says that two documents say the same: numbers by their value, members of
// maps in any order, a null member as one that is not there.
func Same(a, b bridge.Node) bool { return plain(a).Same(plain(b)) }

// plain writes every number of a document in one way.
func plain(n bridge.Node) bridge.Node {
	n = n.Clone()
	n.Walk("", func(_ string, n *bridge.Node) {
		if n.Kind != bridge.NodeNumber {
			return
		}
		if f, ok := parseNumber(n.Text); ok {
			n.Text = numberText(f)
		}
	})
	return n
}
