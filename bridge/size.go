package bridge

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are the units of a Size, largest first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads 512KiB, 10MiB, 1GiB, 100B or a plain number of bytes.
func ParseSize(text string) (Size, error) {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = d, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !isDigits(digits) || n > math.MaxInt64/unit {
		return 0, errors.New("no size such as 10MiB or 512KiB")
	}
	return Size(n * unit), nil
}

// String writes the size in the largest unit that divides it: 4MiB, 1000B.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return "0B"
}
