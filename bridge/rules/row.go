package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// rowVersion is the schema version of the rows this version writes. A row of a
// higher one, or with a field that is unknown here, is a newer bridge's: it is
// neither used nor written.
const rowVersion = 1

// maxRow is the largest value that Queen's KV takes (queen-contract.md §10).
const maxRow = 64 << 10

// row is one stored resource.
type row struct {
	// Version comes first, for people who look at rows.
	Version int         `json:"queenbridge"`
	Kind    bridge.Kind `json:"kind"`
	Name    string      `json:"name"`
	// Document is JSON as text: Queen re-encodes JSON, and a number would not
	// come back as it was written (measured 1.3.0).
	Document string `json:"document"`
	// Sealed are the sealed secrets by the id that the document refers to.
	Sealed  map[string]string `json:"sealed,omitempty"`
	Created time.Time         `json:"created"`
	Updated time.Time         `json:"updated"`
	// By is the name of the token that wrote it.
	By string `json:"by"`
	// Draining is when the route or target was deleted; nil while it was not.
	Draining *time.Time `json:"draining,omitempty"`
	// Write is minted for each write: it proves that a row is what a write
	// whose answer was lost has written.
	Write string `json:"write"`
}

func (r row) resource() bridge.Resource { return bridge.Resource{Kind: r.Kind, Name: r.Name} }

// encode writes the row. A row that Queen would refuse is an error.
func (r row) encode() (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("write %s: %w", r.resource(), err)
	}
	data := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(data) > maxRow {
		return nil, &TooLargeError{Resource: r.resource(), Size: len(data)}
	}
	return data, nil
}

// TooLargeError says that a resource does not fit into one value of Queen's KV.
type TooLargeError struct {
	Resource bridge.Resource
	// Size is the number of bytes of the row, with its sealed secrets.
	Size int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s takes %d bytes as stored: Queen's KV takes %d", e.Resource, e.Size, maxRow)
}

// newerError says that a row is beyond this version.
type newerError struct{ reason string }

func (e *newerError) Error() string {
	return e.reason + ": a newer version of the bridge stored it; it is not used and not changed here"
}

// decodeRow reads a row strictly.
func decodeRow(key string, value json.RawMessage) (row, error) {
	var head struct {
		Version *int        `json:"queenbridge"`
		Kind    bridge.Kind `json:"kind"`
		Name    string      `json:"name"`
	}
	if err := json.Unmarshal(value, &head); err != nil || head.Version == nil {
		return row{}, fmt.Errorf("the row is none of ours")
	}
	r := row{Kind: head.Kind, Name: head.Name}
	if *head.Version > rowVersion {
		return r, &newerError{fmt.Sprintf("schema version %d, known is %d", *head.Version, rowVersion)}
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return row{Kind: head.Kind, Name: head.Name}, &newerError{"a field that is unknown here"}
	}
	if !r.Kind.Valid() || r.Name == "" || bridge.RuleKey(r.resource()) != key {
		return row{}, fmt.Errorf("the row does not belong to its key")
	}
	return r, nil
}
