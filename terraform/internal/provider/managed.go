package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// managed is what all resources do.
type managed struct {
	kind     bridge.Kind
	fields   []shape.Field
	secrets  []string // dotted paths of all secrets
	computed []string // attributes beside the version
	api      *connection
}

var (
	_ resource.ResourceWithConfigure      = (*sourceResource)(nil)
	_ resource.ResourceWithImportState    = (*sourceResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*sourceResource)(nil)
	_ resource.ResourceWithValidateConfig = (*sourceResource)(nil)
)

func newManaged(kind bridge.Kind, computed []string) managed {
	fields := shape.Of(kind)
	return managed{kind: kind, fields: fields, secrets: shape.SecretPaths(fields), computed: computed}
}

// Configure takes the connection.
func (m *managed) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	m.api, _ = req.ProviderData.(*connection) // nil until the provider is configured
}

// connected says, in an error, that there is no connection.
func (m *managed) connected(diags *diag.Diagnostics) bool {
	if m.api == nil {
		diags.AddError("The provider is not configured", "Its endpoint or token is not known yet: apply first what they come from (-target).")
	}
	return m.api != nil
}

// Create makes the resource, where there is none of its name.
func (m *managed) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	if !m.connected(&resp.Diagnostics) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout(req.Plan.Raw, "create", m.longTimeout()))
	defer cancel()
	doc, err := m.wanted(req.Plan.Raw, req.Config.Raw)
	if err != nil {
		m.report(&resp.Diagnostics, "create", req.Config.Raw, err)
		return
	}
	name := textAt(req.Plan.Raw, attrName)
	r, err := m.create(ctx, name, encoded(doc))
	if adminapi.IsCode(err, adminapi.CodePrecondition) {
		resp.Diagnostics.AddAttributeError(path.Root(attrName), "Already there",
			fmt.Sprintf("The bridge has a %s %q already, and it differs. To manage it here, import it:\n\n  import {\n    to = queenbridge_%s.<its name here>\n    id = %q\n  }",
				m.word(), name, m.word(), name))
		return
	}
	if err != nil {
		m.report(&resp.Diagnostics, "create", req.Config.Raw, err)
		return
	}
	m.warn(&resp.Diagnostics, req.Config.Raw, r.Meta)
	resp.State.Raw = m.applied(ctx, req.Plan.Raw, r)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, privateKey, credentialsIn(m.kind, r).encode())...)
}

// Read brings the state up to date, or takes away what is gone.
func (m *managed) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	if m.api == nil {
		resp.Diagnostics.AddWarning("Not refreshed", "The provider's endpoint or token is not known yet: the "+m.word()+" is shown as it was.")
		return
	}
	r, err := m.api.Read(ctx, m.kind, textAt(req.State.Raw, attrName))
	switch {
	case adminapi.IsCode(err, adminapi.CodeNotFound), err == nil && r.Meta.State == adminapi.StateDraining:
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		m.report(&resp.Diagnostics, "read", tftypes.Value{}, err)
		return
	case r.Meta.ManagedBy == adminapi.OwnerFile && !isSet(req.State.Raw, attrVersion):
		resp.Diagnostics.AddError("Managed by file", fmt.Sprintf("The %s %q stands in the bridge's configuration file, which owns it: take it out there first. "+
			"`queenbridge apply --migrate` moves a whole file.", m.word(), r.Name()))
		return
	}
	known, diags := credentialsOf(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	state, err := m.refreshed(ctx, req.State.Raw, r, known, &resp.Diagnostics)
	if err != nil {
		m.report(&resp.Diagnostics, "read", tftypes.Value{}, err)
		return
	}
	resp.State.Raw = state
	if r.Meta.State == adminapi.StateInvalid {
		m.warn(&resp.Diagnostics, tftypes.Value{}, r.Meta)
	}
}

