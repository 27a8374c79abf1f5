package queen

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxText bounds the texts of others in our errors, in bytes.
const maxText = 512

// ErrNotFound matches (errors.Is) a *StatusError of something Queen does not
// have, such as a queue. A missing route does not match.
var ErrNotFound = errors.New("not found")

// CallError is a call without a usable answer: no connection, a reset, a cut
// body, or the end of the context, which Unwrap reveals.
type CallError struct {
	Method, Path string
	Node         string // "" where none was tried
	// Sent is false when certainly nothing reached the node.
	Sent bool
	Err  error
}

func (e *CallError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("%s %s: %v", e.Method, e.Path, e.Err)
	}
	return fmt.Sprintf("%s %s: no answer from %s: %v", e.Method, e.Path, e.Node, e.Err)
}

// Unwrap reveals the cause.
func (e *CallError) Unwrap() error { return e.Err }

// BadBodyError is a success whose body is not JSON, or any answer with a body
// over Config.MaxAnswer. The call took effect all the same.
//
// Of a pop it means that something was leased and cannot be read: a payload
// that a foreign timer spliced in raw, or more than MaxAnswer. Pop that
// partition pinned, with batch 1 and Tolerant. The fields below then tell what
// stood before the fault; each may be empty.
type BadBodyError struct {
	Method, Path string
	Status       int
	TooLarge     bool
	Err          error

	Lease         Lease
	Partition     string // the first one claimed
	PartitionID   string
	TransactionID string // of the first message
}

func (e *BadBodyError) Error() string {
	return fmt.Sprintf("%s %s: unreadable answer to an accepted call: %v", e.Method, e.Path, e.Err)
}

// Unwrap reveals the cause.
func (e *BadBodyError) Unwrap() error { return e.Err }

// AnswerError is JSON that does not fit the request: a verdict too few, one
// of somebody else's, a word nobody knows. The call may have taken effect.
type AnswerError struct {
	Method, Path string
	Text         string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s %s: the answer does not fit the request: %s", e.Method, e.Path, e.Text)
}

// TimersIgnoredError is a committed transaction whose answer lacks the verdict
// of a timer sent: brokers before 1.0.3 drop timers in silence
// (queen-contract.md §1.3). Everything else of it was committed; sending it
// again does not help.
type TimersIgnoredError struct {
	Sent, Answered int
}

func (e *TimersIgnoredError) Error() string {
	return fmt.Sprintf("transaction committed without its timers (%d sent, %d answered): Queen %s or newer is needed", e.Sent, e.Answered, MinVersion)
}

func (e *StatusError) Error() string {
	text := strconv.Itoa(e.Status)
	for _, more := range []string{e.Code, e.Text} {
		if more != "" {
			text += ": " + more
		}
	}
	return e.Method + " " + e.Path + ": " + text
}

// Is makes a missing thing match ErrNotFound.
func (e *StatusError) Is(target error) bool {
	return target == ErrNotFound && e.Status == http.StatusNotFound && e.Code != codeNoRoute
}

// codeNoRoute is the code of a route the broker does not have.
const codeNoRoute = "no_such_route"

func (e *RollbackError) Error() string {
	text := "transaction refused: " + e.Raw
	if e.Raw == "" {
		text += strconv.Itoa(e.Status)
	}
	if e.Text != "" && e.Text != e.Raw {
		text += ": " + e.Text
	}
	return text
}

// Uncertain says that a call may have taken effect although it failed: no
// answer, 5xx, a cut, unreadable or unfitting answer. Repeat only what is safe
// to repeat: a push with the same ids, an identical settle that ends its
// batches, an extend, reads. Any other error means that nothing was done.
func Uncertain(err error) bool {
	var call *CallError
	var status *StatusError
	var bad *BadBodyError
	var misfit *AnswerError
	var timers *TimersIgnoredError
	switch {
	case errors.As(err, &call):
		return call.Sent
	case errors.As(err, &status):
		return status.Status >= http.StatusInternalServerError
	}
	return errors.As(err, &bad) || errors.As(err, &misfit) || errors.As(err, &timers)
}

