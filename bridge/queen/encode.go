package queen

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of names, measured on 1.3.0 (queen-contract.md §3): a queue name that
// is empty or longer is answered `buffered` and lost.
const (
	MaxQueueName     = 255   // characters
	MaxTransactionID = 65535 // bytes
)

// appendString appends s as a JSON string. s must be valid UTF-8.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		if b < 0x20 {
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		} else {
			dst = append(dst, '\\', b)
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// appendField appends `"name":"value"` behind what came before.
func appendField(dst []byte, prefix, value string) []byte {
	return appendString(append(dst, prefix...), value)
}

func appendInt(dst []byte, prefix string, n int64) []byte {
	return strconv.AppendInt(append(dst, prefix...), n, 10)
}

func appendBase64(dst []byte, prefix string, data []byte) []byte {
	dst = append(append(dst, prefix...), '"')
	return append(base64.StdEncoding.AppendEncode(dst, data), '"')
}

// appendMillis appends a duration in milliseconds, with a fraction if needed.
func appendMillis(dst []byte, prefix string, d time.Duration) []byte {
	return strconv.AppendFloat(append(dst, prefix...), float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// wholeSeconds rounds up to at least one.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// checkQueue refuses a queue name that Queen would lose or reject.
func checkQueue(s string) error {
	if n := utf8.RuneCountInString(s); n == 0 || n > MaxQueueName {
		return fmt.Errorf("queue name must have 1 to %d characters, got %d", MaxQueueName, n)
	}
	return checkText("queue", s)
}

// checkText refuses what makes Queen reject the whole request: control
// characters, invalid UTF-8, and emptiness, which means something else there.
func checkText(what, s string) error {
	switch {
	case s == "":
		return errors.New(what + " is empty")
	case !utf8.ValidString(s):
		return errors.New(what + " is not valid UTF-8")
	case strings.ContainsFunc(s, isControl):
		return errors.New(what + " holds a control character")
	}
	return nil
}

// isControl is what a push refuses: DEL and C1 pass (measured 1.3.0).
func isControl(r rune) bool { return r < 0x20 }

func checkTransactionID(s string) error {
	if len(s) > MaxTransactionID {
		return fmt.Errorf("transaction id has %d bytes, more than %d", len(s), MaxTransactionID)
	}
	return checkText("transaction id", s)
}

// storable drops what PostgreSQL cannot store in an error text: NUL and
// invalid UTF-8 (a `dlq` ack that holds one is refused for ever: measured
// 1.3.0).
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}