// Update changes what differs, at the version that was read last.
func (m *managed) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	if !m.connected(&resp.Diagnostics) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout(req.Plan.Raw, "update", defaultTimeout))
	defer cancel()
	patch, err := m.patch(req.State.Raw, req.Plan.Raw, req.Config.Raw)
	if err != nil {
		m.report(&resp.Diagnostics, "update", req.Config.Raw, err)
		return
	}
	name := textAt(req.State.Raw, attrName)
	if patch.Kind == bridge.NodeAbsent { // only what Terraform alone knows
		r, err := m.api.Read(ctx, m.kind, name)
		if err != nil {
			m.report(&resp.Diagnostics, "update", req.Config.Raw, err)
			return
		}
		resp.State.Raw = m.applied(ctx, req.Plan.Raw, r)
		return
	}
	known, _ := credentialsOf(ctx, req.Private)
	r, err := m.update(ctx, name, encoded(patch), m.asRead(ctx, req.State.Raw, known))
	if adminapi.IsCode(err, adminapi.CodePrecondition) {
		resp.Diagnostics.AddError("Changed by somebody else", m.raced(ctx, req.State.Raw, known))
		return
	}
	if err != nil {
		m.report(&resp.Diagnostics, "update", req.Config.Raw, err)
		return
	}
	m.warn(&resp.Diagnostics, req.Config.Raw, r.Meta)
	resp.State.Raw = m.applied(ctx, req.Plan.Raw, r)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, privateKey, credentialsIn(m.kind, r).encode())...)
}

// Delete deletes the resource and waits until it is gone.
func (m *managed) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	if !m.connected(&resp.Diagnostics) || m.protected(req.State.Raw, &resp.Diagnostics) {
		return
	}
	limit := timeout(req.State.Raw, "delete", m.deleteTimeout())
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := textAt(req.State.Raw, attrName)
	known, _ := credentialsOf(ctx, req.Private)
	err := m.delete(ctx, name, m.asRead(ctx, req.State.Raw, known))
	switch {
	case err == nil:
	case adminapi.IsCode(err, adminapi.CodePrecondition):
		resp.Diagnostics.AddError("Changed by somebody else", m.raced(ctx, req.State.Raw, known))
	case isDraining(err):
		after := "After " + limit.String()
		if errors.Is(ctx.Err(), context.Canceled) {
			after = "Interrupted:"
		}
		resp.Diagnostics.AddError("Still draining", fmt.Sprintf("%s %s. A deleted route takes no new events and goes by itself once its retries and dead "+
			"letters are done. Nothing needs to be done for it: run Terraform again later, or give it more time with timeouts = { delete = \"1h\" }.", after, err))
	default:
		m.report(&resp.Diagnostics, "delete", tftypes.Value{}, err)
	}
}

// ImportState takes over an existing resource by its name.
func (m *managed) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root(attrName), req, resp)
}

// word is source, target, route or queue.
func (m *managed) word() string { return m.kind.Singular() }

// longTimeout is for what may have to wait for a route to drain.
func (m *managed) longTimeout() time.Duration {
	if m.kind == bridge.KindRoute {
		return drainTimeout
	}
	return defaultTimeout
}

// deleteTimeout is longTimeout, also of what a draining route needs.
func (m *managed) deleteTimeout() time.Duration {
	if slices.Contains([]bridge.Kind{bridge.KindTarget, bridge.KindQueue}, m.kind) {
		return drainTimeout
	}
	return m.longTimeout()
}

// protected refuses to destroy what is protected.
func (m *managed) protected(state tftypes.Value, diags *diag.Diagnostics) bool {
	if !trueAt(state, attrProtection) {
		return false
	}
	diags.AddAttributeError(path.Root(attrProtection), "Protected from deletion", fmt.Sprintf(
		"The %s %q is not destroyed or replaced while deletion_protection is true: set it to false, apply, and then destroy it.", m.word(), textAt(state, attrName)))
	return true
}

// applied is the state after a plan was carried out: the plan, with what only
// the bridge knows.
func (m *managed) applied(ctx context.Context, plan tftypes.Value, r adminapi.Resource) tftypes.Value {
	for _, name := range append([]string{attrVersion}, m.computed...) {
		if planned, ok := at(plan, name); ok && !planned.IsKnown() {
			plan = withText(plan, name, m.known(ctx, name, r))
		}
	}
	return plan
}

// known is the value of a computed attribute.
func (m *managed) known(ctx context.Context, attribute string, r adminapi.Resource) string {
	doc, err := bridge.ParseJSON(r.Document)
	if err != nil {
		return "" // the client read it as JSON
	}
	switch attribute {
	case attrVersion:
		return r.Meta.Version
	case attrIngressURL:
		return m.api.ingressURL(doc, r.Meta)
	case attrSetupHint:
		return m.api.setupHint(ctx, doc.Member("scheme").Text)
	case attrManagedBy:
		return string(r.Meta.ManagedBy)
	case attrState:
		return string(r.Meta.State)
	}
	return ""
}

func encoded(doc bridge.Node) json.RawMessage { return doc.AppendJSON(nil) }
