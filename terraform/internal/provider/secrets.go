package provider

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// privateKey is where the private state keeps credentials.
const privateKey = "credentials"

// credentials are the texts that the bridge answered the last write with, at the
// paths of secrets: ${sealed:ID}, or a reference as it was written. Neither is a
// secret.
type credentials map[string]string

// credentialsIn are those of an answer.
func credentialsIn(kind bridge.Kind, r adminapi.Resource) credentials {
	c := credentials{}
	doc, err := bridge.ParseJSON(r.Document)
	if err != nil {
		return c
	}
	bridge.VisitCredentials(kind, &doc, func(path string, n *bridge.Node) { c[path] = n.Text })
	return c
}

// private is where a resource's private state is read from.
type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// credentialsOf are those that the private state keeps; none after an import.
func credentialsOf(ctx context.Context, p private) (credentials, diag.Diagnostics) {
	data, diags := p.GetKey(ctx, privateKey)
	c := credentials{}
	if len(data) > 0 && json.Unmarshal(data, &c) != nil {
		return credentials{}, diags
	}
	return c, diags
}

func (c credentials) encode() []byte {
	data, _ := json.Marshal(c) // a map of texts encodes
	return data
}

// below are the credentials at a path and below it.
func (c credentials) below(parent string) credentials {
	some := credentials{}
	for path, text := range c {
		if _, ok := bridge.Within(path, parent); ok {
			some[path] = text
		}
	}
	return some
}

// asConfigured is a document with what was configured in the place of every
// credential that the bridge still has as of the last write.
func (c credentials) asConfigured(doc, configured bridge.Node) bridge.Node {
	doc = doc.Clone()
	doc.Walk("", func(path string, n *bridge.Node) {
		if text, ok := c[path]; !ok || n.Kind != bridge.NodeString || n.Text != text {
			return
		}
		if before, ok := configured.At(path); ok && before.Kind == bridge.NodeString {
			n.Text = before.Text
		}
	})
	return doc
}

// wanted is the document of a plan, with the write-only secrets of the
// configuration.
func (m *managed) wanted(plan, config tftypes.Value) (bridge.Node, error) {
	doc, err := shape.Document(m.fields, plan)
	if err != nil {
		return bridge.Node{}, err
	}
	for _, secret := range m.secrets {
		value, given, err := m.writeOnlyValue(config, secret)
		if err != nil {
			return bridge.Node{}, err
		}
		if given {
			doc.Set(secret, value)
		}
	}
	return doc, nil
}

// writeOnlyValue is what the configuration has for a secret that no state holds.
func (m *managed) writeOnlyValue(config tftypes.Value, secret string) (value bridge.Node, given bool, err error) {
	v, ok := at(config, secret+writeOnly)
	if !ok || v.IsNull() {
		return bridge.Node{}, false, nil
	}
	value, err = shape.Anything(v)
	return value, true, err
}

// patch is what an update sends: what differs between state and plan, and the
// write-only secrets whose version does.
func (m *managed) patch(state, plan, config tftypes.Value) (bridge.Node, error) {
	have, err := shape.Document(m.fields, state)
	if err != nil {
		return bridge.Node{}, err
	}
	want, err := shape.Document(m.fields, plan)
	if err != nil {
		return bridge.Node{}, err
	}
	patch := shape.Patch(have, want)
	for _, secret := range m.secrets {
		before, _ := at(state, secret+writeOnlyVersion)
		after, there := at(plan, secret+writeOnlyVersion)
		if !there || sameVersion(before, after) {
			continue
		}
		value, given, err := m.writeOnlyValue(config, secret)
		if err != nil {
			return bridge.Node{}, err
		}
		if given || !isSet(plan, secret) { // else the plain one takes its place
			patch.Set(secret, value)
		}
	}
	return patch, nil
}

// sameVersion says that a write-only secret is not to be written again. The zero
// value stands for none.
func sameVersion(before, after tftypes.Value) bool {
	none := func(v tftypes.Value) bool { return v.Type() == nil || v.IsNull() }
	if none(before) || none(after) {
		return none(before) && none(after)
	}
	return before.Equal(after)
}

// refreshWriteOnly takes the write-only secrets out of a document that was read,
// and puts their versions into the state: null where somebody else changed the
// secret.
func (m *managed) refreshWriteOnly(state, prior tftypes.Value, now, known credentials) tftypes.Value {
	for _, secret := range m.secrets {
		version, ok := at(prior, secret+writeOnlyVersion)
		if !ok || version.IsNull() {
			continue
		}
		if empty, ok := at(state, secret); ok {
			state = with(state, secret, tftypes.NewValue(empty.Type(), nil))
		}
		if maps.Equal(now.below(secret), known.below(secret)) {
			state = with(state, secret+writeOnlyVersion, version)
		}
	}
	return state
}
