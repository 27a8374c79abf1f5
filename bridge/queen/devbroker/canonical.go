package devbroker

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how deep a document may nest where it is decoded and encoded
// again (serde_json's limit, which 1.3.0 has).
const maxDepth = 128

var (
	errNumberRange = errors.New("number out of range")
	errTooDeep     = errors.New("recursion limit exceeded")
)

// canonical decodes a JSON value and encodes it again the way 1.3.0 does for
// transaction pushes, KV values and dead letters (measured): keys sorted, the
// last of duplicate keys kept, integers beyond 64 bits as floats, escapes
// decoded, no white space. A lone surrogate and a number like 1e400 are
// errors.
func canonical(value []byte) ([]byte, error) {
	s, err := scan(value)
	if err != nil {
		return nil, err
	}
	out, err := appendCanonical(make([]byte, 0, len(value)), s, 0)
	if err != nil {
		return nil, err
	}
	return out, s.end()
}

func appendCanonical(dst []byte, s *scanner, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, s.fail(errTooDeep.Error())
	}
	switch c := s.peek(); {
	case c == '{':
		return appendCanonicalObject(dst, s, depth)
	case c == '[':
		return appendCanonicalArray(dst, s, depth)
	case c == '"':
		text, err := s.str()
		if err != nil {
			return nil, err
		}
		return appendString(dst, text), nil
	case c == '-' || c >= '0' && c <= '9':
		raw, err := s.raw()
		if err != nil {
			return nil, err
		}
		dst, err = appendCanonicalNumber(dst, string(raw))
		if err != nil {
			return nil, s.fail(err.Error())
		}
		return dst, nil
	default:
		raw, err := s.raw()
		return append(dst, raw...), err
	}
}

func appendCanonicalArray(dst []byte, s *scanner, depth int) ([]byte, error) {
	dst = append(dst, '[')
	first := true
	err := s.array(func() (err error) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst, err = appendCanonical(dst, s, depth+1)
		return err
	})
	return append(dst, ']'), err
}

type member struct{ key, value []byte }

func appendCanonicalObject(dst []byte, s *scanner, depth int) ([]byte, error) {
	var members []member
	err := s.object(func(key []byte) error {
		value, err := appendCanonical(nil, s, depth+1)
		members = append(members, member{key, value})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	first := true
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(members[i+1].key, m.key) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, m.key), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}'), nil
}

func appendCanonicalNumber(dst []byte, text string) ([]byte, error) {
	if !strings.ContainsAny(text, ".eE") && text != "-0" {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return append(dst, text...), nil
		}
		if _, err := strconv.ParseUint(text, 10, 64); err == nil {
			return append(dst, text...), nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, errNumberRange
	}
	return appendFloat(dst, f), nil
}

// appendFloat writes the shortest form that reads back the same, laid out as
// serde_json (ryu) does: 1.0, 0.001, 1e16, 1.5e-7.
func appendFloat(dst []byte, f float64) []byte {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	if text[0] == '-' {
		dst, text = append(dst, '-'), text[1:]
	}
	mantissa, exponent, _ := strings.Cut(string(text), "e")
	e, _ := strconv.Atoi(exponent)
	figures := strings.Replace(mantissa, ".", "", 1)
	point := e + 1 // digits before the decimal point
	switch {
	case f == 0:
		return append(dst, "0.0"...)
	case point >= len(figures) && point <= 16:
		dst = append(append(dst, figures...), strings.Repeat("0", point-len(figures))...)
		return append(dst, ".0"...)
	case point > 0 && point <= 16:
		return append(append(append(dst, figures[:point]...), '.'), figures[point:]...)
	case point > -5 && point <= 0:
		dst = append(append(dst, "0."...), strings.Repeat("0", -point)...)
		return append(dst, figures...)
	}
	dst = append(dst, figures[0])
	if len(figures) > 1 {
		dst = append(append(dst, '.'), figures[1:]...)
	}
	return strconv.AppendInt(append(dst, 'e'), int64(e), 10)
}

// storable says whether PostgreSQL could hold text as jsonb or text: 1.3.0
// cannot dead-letter what it cannot (measured: "db error").
func storable(payload []byte, text string) bool {
	if strings.ContainsRune(text, 0) {
		return false
	}
	value, err := canonical(payload)
	return err == nil && !hasNUL(value)
}

// hasNUL says whether canonical JSON holds an escaped NUL.
func hasNUL(value []byte) bool {
	for i := 0; i+1 < len(value); i++ {
		if value[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(value[i:], []byte(`\u0000`)) {
			return true
		}
		i++
	}
	return false
}
