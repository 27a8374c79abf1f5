package bridge

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// loose says that a scalar's text came from outside the document, which has no
// way to write a number as such.
func (n Node) loose() bool { return n.Reference != "" || n.Origin != "" }

func (n Node) isScalar() bool {
	return n.Kind == NodeBool || n.Kind == NodeNumber || n.Kind == NodeString
}

// plain is a scalar's value without a wanted type. A number that is neither an
// int64 nor kept by a float64 stays as it is written.
func (n Node) plain() any {
	switch n.Kind {
	case NodeString:
		return n.Text
	case NodeBool:
		return n.Text == "true"
	case NodeNumber:
		if i, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n.Text, 64); err == nil {
			if isExact(n.Text) {
				return f
			}
			return json.Number(n.Text)
		}
		return n.Text
	}
	return nil
}

// isExact says that a number has no more digits than a float64 keeps, 15, or
// is none that JSON could write.
func isExact(number string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	return len(digits) <= 15 || !json.Valid([]byte(number))
}

// describe shows what stands where something else was wanted. What came from a
// reference is never shown: it may be a secret in the wrong place.
func describe(n Node) string {
	switch {
	case n.Kind == NodeList:
		return "a list"
	case n.Kind == NodeMap:
		return "a map"
	case n.Kind == NodeAbsent:
		return "nothing"
	case n.Reference != "":
		return "what " + n.Reference + " holds"
	case n.Kind == NodeString:
		return strconv.Quote(cutText(n.Text, 100))
	}
	return cutText(n.Text, 100)
}

// scalar reads one scalar into a value of a basic type.
func (d *decoder) scalar(path string, n Node, v reflect.Value) {
	switch {
	case v.Type() == durationType:
		d.duration(path, n, v)
	case v.Type() == sizeType:
		d.size(path, n, v)
	case v.Kind() == reflect.String:
		d.text(path, n, v)
	case v.Kind() == reflect.Bool:
		d.boolean(path, n, v)
	case v.Kind() == reflect.Int:
		d.integer(path, n, v)
	case v.Kind() == reflect.Float64:
		d.float(path, n, v)
	}
}

func (d *decoder) duration(path string, n Node, v reflect.Value) {
	value, err := time.ParseDuration(n.Text)
	if err != nil || !n.isScalar() {
		d.fail(path, "must be a duration such as 30s, got %s", describe(n))
		return
	}
	v.SetInt(int64(value))
}

func (d *decoder) size(path string, n Node, v reflect.Value) {
	value, err := ParseSize(n.Text)
	if err != nil || !n.isScalar() {
		d.fail(path, "must be a size such as 10MiB or 512KiB, got %s", describe(n))
		return
	}
	v.SetInt(int64(value))
}

func (d *decoder) text(path string, n Node, v reflect.Value) {
	secret := v.Type() == secretType
	switch {
	case n.Kind == NodeString || n.isScalar() && n.loose():
		v.SetString(n.Text)
	case secret:
		d.fail(path, "must be text: put it in quotes")
	case n.isScalar():
		d.fail(path, "must be text, got %s: put it in quotes", describe(n))
	default:
		d.fail(path, "must be text, got %s", describe(n))
	}
	if secret && n.Kind == NodeString && n.Text != "" && !n.loose() {
		d.problems = append(d.problems, Problem{
			Path: path, Warning: true,
			Text: "is a literal secret: better write ${env:NAME} or ${file:PATH}",
		})
	}
}

func (d *decoder) boolean(path string, n Node, v reflect.Value) {
	known := n.Text == "true" || n.Text == "false"
	if !known || n.Kind != NodeBool && !n.loose() {
		d.fail(path, "must be true or false, got %s", describe(n))
		return
	}
	v.SetBool(n.Text == "true")
}

func (d *decoder) integer(path string, n Node, v reflect.Value) {
	value, err := strconv.Atoi(n.Text)
	if err != nil || n.Kind != NodeNumber && !n.loose() {
		d.fail(path, "must be a whole number, got %s", describe(n))
		return
	}
	v.SetInt(int64(value))
}

func (d *decoder) float(path string, n Node, v reflect.Value) {
	value, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || value-value != 0 || n.Kind != NodeNumber && !n.loose() { // Inf and NaN are no numbers here
		d.fail(path, "must be a number, got %s", describe(n))
		return
	}
	v.SetFloat(value)
}
