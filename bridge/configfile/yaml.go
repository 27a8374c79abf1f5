package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxNodes bounds a document with its aliases written out: a few lines of
// aliases of aliases can stand for billions of nodes.
const maxNodes = 100_000

// maxDepth bounds how deep values stand in one another; no field needs more
// than a pattern of a dozen levels.
const maxDepth = 100

// lineError is a document that cannot be read at all.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

// syntaxError reports why a file is no YAML document of ours.
func syntaxError(path string, err error) *Error {
	p := Problem{Where: path, Problem: bridge.Problem{Text: err.Error()}}
	var at *lineError
	if errors.As(err, &at) {
		p.Line = at.line
	}
	return &Error{Problems: []Problem{p}}
}

// parse reads a YAML document. Anchors, aliases and merge keys are written
// out; tags and several documents are refused. Repeated keys are kept for
// package bridge to report.
func parse(data []byte) (doc bridge.Node, err error) {
	defer func() {
		// The parser is somebody else's and reads what people type.
		if r := recover(); r != nil {
			doc, err = bridge.Node{}, errors.New("is no YAML that can be read")
		}
	}()
	if !utf8.Valid(data) {
		return bridge.Node{}, errors.New("is no text in UTF-8")
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return bridge.Node{}, unreadable(data, err)
	}
	c := converter{anchors: map[string]anchor{}}
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if doc.Kind != bridge.NodeAbsent {
			return bridge.Node{}, lineErrorAt(d.Body, "a second YAML document: write one")
		}
		if doc, err = c.node(d.Body); err != nil {
			return bridge.Node{}, err
		}
	}
	doc.Line, doc.Column = 0, 0 // a problem of the whole stands in no line
	return doc, nil
}

// unreadable takes the parser's message without its drawing of the source,
// which may show a secret.
func unreadable(data []byte, err error) error {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("is no YAML that can be read")
	}
	e := &lineError{text: "is no YAML: " + syntax.Message}
	if syntax.Token == nil || syntax.Token.Position == nil {
		return e
	}
	e.line = syntax.Token.Position.Line
	lines := bytes.Split(data, []byte("\n"))
	if e.line >= 1 && e.line <= len(lines) && bytes.Contains(lines[e.line-1], []byte("${")) {
		e.text += ` (inside [ ] and { } a reference needs quotes: "${env:NAME}")`
	}
	return e
}

func lineErrorAt(n ast.Node, format string, args ...any) error {
	line, _ := position(n)
	return &lineError{line: line, text: fmt.Sprintf(format, args...)}
}

// anchor is what an alias stands for; size counts its nodes.
type anchor struct {
	node bridge.Node
	size int
}

// converter turns the parser's tree into bridge's.
type converter struct {
	anchors      map[string]anchor
	nodes, depth int
}

func (c *converter) count(at ast.Node, n int) error {
	c.nodes += n
	if c.nodes > maxNodes {
		return lineErrorAt(at, "the document has more than %d values, aliases written out", maxNodes)
	}
	return nil
}

func (c *converter) node(n ast.Node) (bridge.Node, error) {
	if err := c.count(n, 1); err != nil {
		return bridge.Node{}, err
	}
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxDepth {
		return bridge.Node{}, lineErrorAt(n, "more than %d values stand in one another", maxDepth)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return c.mapping(n, n.Values)
	case *ast.MappingValueNode:
		return c.mapping(n, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		return c.sequence(n)
	case *ast.AnchorNode:
		return c.anchor(n)
	case *ast.AliasNode:
		return c.alias(n)
	case *ast.TagNode:
		return bridge.Node{}, lineErrorAt(n, "the tag %s: tags are not taken", n.Start.Value)
	}
	return scalar(n)
}

// scalar reads a value that holds no others.
func scalar(n ast.Node) (bridge.Node, error) {
	out := bridge.Node{}
	out.Line, out.Column = position(n)
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.Kind, out.Text = bridge.NodeBool, strings.ToLower(n.Token.Value)
	case *ast.IntegerNode:
		out.Kind, out.Text = bridge.NodeNumber, n.Token.Value
	case *ast.FloatNode:
		out.Kind, out.Text = bridge.NodeNumber, n.Token.Value
	case *ast.InfinityNode:
		out.Kind, out.Text = bridge.NodeNumber, n.Token.Value
	case *ast.NanNode:
		out.Kind, out.Text = bridge.NodeNumber, n.Token.Value
	case *ast.StringNode:
		out.Kind, out.Text = bridge.NodeString, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = bridge.NodeString, n.Value.Value
	default:
		return bridge.Node{}, lineErrorAt(n, "a %s is not taken here", n.Type())
	}
	return out, nil
}

