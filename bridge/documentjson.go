package bridge

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxDepth bounds how deep a JSON document nests: no field of ours comes near.
const maxDepth = 64

// ParseJSON reads a JSON document as a Node, with the text of numbers as
// written; a repeated key stands twice. It refuses what is not JSON, what is no
// UTF-8, text that no broker stores (NUL, lone surrogates), and more than 64
// levels. Positions are not kept.
func ParseJSON(data []byte) (Node, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	n, err := readNode(d, 0)
	if err != nil {
		return Node{}, fmt.Errorf("read JSON: %w", plainSyntax(err))
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return Node{}, fmt.Errorf("read JSON: there is more behind the document, at byte %d", d.InputOffset())
	}
	return n, nil
}

// plainSyntax says where a document is no JSON, without jsontext's pointer.
func plainSyntax(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the document is empty")
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("at byte %d: %w", s.ByteOffset, s.Err)
	}
	return err
}

func readNode(d *jsontext.Decoder, depth int) (Node, error) {
	t, err := d.ReadToken()
	if err != nil {
		return Node{}, err
	}
	if depth > maxDepth {
		return Node{}, fmt.Errorf("more than %d levels, at byte %d", maxDepth, d.InputOffset())
	}
	switch t.Kind() {
	case '{':
		return readMap(d, depth)
	case '[':
		return readList(d, depth)
	case '"':
		return readText(t.String(), d)
	case '0':
		return Node{Kind: NodeNumber, Text: t.String()}, nil
	case 't', 'f':
		return Node{Kind: NodeBool, Text: strconv.FormatBool(t.Bool())}, nil
	}
	return Node{}, nil // null
}

func readText(text string, d *jsontext.Decoder) (Node, error) {
	if !storable(text) {
		return Node{}, fmt.Errorf("text with a NUL, which no database stores, before byte %d", d.InputOffset())
	}
	return textNode(text), nil
}

func readMap(d *jsontext.Decoder, depth int) (Node, error) {
	n := Node{Kind: NodeMap}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return Node{}, err
		}
		key, err := readText(t.String(), d)
		if err != nil {
			return Node{}, err
		}
		value, err := readNode(d, depth+1)
		if err != nil {
			return Node{}, err
		}
		n.Members = append(n.Members, Member{Key: key.Text, Value: value})
	}
	_, err := d.ReadToken()
	return n, err
}

func readList(d *jsontext.Decoder, depth int) (Node, error) {
	n := Node{Kind: NodeList}
	for d.PeekKind() != ']' {
		item, err := readNode(d, depth+1)
		if err != nil {
			return Node{}, err
		}
		n.Items = append(n.Items, item)
	}
	_, err := d.ReadToken()
	return n, err
}

// AppendJSON appends the document as JSON. Numbers keep their text where that
// is a JSON number, as it is in every document that ParseJSON read.
func (n Node) AppendJSON(dst []byte) []byte {
	switch n.Kind {
	case NodeBool:
		return append(dst, n.Text...)
	case NodeNumber:
		return n.appendNumber(dst)
	case NodeString:
		return appendText(dst, n.Text)
	case NodeList:
		dst = append(dst, '[')
		for i, item := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.AppendJSON(dst)
		}
		return append(dst, ']')
	case NodeMap:
		dst = append(dst, '{')
		for i, m := range n.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, m.Key), ':')
			dst = m.Value.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// appendNumber writes YAML's numbers (0x10, .5) as JSON's, and as text what
// JSON has no number for.
func (n Node) appendNumber(dst []byte) []byte {
	if v := jsontext.Value(n.Text); v.IsValid() && v.Kind() == '0' {
		return append(dst, n.Text...)
	}
	switch v := n.plain().(type) {
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		if v-v == 0 {
			return strconv.AppendFloat(dst, v, 'g', -1, 64)
		}
	}
	return appendText(dst, n.Text)
}
