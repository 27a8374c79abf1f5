package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// refreshed is the state of a resource that was read. What says the same as
// before stays as it was, in its form, too.
func (m *managed) refreshed(ctx context.Context, prior tftypes.Value, r adminapi.Resource, known credentials, diags *diag.Diagnostics) (tftypes.Value, error) {
	doc, err := bridge.ParseJSON(r.Document)
	if err != nil {
		return prior, err
	}
	before, err := shape.Document(m.fields, prior)
	if err != nil {
		return prior, err
	}
	configured := known.asConfigured(doc, before)
	state, odd := shape.Value(prior.Type(), configured)
	for _, path := range odd {
		diags.AddAttributeWarning(m.attributePath(path, tftypes.Value{}), "Shown as not set", fmt.Sprintf(
			"The %s %q holds something that Terraform has no form for, such as a reference in the place of a number. It stays as it is until %s is set here.",
			m.word(), r.Name(), path))
	}
	for _, f := range m.fields {
		if f.Form == shape.Free && shape.Same(before.Member(f.Name), configured.Member(f.Name)) {
			state = keep(state, prior, f.Name)
		}
	}
	state = m.refreshWriteOnly(state, prior, credentialsIn(m.kind, r), known)
	for _, name := range []string{attrProtection, attrTimeouts} {
		state = keep(state, prior, name)
	}
	for _, name := range append([]string{attrVersion}, m.computed...) {
		state = withText(state, name, m.known(ctx, name, r))
	}
	return state, nil
}

// keep is state with what prior has at a path.
func keep(state, prior tftypes.Value, path string) tftypes.Value {
	if before, ok := at(prior, path); ok {
		return with(state, path, before)
	}
	return state
}
