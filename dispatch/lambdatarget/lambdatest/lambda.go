package lambdatest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Lambda is Lambda's Invoke route in front of an emulator, which by itself
// never says that a function failed, calls every call synchronous, and knows
// one name. Any name, ARN or qualifier is the function.
type Lambda struct {
	// URL is the endpoint for clients of AWS.
	URL string

	emulator *Emulator
	handed   sync.WaitGroup // events handed over and not yet run
	mu       sync.Mutex
	calls    int
}

// Serve serves a function's Invoke route until the test ends.
func Serve(t testing.TB, e *Emulator) *Lambda {
	t.Helper()
	l := &Lambda{emulator: e}
	srv := httptest.NewServer(l)
	t.Cleanup(func() { srv.Close(); l.handed.Wait() })
	l.URL = srv.URL
	return l
}

// Calls is how many calls were taken so far.
func (l *Lambda) Calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// The limits of payloads, in bytes.
const (
	maxPayload      = 6 << 20
	maxEventPayload = 1 << 20
)

// ServeHTTP answers as Lambda's API reference of Invoke says.
func (l *Lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.calls++
	l.mu.Unlock()
	payload, err := io.ReadAll(r.Body)
	kind, limit := r.Header.Get("X-Amz-Invocation-Type"), maxPayload
	if kind == "Event" {
		limit = maxEventPayload
	}
	switch {
	case err != nil || r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/2015-03-31/functions/") || !strings.HasSuffix(r.URL.Path, "/invocations"):
		refuse(w, http.StatusNotFound, "ResourceNotFoundException")
	case len(payload) > limit:
		refuse(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException")
	case len(payload) > 0 && !json.Valid(payload):
		refuse(w, http.StatusBadRequest, "InvalidRequestContentException")
	case kind == "DryRun":
		w.WriteHeader(http.StatusNoContent)
	case kind == "Event":
		l.handed.Go(func() { _, _ = l.emulator.Invoke(payload) }) // nobody sees the answer
		w.WriteHeader(http.StatusAccepted)
	default:
		l.answer(w, payload, r.Header.Get("X-Amz-Client-Context"))
	}
}

func refuse(w http.ResponseWriter, status int, errorType string) {
	w.Header().Set("X-Amzn-ErrorType", errorType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"Type":"User","Message":"refused"}`)
}

// answer runs the function and says whether it failed.
func (l *Lambda) answer(w http.ResponseWriter, payload []byte, clientContext string) {
	answer, err := l.emulator.invoke(payload, clientContext)
	failed := isFailure(answer)
	switch {
	case errors.Is(err, errExited):
		answer, failed = []byte(`{"errorType":"Runtime.ExitError","errorMessage":"Runtime exited without providing a reason"}`), true
	case err != nil:
		refuse(w, http.StatusInternalServerError, "ServiceException")
		return
	case !json.Valid(answer) && len(answer) > 0: // "Task timed out after 2.00 seconds"
		text, _ := json.Marshal(string(answer)) // a string always marshals
		answer, failed = []byte(`{"errorType":"Sandbox.Timedout","errorMessage":`+string(text)+`}`), true
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	if failed {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	}
	_, _ = w.Write(answer)
}

// isFailure says that an answer is what runtimes write of an error.
func isFailure(answer []byte) bool {
	var doc struct{ ErrorMessage, ErrorType *string }
	return json.Unmarshal(answer, &doc) == nil && doc.ErrorMessage != nil && doc.ErrorType != nil
}
