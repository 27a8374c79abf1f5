package configfile

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// Print writes the configuration in effect as YAML, every field with its value,
// in the order of the reference: credentials as *** or, where they were
// written as a reference, as that. Load reads it back.
func (r Result) Print() []byte {
	n := r.Config.Effective()
	n.Walk("", func(path string, n *bridge.Node) {
		if n.Kind != bridge.NodeString {
			return
		}
		written, found := r.doc.At(path)
		before, _ := r.before.At(path) // differs where a flag beats the reference
		if found && written.Reference != "" && before.Text == n.Text {
			n.Text = written.Reference
		} else {
			n.Text = strings.ReplaceAll(n.Text, "${", "$${")
		}
	})
	return Format(n)
}

// Format writes a document as YAML.
func Format(n bridge.Node) []byte {
	var w writer
	w.block(n, 0)
	return w.Bytes()
}

type writer struct{ bytes.Buffer }

// block writes a map or list of structures at an indentation.
func (w *writer) block(n bridge.Node, indent int) {
	for _, m := range n.Members {
		w.WriteString(strings.Repeat(" ", indent) + scalarText(bridge.Node{Kind: bridge.NodeString, Text: m.Key}) + ":")
		w.value(m.Value, indent+2)
	}
	for _, item := range n.Items {
		w.WriteString(strings.Repeat(" ", indent) + "-")
		if item.Kind == bridge.NodeMap && len(item.Members) > 0 {
			var inner writer
			inner.block(item, indent+2)
			w.WriteByte(' ')
			w.Write(bytes.TrimLeft(inner.Bytes(), " "))
			continue
		}
		w.value(item, indent+2)
	}
}

// value writes what stands behind a colon or dash.
func (w *writer) value(n bridge.Node, indent int) {
	if flow, ok := flowText(n); ok {
		w.WriteString(" " + flow + "\n")
		return
	}
	w.WriteByte('\n')
	w.block(n, indent)
}

// flowText is the text of what fits on the line: a scalar, a list of scalars,
// or nothing.
func flowText(n bridge.Node) (string, bool) {
	switch {
	case n.Kind == bridge.NodeMap && len(n.Members) == 0:
		return "{}", true
	case n.Kind == bridge.NodeMap:
		return "", false
	case n.Kind != bridge.NodeList:
		return scalarText(n), true
	}
	items := make([]string, len(n.Items))
	for i, item := range n.Items {
		if item.Kind == bridge.NodeMap || item.Kind == bridge.NodeList {
			return "", false
		}
		items[i] = scalarText(item)
	}
	return "[" + strings.Join(items, ", ") + "]", true
}

// plainText is text that needs no quotes: words, paths and numbers with a
// unit.
var plainText = regexp.MustCompile(`^([A-Za-z/][A-Za-z0-9_./@+-]*|[0-9][0-9.]*[A-Za-z][A-Za-z0-9.]*)$`)

func scalarText(n bridge.Node) string {
	switch n.Kind {
	case bridge.NodeAbsent:
		return "null"
	case bridge.NodeString:
		if plainText.MatchString(n.Text) && !hasOtherType(n.Text) {
			return n.Text
		}
		return quote(n.Text)
	}
	return n.Text
}

// hasOtherType says that some YAML reader takes the text for no string.
func hasOtherType(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return true
	}
	_, notFloat := strconv.ParseFloat(text, 64)
	_, notInt := strconv.ParseInt(text, 0, 64)
	return notFloat == nil || notInt == nil
}

// quote writes text in double quotes; JSON's are YAML's too.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a string always encodes
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