func (c *converter) sequence(n *ast.SequenceNode) (bridge.Node, error) {
	out := bridge.Node{Kind: bridge.NodeList}
	out.Line, out.Column = position(n)
	for _, value := range n.Values {
		item, err := c.node(value)
		if err != nil {
			return bridge.Node{}, err
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

func (c *converter) mapping(n ast.Node, values []*ast.MappingValueNode) (bridge.Node, error) {
	out := bridge.Node{Kind: bridge.NodeMap}
	out.Line, out.Column = position(n)
	var merged []bridge.Member
	for _, value := range values {
		v, err := c.node(value.Value)
		if err != nil {
			return bridge.Node{}, err
		}
		if value.Key.IsMergeKey() {
			more, err := mergeMembers(value, v)
			if err != nil {
				return bridge.Node{}, err
			}
			merged = append(merged, more...)
			continue
		}
		key, err := keyText(value.Key)
		if err != nil {
			return bridge.Node{}, err
		}
		m := bridge.Member{Key: key, Value: v}
		m.Line, m.Column = position(value.Key)
		out.Members = append(out.Members, m)
	}
	out.Members = addMerged(out.Members, merged)
	return out, nil
}

// mergeMembers are the members that a merge key brings: those of a map, or of
// a list of maps.
func mergeMembers(at *ast.MappingValueNode, v bridge.Node) ([]bridge.Member, error) {
	switch v.Kind {
	case bridge.NodeMap:
		return v.Members, nil
	case bridge.NodeList:
		var all []bridge.Member
		for _, item := range v.Items {
			if item.Kind != bridge.NodeMap {
				return nil, lineErrorAt(at.Key, "<< must merge maps")
			}
			all = append(all, item.Members...)
		}
		return all, nil
	}
	return nil, lineErrorAt(at.Key, "<< must merge a map")
}

// addMerged adds merged members whose keys are not there: what is written
// beats what is merged, and the first merge beats a later one.
func addMerged(members, merged []bridge.Member) []bridge.Member {
	have := map[string]bool{}
	for _, m := range members {
		have[m.Key] = true
	}
	for _, m := range merged {
		if !have[m.Key] {
			have[m.Key] = true
			members = append(members, m)
		}
	}
	return members
}

// keyText is the text of a key that is a scalar.
func keyText(key ast.MapKeyNode) (string, error) {
	n, err := scalar(key)
	if err != nil {
		return "", lineErrorAt(key, "a key must be text")
	}
	if n.Kind == bridge.NodeAbsent {
		return key.GetToken().Value, nil
	}
	return n.Text, nil
}

func (c *converter) anchor(n *ast.AnchorNode) (bridge.Node, error) {
	before := c.nodes
	value, err := c.node(n.Value)
	if err != nil {
		return bridge.Node{}, err
	}
	// Known only from here on: an alias inside its own anchor has no end.
	c.anchors[n.Name.GetToken().Value] = anchor{value, c.nodes - before}
	return value, nil
}

func (c *converter) alias(n *ast.AliasNode) (bridge.Node, error) {
	name := n.Value.GetToken().Value
	a, known := c.anchors[name]
	if !known {
		return bridge.Node{}, lineErrorAt(n, "*%s refers to no anchor before it", name)
	}
	if err := c.count(n, a.size); err != nil {
		return bridge.Node{}, err
	}
	return clone(a.node), nil
}

// clone copies a node, so that what changes one use of an anchor leaves the
// others alone.
func clone(n bridge.Node) bridge.Node {
	n.Items = slices.Clone(n.Items)
	for i := range n.Items {
		n.Items[i] = clone(n.Items[i])
	}
	n.Members = slices.Clone(n.Members)
	for i := range n.Members {
		n.Members[i].Value = clone(n.Members[i].Value)
	}
	return n
}

// position is where a node begins.
func position(n ast.Node) (line, column int) {
	var t *token.Token
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) == 0 {
			t = n.Start
		} else {
			return position(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(n.Key)
	default:
		t = n.GetToken()
	}
	if t == nil || t.Position == nil {
		return 0, 0
	}
	return t.Position.Line, t.Position.Column
}
