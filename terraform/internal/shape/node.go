package shape

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
)

// ErrUnknown says that a value is not known yet: it comes from a resource that
// is still to be made.
var ErrUnknown = errors.New("the value is not known yet")

// Document is a resource's document of a value that Terraform has: the fields
// that are set, in order. Attributes that are no fields are passed over. The
// error is ErrUnknown where any field is not known.
func Document(fields []Field, v tftypes.Value) (bridge.Node, error) {
	return object(fields, v)
}

func object(fields []Field, v tftypes.Value) (bridge.Node, error) {
	attributes, err := members(v)
	if err != nil || attributes == nil {
		return bridge.Node{}, err
	}
	n := bridge.Node{Kind: bridge.NodeMap}
	for _, f := range fields {
		attribute, ok := attributes[f.Name]
		if !ok {
			continue
		}
		value, err := f.node(attribute)
		if err != nil {
			return bridge.Node{}, err
		}
		if value.Kind != bridge.NodeAbsent {
			n.Members = append(n.Members, bridge.Member{Key: f.Name, Value: value})
		}
	}
	return n, nil
}

func (f Field) node(v tftypes.Value) (bridge.Node, error) {
	if f.Form == Object {
		return object(f.Fields, v)
	}
	return Anything(v)
}

// Anything is the document of any value. A null in it stays: in a pattern it means
// something.
func Anything(v tftypes.Value) (bridge.Node, error) {
	switch t := v.Type(); {
	case !v.IsKnown():
		return bridge.Node{}, ErrUnknown
	case v.IsNull():
		return bridge.Node{}, nil
	case t.Is(tftypes.String):
		var text string
		err := v.As(&text)
		return bridge.Node{Kind: bridge.NodeString, Text: text}, err
	case t.Is(tftypes.Bool):
		var b bool
		err := v.As(&b)
		return bridge.Node{Kind: bridge.NodeBool, Text: strconv.FormatBool(b)}, err
	case t.Is(tftypes.Number):
		var number *big.Float
		err := v.As(&number)
		return bridge.Node{Kind: bridge.NodeNumber, Text: numberText(number)}, err
	case t.Is(tftypes.List{}), t.Is(tftypes.Set{}), t.Is(tftypes.Tuple{}):
		return freeList(v)
	case t.Is(tftypes.Map{}), t.Is(tftypes.Object{}):
		return freeMap(v)
	}
	return bridge.Node{}, fmt.Errorf("values of type %s are not supported", v.Type())
}

func freeList(v tftypes.Value) (bridge.Node, error) {
	var items []tftypes.Value
	if err := v.As(&items); err != nil {
		return bridge.Node{}, err
	}
	n := bridge.Node{Kind: bridge.NodeList}
	for _, item := range items {
		value, err := Anything(item)
		if err != nil {
			return bridge.Node{}, err
		}
		n.Items = append(n.Items, value)
	}
	return n, nil
}

func freeMap(v tftypes.Value) (bridge.Node, error) {
	all, err := members(v)
	if err != nil {
		return bridge.Node{}, err
	}
	n := bridge.Node{Kind: bridge.NodeMap}
	for _, key := range sortedKeys(all) {
		value, err := Anything(all[key])
		if err != nil {
			return bridge.Node{}, err
		}
		n.Members = append(n.Members, bridge.Member{Key: key, Value: value})
	}
	return n, nil
}

// members are the entries of an object or map, nil where it is null.
func members(v tftypes.Value) (map[string]tftypes.Value, error) {
	if !v.IsKnown() {
		return nil, ErrUnknown
	}
	if v.IsNull() {
		return nil, nil
	}
	all := map[string]tftypes.Value{}
	err := v.As(&all)
	return all, err
}

// numberText is the shortest text of a number that reads back as the same:
// Terraform keeps 512 bits of what was written.
func numberText(f *big.Float) string {
	const plainDigits = 21 // as far as JSON writers usually go without exponent
	if f.IsInt() && f.MantExp(nil) < 70 {
		if text := f.Text('f', 0); len(text) <= plainDigits {
			return text
		}
	}
	return f.Text('g', -1)
}
