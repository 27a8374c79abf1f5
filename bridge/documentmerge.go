package bridge

import "slices"

// Clone copies a document, so that the copy may be changed.
func (n Node) Clone() Node {
	n.Items, n.Members = slices.Clone(n.Items), slices.Clone(n.Members)
	for i := range n.Items {
		n.Items[i] = n.Items[i].Clone()
	}
	for i := range n.Members {
		n.Members[i].Value = n.Members[i].Value.Clone()
	}
	return n
}

// Merged is n after a JSON merge patch (RFC 7396): members of patch that are
// null go, maps are merged, everything else is replaced. Neither is changed.
func (n Node) Merged(patch Node) Node {
	if patch.Kind != NodeMap {
		return patch.Clone()
	}
	out := Node{Kind: NodeMap}
	if n.Kind == NodeMap {
		out = n.Clone()
	}
	for _, m := range patch.Members {
		at := slices.IndexFunc(out.Members, func(o Member) bool { return o.Key == m.Key })
		switch {
		case m.Value.Kind == NodeAbsent && at >= 0:
			out.Members = slices.Delete(out.Members, at, at+1)
		case m.Value.Kind == NodeAbsent:
		case at >= 0:
			out.Members[at].Value = out.Members[at].Value.Merged(m.Value)
		default:
			out.Members = append(out.Members, Member{Key: m.Key, Value: Node{}.Merged(m.Value)})
		}
	}
	return out
}

// Same says that two documents say the same: the order of a map's members does
// not count, nor does a null member. Scalars are the same when their texts are.
func (n Node) Same(other Node) bool {
	if n.Kind != other.Kind || n.Text != other.Text || len(n.Items) != len(other.Items) {
		return false
	}
	for i := range n.Items {
		if !n.Items[i].Same(other.Items[i]) {
			return false
		}
	}
	return n.covers(other) && other.covers(n)
}

// covers says that each member of n is the same in other.
func (n Node) covers(other Node) bool {
	for _, m := range n.Members {
		if !m.Value.Same(other.Member(m.Key)) {
			return false
		}
	}
	return true
}

// Differences are the paths at which two documents differ, in the order of the
// second, removed ones last. They name places, not values: some are secrets.
func (n Node) Differences(other Node) []string { return n.differences("", other) }

func (n Node) differences(path string, other Node) []string {
	if n.Same(other) {
		return nil
	}
	if n.Kind != NodeMap && n.Kind != NodeAbsent || other.Kind != NodeMap {
		return []string{path}
	}
	var all []string
	for _, m := range other.Members {
		all = append(all, n.Member(m.Key).differences(atKey(path, m.Key), m.Value)...)
	}
	for _, m := range n.Members {
		if _, found := other.lookup(m.Key); !found && m.Value.Kind != NodeAbsent {
			all = append(all, atKey(path, m.Key))
		}
	}
	if all == nil { // an empty map where there was nothing
		return []string{path}
	}
	return all
}

func (n Node) lookup(key string) (Node, bool) {
	at := slices.IndexFunc(n.Members, func(m Member) bool { return m.Key == key })
	if at < 0 {
		return Node{}, false
	}
	return n.Members[at].Value, true
}
