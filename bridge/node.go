package bridge

import (
	"slices"
	"strconv"
	"strings"
)

// NodeKind is what a Node is.
type NodeKind int

// The kinds of a document's nodes. NodeAbsent is null and what is not there:
// both mean the default.
const (
	NodeAbsent NodeKind = iota
	NodeBool
	NodeNumber
	NodeString
	NodeList
	NodeMap
)

// Node is a configuration document before it is read into Config: the same
// tree for a YAML file, a JSON request and the environment, so that all have
// the same rules and messages.
type Node struct {
	Kind NodeKind
	// Text of a scalar: numbers and booleans as written, references resolved.
	Text string
	// Reference is the text as written where it held references such as
	// ${env:NAME}. The text then came from outside: it may stand for a number
	// or a boolean too, and is never shown.
	Reference string
	// Err says why the node could not be made, such as a variable that is not
	// set. Decode reports it and takes the node for absent.
	Err string
	// Origin names where the node came from, if not from the document: an
	// environment variable.
	Origin string
	// Line and Column start at 1; 0 where there is none.
	Line, Column int
	Items        []Node   // NodeList
	Members      []Member // NodeMap, in order; a repeated key stands twice
}

// Member is one entry of a map.
type Member struct {
	Key          string
	Line, Column int // of the key
	Value        Node
}

// Member returns the value of the first entry with that key, NodeAbsent where
// there is none.
func (n Node) Member(key string) Node {
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return Node{}
}

// Set puts value at a dotted path of keys, making maps on the way. Whatever
// else stood there is replaced.
func (n *Node) Set(path string, value Node) {
	if path == "" {
		*n = value
		return
	}
	if n.Kind != NodeMap {
		*n = Node{Kind: NodeMap, Line: n.Line, Column: n.Column}
	}
	key, rest, _ := strings.Cut(path, ".")
	for i := range n.Members {
		if n.Members[i].Key == key {
			n.Members[i].Value.Set(rest, value)
			return
		}
	}
	n.Members = append(n.Members, Member{Key: key, Line: value.Line, Column: value.Column})
	n.Members[len(n.Members)-1].Value.Set(rest, value)
}

// Remove takes away what stands at a dotted path of keys, if anything does.
func (n *Node) Remove(path string) {
	key, rest, nested := strings.Cut(path, ".")
	if !nested {
		n.Members = slices.DeleteFunc(slices.Clone(n.Members), func(m Member) bool { return m.Key == key })
		return
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			n.Members[i].Value.Remove(rest)
		}
	}
}

// At follows a problem's path, such as routes[2].retry.max_attempts, as far as
// it leads, and returns the node there. Its line is that of its key or list
// entry. found is false where the path leads further than the document.
func (n Node) At(path string) (node Node, found bool) {
	for path != "" {
		next, rest, ok := n.step(path)
		if !ok {
			return n, false
		}
		n, path = next, strings.TrimPrefix(rest, ".")
	}
	return n, true
}

// step follows the first part of path: a key, which may hold dots, or [index].
func (n Node) step(path string) (next Node, rest string, ok bool) {
	if index, after, isIndex := cutIndex(path); isIndex {
		if index >= len(n.Items) {
			return Node{}, "", false
		}
		return n.Items[index], after, true
	}
	longest := -1
	for _, m := range n.Members {
		after, match := strings.CutPrefix(path, m.Key)
		if match && len(m.Key) > longest && (after == "" || after[0] == '.' || after[0] == '[') {
			longest, next, rest = len(m.Key), m.Value, after
			next.Line, next.Column = m.Line, m.Column
		}
	}
	return next, rest, longest >= 0
}

// cutIndex cuts "[2]" off the front of path.
func cutIndex(path string) (index int, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		return 0, path, false
	}
	text, rest, closed := strings.Cut(path[1:], "]")
	index, err := strconv.Atoi(text)
	return index, rest, closed && err == nil && index >= 0
}

// Walk calls visit for every node below and including n, with its path; visit
// may change the node.
func (n *Node) Walk(path string, visit func(path string, n *Node)) {
	visit(path, n)
	for i := range n.Items {
		n.Items[i].Walk(atIndex(path, i), visit)
	}
	for i := range n.Members {
		n.Members[i].Value.Walk(atKey(path, n.Members[i].Key), visit)
	}
}

func atIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func atKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
