package bridge

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a function may ask for.
const maxRetryAfter = time.Hour

// maxErrorText bounds Failure.Error.
const maxErrorText = 256

// retryAfter reads Queen-Retry-After, else Retry-After, at most an hour.
// present is false where neither is readable; a date in the past is present
// and 0.
func retryAfter(h http.Header, now time.Time) (after time.Duration, present bool) {
	if after, ok := parseRetryAfter(h.Get(HeaderRetryAfter), now); ok {
		return after, true
	}
	return parseRetryAfter(h.Get("Retry-After"), now)
}

// parseRetryAfter reads seconds, also with a fraction (functions send it),
// or one of the three HTTP-date forms (RFC 9110 §5.6.7). Nothing here can
// overflow: 99999999999 s wraps a time.Duration, and a saturated ParseInt
// times Second is -1 s (measured).
func parseRetryAfter(value string, now time.Time) (after time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if value == "" { // of nearly every answer
		return 0, false
	}
	if whole, fraction, _ := strings.Cut(value, "."); isDigits(whole) && (fraction == "" || isDigits(fraction)) {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil || seconds >= maxRetryAfter.Seconds() {
			return maxRetryAfter, true // err: too many digits for a float
		}
		return time.Duration(seconds * float64(time.Second)), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), maxRetryAfter), true // Sub saturates
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// queryOrUser finds the parts of a URL in an error text that may be secret.
var queryOrUser = regexp.MustCompile(`(://)[^/\s"'@]*@|\?[^\s"']*`)

// errorText is a short text for an error of a call: one line, no URL query, no
// user.
func errorText(err error) string {
	text := err.Error()
	var wrapped *url.Error
	if errors.As(err, &wrapped) && wrapped.Err != nil {
		// url.Error quotes the whole URL.
		text = strings.ReplaceAll(text, wrapped.Error(), wrapped.Err.Error())
	}
	return lineOf(queryOrUser.ReplaceAllString(text, "$1"))
}

// lineOf is a text as one line of bounded length.
func lineOf(text string) string {
	return cutText(strings.Join(strings.Fields(cleanText(text)), " "), maxErrorText)
}

// responseHead is the head of an answer for a dead letter.
func responseHead(body []byte) string {
	// Cut first, with room for a rune and for what cleaning lengthens.
	head := string(body[:min(len(body), maxReasonText+3)])
	return cutText(cleanText(head), maxReasonText)
}
