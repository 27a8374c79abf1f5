package filter

import (
	"slices"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// sizeCost counts calls by the length of what they read and make. CEL (v0.33.2)
// does so itself only where the types are known when it compiles: with a member
// of the body, a + a costs the same for a megabyte as for a letter, and a few
// hundred of them would fill the memory.
type sizeCost struct{}

// counted are the functions that CEL counts by length with any types.
var counted = []string{operators.Equals, operators.NotEquals, overloads.Matches, overloads.Contains, overloads.StartsWith, overloads.EndsWith}

// CallCost is a step, and one for each ten bytes or elements; nil leaves it to
// CEL.
func (sizeCost) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	n := length(result)
	for _, arg := range args {
		n += length(arg)
	}
	if n < 10 || slices.Contains(counted, function) {
		return nil
	}
	cost := 1 + uint64(n)/10
	if function == "json.parse" {
		cost *= 10 // ten bytes of JSON can be five values
	}
	return &cost
}

func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 0
}
