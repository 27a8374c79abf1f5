package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// reading is what was read last of a resource: a change is made for that.
type reading struct {
	version string
	same    func(adminapi.Resource) bool // but for its version
	tries   int
}

// asRead is the reading that a state holds.
func (m *managed) asRead(ctx context.Context, state tftypes.Value, known credentials) reading {
	version := textAt(state, attrVersion)
	return reading{version: version, same: func(r adminapi.Resource) bool {
		var diags diag.Diagnostics
		now, err := m.refreshed(ctx, state, r, known, &diags)
		return err == nil && !diags.HasError() && withText(now, attrVersion, version).Equal(state)
	}}
}

// renew takes over the version of what is still as it was read: its secrets were
// sealed with another key, say, or somebody changed it and changed it back.
func (r *reading) renew(now adminapi.Resource) bool {
	const most = 5
	if r.tries++; r.tries > most || !r.same(now) {
		return false
	}
	r.version = now.Meta.Version
	return true
}

// update changes a resource that is as it was read.
func (m *managed) update(ctx context.Context, name string, patch json.RawMessage, read reading) (adminapi.Resource, error) {
	for {
		r, err := m.api.Patch(ctx, m.kind, name, patch, adminapi.WriteOptions{IfMatch: read.version})
		if !adminapi.IsCode(err, adminapi.CodePrecondition) {
			return r, err
		}
		now, readErr := m.api.Read(ctx, m.kind, name)
		if readErr != nil || !read.renew(now) {
			return r, err
		}
	}
}
