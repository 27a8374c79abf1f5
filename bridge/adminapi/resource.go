package adminapi

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"time"
)

// Owner says who may change a resource.
type Owner string

// The owners.
const (
	OwnerFile Owner = "file" // of the configuration file; read-only here
	OwnerAPI  Owner = "api"
)

// State is what becomes of a resource.
type State string

// The states.
const (
	// StateActive is in use.
	StateActive State = "active"
	// StateDraining is a route that was deleted and still has retries or dead
	// letters on their way, or a target that was deleted with such routes; it is
	// gone once they are.
	StateDraining State = "draining"
	// StateInvalid is stored and not in use: Meta.Problems says why.
	StateInvalid State = "invalid"
)

// Meta is what the bridge knows about a resource. It is never read from a
// request.
type Meta struct {
	ManagedBy Owner `json:"managed_by"`
	State     State `json:"state"`
	// Version changes with each change of the resource: its ETag without the
	// quotes. Compare for equality only.
	Version string `json:"version"`
	// Created and Updated are zero, and UpdatedBy is empty, for resources of
	// the file. UpdatedBy is the name of a token.
	Created   time.Time `json:"created,omitzero"`
	Updated   time.Time `json:"updated,omitzero"`
	UpdatedBy string    `json:"updated_by,omitempty"`
	// Problems say why the state is invalid, or warn.
	Problems []Problem `json:"problems,omitempty"`
	// Paused is set while an operator, or the bridge itself, paused a route or
	// target beside its document.
	Paused *Pause `json:"paused,omitempty"`
	// Change says what a write did, or with validate_only would do. It stands
	// only in answers to writes.
	Change *Change `json:"change,omitempty"`
	// IngressPath is where a source is served, such as /in/github.
	IngressPath string `json:"ingress_path,omitempty"`
}

// Change is what a write did.
type Change struct {
	// Action is created, changed or none.
	Action string `json:"action"`
	// Fields are the paths of what differs from before, without values.
	Fields []string `json:"fields"`
}

// The actions of a Change.
const (
	ActionCreated = "created"
	ActionChanged = "changed"
	ActionNone    = "none"
)

// Pause says why a route or target is paused.
type Pause struct {
	// Reason is what the one who paused it wrote; it may be empty.
	Reason string `json:"reason"`
	// By is the name of the token, or the bridge itself.
	By string `json:"by"`
	// Since is when it was paused.
	Since time.Time `json:"since,omitzero"`
}

// Resource is a source, target, route or queue.
type Resource struct {
	// Document has the fields of config.md as they were written, without meta.
	Document json.RawMessage
	Meta     Meta
}

// metaField is the name of the member beside a resource's own fields.
const metaField = "meta"

// MarshalJSON writes the document with meta as its last member.
func (r Resource) MarshalJSON() ([]byte, error) {
	doc := r.Document.Clone()
	if err := doc.Compact(); err != nil {
		return nil, fmt.Errorf("write resource: %w", err)
	}
	if doc.Kind() != '{' {
		return nil, fmt.Errorf("write resource: its document is no JSON object")
	}
	meta, err := json.Marshal(r.Meta)
	if err != nil {
		return nil, fmt.Errorf("write resource: %w", err)
	}
	out := append([]byte{}, doc[:len(doc)-1]...)
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, `"`+metaField+`":`...)
	return append(append(out, meta...), '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. The fields of the document keep
// their order and the text of their values, without space between. Members of meta that this version does not know
// are skipped: they came from a newer bridge and say nothing about the document.
func (r *Resource) UnmarshalJSON(data []byte) error {
	members, err := readMembers(data)
	if err != nil {
		return fmt.Errorf("read resource: %w", err)
	}
	*r = Resource{}
	doc := []byte{'{'}
	for _, m := range members {
		if m.name == metaField {
			if err := json.Unmarshal(m.value, &r.Meta); err != nil {
				return fmt.Errorf("read resource: %w", err)
			}
			continue
		}
		if len(doc) > 1 {
			doc = append(doc, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return fmt.Errorf("read resource: %w", err)
		}
		doc = append(append(append(doc, name...), ':'), m.value...)
	}
	r.Document = append(doc, '}')
	return nil
}

// Name is the document's name, "" where it has none.
func (r Resource) Name() string {
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(r.Document, &named) != nil {
		return ""
	}
	return named.Name
}

// member is one entry of a JSON object.
type member struct {
	name  string
	value jsontext.Value
}

// readMembers reads the entries of a JSON object in order.
func readMembers(data []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if start, err := d.ReadToken(); err != nil {
		return nil, err
	} else if start.Kind() != '{' {
		return nil, fmt.Errorf("no JSON object")
	}
	var all []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = value.Clone()
		if err := m.value.Compact(); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	_, err := d.ReadToken()
	return all, err
}

// Page is one page of a list. NextPageToken is where the next one starts; ""
// means that this is the last.
type Page struct {
	Items         []Resource `json:"items"`
	NextPageToken string     `json:"next_page_token"`
}
