package shape

import (
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
)

// Value is a document as a Terraform value of some type; attributes that the
// document does not have are null. Odd are the paths of what no attribute of
// its type can hold, such as a reference in the place of a number: there the
// value is null.
func Value(t tftypes.Type, n bridge.Node) (v tftypes.Value, odd []string) {
	var c converter
	v = c.value("", t, n)
	return v, c.odd
}

type converter struct{ odd []string }

func (c *converter) value(path string, t tftypes.Type, n bridge.Node) tftypes.Value {
	if n.Kind == bridge.NodeAbsent {
		return tftypes.NewValue(t, nil)
	}
	var v tftypes.Value
	var ok bool
	switch t := t.(type) {
	case tftypes.Object:
		v, ok = c.object(path, t, n)
	case tftypes.Map:
		v, ok = c.mapping(path, t, n)
	case tftypes.List:
		v, ok = c.list(path, t, n)
	default:
		v, ok = scalar(t, n)
	}
	if !ok {
		c.odd = append(c.odd, path)
		return tftypes.NewValue(t, nil)
	}
	return v
}

func (c *converter) object(path string, t tftypes.Object, n bridge.Node) (tftypes.Value, bool) {
	if n.Kind != bridge.NodeMap {
		return tftypes.Value{}, false
	}
	values := make(map[string]tftypes.Value, len(t.AttributeTypes))
	for name, attribute := range t.AttributeTypes {
		values[name] = c.value(below(path, name), attribute, n.Member(name))
	}
	return tftypes.NewValue(t, values), true
}

func (c *converter) mapping(path string, t tftypes.Map, n bridge.Node) (tftypes.Value, bool) {
	if n.Kind != bridge.NodeMap {
		return tftypes.Value{}, false
	}
	values := make(map[string]tftypes.Value, len(n.Members))
	for _, m := range n.Members {
		values[m.Key] = c.value(below(path, m.Key), t.ElementType, m.Value)
	}
	return tftypes.NewValue(t, values), true
}

func (c *converter) list(path string, t tftypes.List, n bridge.Node) (tftypes.Value, bool) {
	if n.Kind != bridge.NodeList {
		return tftypes.Value{}, false
	}
	values := make([]tftypes.Value, len(n.Items))
	for i, item := range n.Items {
		values[i] = c.value(path+"["+strconv.Itoa(i)+"]", t.ElementType, item)
	}
	return tftypes.NewValue(t, values), true
}

func scalar(t tftypes.Type, n bridge.Node) (tftypes.Value, bool) {
	switch {
	case t.Is(tftypes.DynamicPseudoType):
		return dynamic(n), true
	case t.Is(tftypes.String) && (n.Kind == bridge.NodeString || n.Kind == bridge.NodeNumber):
		return tftypes.NewValue(t, n.Text), true // a size may be written as a number
	case t.Is(tftypes.Bool) && n.Kind == bridge.NodeBool:
		return tftypes.NewValue(t, n.Text == "true"), true
	case t.Is(tftypes.Number) && n.Kind == bridge.NodeNumber:
		number, ok := parseNumber(n.Text)
		return tftypes.NewValue(t, number), ok
	}
	return tftypes.Value{}, false
}

// dynamic is a value of the type that a document has by itself.
func dynamic(n bridge.Node) tftypes.Value {
	switch n.Kind {
	case bridge.NodeBool:
		return tftypes.NewValue(tftypes.Bool, n.Text == "true")
	case bridge.NodeNumber:
		if number, ok := parseNumber(n.Text); ok {
			return tftypes.NewValue(tftypes.Number, number)
		}
	case bridge.NodeString:
		return tftypes.NewValue(tftypes.String, n.Text)
	case bridge.NodeList:
		values := make([]tftypes.Value, len(n.Items))
		types := make([]tftypes.Type, len(n.Items))
		for i, item := range n.Items {
			values[i] = dynamic(item)
			types[i] = values[i].Type()
		}
		return tftypes.NewValue(tftypes.Tuple{ElementTypes: types}, values)
	case bridge.NodeMap:
		values := make(map[string]tftypes.Value, len(n.Members))
		types := make(map[string]tftypes.Type, len(n.Members))
		for _, m := range n.Members {
			values[m.Key] = dynamic(m.Value)
			types[m.Key] = values[m.Key].Type()
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, values)
	}
	return tftypes.NewValue(tftypes.DynamicPseudoType, nil)
}

// precision is what Terraform itself keeps of a number.
const precision = 512

func parseNumber(text string) (*big.Float, bool) {
	f, _, err := big.ParseFloat(text, 10, precision, big.ToNearestEven)
	return f, err == nil && !f.IsInf()
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
