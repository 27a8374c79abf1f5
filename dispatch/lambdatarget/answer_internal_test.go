package lambdatarget

import (
	"encoding/json"
	"testing"
)

// FuzzErrorOf: what a function writes of its error is read as encoding/json
// reads it, and a document that is cut costs nothing but what is missing.
func FuzzErrorOf(f *testing.F) {
	for _, seed := range []string{
		`{"errorType":"A","errorMessage":"b","stackTrace":[]}`, `{"errorMessage":"b"`, `{"errorType":"A","errorMessage":"b`,
		`[]`, `{"errorType":7}`, `{"errorType":"A","errorType":"B"}`, "", "Task timed out", `{"errorMessage":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		name, message := errorOf(payload)
		var want struct {
			Type    string `json:"errorType"`
			Message string `json:"errorMessage"`
		}
		if json.Valid(payload) && json.Unmarshal(payload, &want) == nil && !hasFolded(payload) && (name != want.Type || message != want.Message) {
			t.Errorf("errorOf(%s) = %q, %q; want %q, %q", payload, name, message, want.Type, want.Message)
		}
		if j := functionError("Unhandled", payload); j.Error == "" || j.Kind != "retry" {
			t.Errorf("functionError(%s) = %+v", payload, j)
		}
	})
}

// hasFolded says that a key differs from ours in its case only: encoding/json
// takes it, runtimes do not write it.
func hasFolded(payload []byte) bool {
	var doc map[string]json.RawMessage
	if json.Unmarshal(payload, &doc) != nil {
		return false
	}
	for key := range doc {
		if key != "errorType" && key != "errorMessage" {
			return true
		}
	}
	return false
}