// Temporary says that the identical call may well be answered otherwise soon:
// no definite answer, 5xx, 408, 429, and the transient refusals of a
// transaction. False for what needs an operator (Denied) and for answers that
// will not change.
func Temporary(err error) bool {
	var call *CallError
	var status *StatusError
	var rollback *RollbackError
	var bad *BadBodyError
	var misfit *AnswerError
	switch {
	case errors.As(err, &call):
		return true
	case errors.As(err, &status):
		return status.Status >= 500 || status.Status == http.StatusTooManyRequests || status.Status == http.StatusRequestTimeout
	case errors.As(err, &rollback):
		return rollback.Reason == RollbackTransient || rollback.Reason == RollbackRateLimited
	case errors.As(err, &bad):
		return !bad.TooLarge
	}
	return errors.As(err, &misfit)
}

// Denied says that only an operator can help: credentials, rights, quota, or
// KV or timers switched off. Nothing was done.
func Denied(err error) bool {
	var status *StatusError
	var rollback *RollbackError
	if errors.As(err, &status) {
		return status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden
	}
	return errors.As(err, &rollback) && (rollback.Reason == RollbackDisabled ||
		rollback.Reason == RollbackOther && rollback.Status == http.StatusForbidden)
}

// RetryAfter is how long the broker asked to wait; 0 where it did not say.
func RetryAfter(err error) time.Duration {
	var status *StatusError
	var rollback *RollbackError
	switch {
	case errors.As(err, &status):
		return status.RetryAfter
	case errors.As(err, &rollback):
		return rollback.RetryAfter
	}
	return 0
}

// statusError reads an answer that is no success: JSON of any of Queen's
// shapes, or text, or nothing (queen-contract.md §1.5).
func (a *answer) statusError() *StatusError {
	e := &StatusError{Method: a.call.method, Path: a.call.shownPath(), Status: a.status, RetryAfter: retryAfter(a.header, time.Now())}
	var wire struct {
		Error  jsonText `json:"error"`
		Code   jsonText `json:"code"`
		Reason jsonText `json:"reason"`
		Detail jsonText `json:"detail"`
	}
	if a.encoded != "" {
		e.Text = a.encoded
		return e
	}
	if json.Unmarshal(a.body, &wire) != nil {
		e.Text = a.foreign(string(a.body[:min(len(a.body), 4*maxText)]))
		return e
	}
	switch {
	case wire.Code != "":
		e.Code, e.Text = string(wire.Code), string(wire.Error)
	case wire.Reason != "": // the KV and timer surfaces
		e.Code, e.Text = string(wire.Error), strings.TrimSuffix(string(wire.Reason)+": "+string(wire.Detail), ": ")
	default:
		e.Text = string(wire.Error)
	}
	e.Code, e.Text = clip(e.Code, 64), a.foreign(e.Text)
	return e
}

// foreign is a text of the broker or a proxy as errors may show it.
func (a *answer) foreign(text string) string {
	if a.secret != "" {
		text = strings.ReplaceAll(text, a.secret, "***")
	}
	return clip(text, maxText)
}

// jsonText is a string of an error body; any other JSON is passed over.
type jsonText string

// UnmarshalJSON never fails: an error body is read as far as it goes.
func (t *jsonText) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = jsonText(s)
	}
	return nil
}

// retryAfter reads the header: seconds or an HTTP date, capped at a day.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	d := time.Duration(0)
	if secs, err := strconv.ParseInt(v, 10, 32); err == nil {
		d = time.Duration(secs) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), 24*time.Hour)
}

// clip makes a foreign text fit for an error and a log line: one line of valid
// UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func isStatus(err error, status int) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == status
}

func containsFold(s, sub string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(sub))
}
