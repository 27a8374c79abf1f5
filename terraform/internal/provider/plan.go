package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// ModifyPlan refuses to destroy what is protected, keeps what a change does not
// touch, and asks the bridge what it thinks of the plan.
func (m *managed) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	destroys, creates := req.Plan.Raw.IsNull(), req.State.Raw.IsNull()
	switch {
	case destroys:
		m.protected(req.State.Raw, &resp.Diagnostics)
		return
	case !creates && m.replaces(req.State.Raw, req.Plan.Raw):
		m.protected(req.State.Raw, &resp.Diagnostics)
		return // the new one is planned by itself
	case !creates && req.Plan.Raw.Equal(req.State.Raw):
		return
	case !creates:
		resp.Plan.Raw = m.keepComputed(req.State.Raw, req.Plan.Raw)
	}
	if m.api != nil {
		m.validate(ctx, req, &resp.Diagnostics)
	}
}

// replaces says that the name changes.
func (m *managed) replaces(state, plan tftypes.Value) bool {
	name, ok := at(plan, attrName)
	return ok && (!name.IsKnown() || textAt(plan, attrName) != textAt(state, attrName))
}

// computedOf are the fields that a computed attribute is made of.
var computedOf = map[string]string{attrIngressURL: "public_url", attrSetupHint: "scheme"}

// keepComputed plans the old value of what is computed where nothing that it is
// made of changes.
func (m *managed) keepComputed(state, plan tftypes.Value) tftypes.Value {
	for _, name := range m.computed {
		before, _ := at(state, computedOf[name])
		after, _ := at(plan, computedOf[name])
		if before.Equal(after) {
			plan = keep(plan, state, name)
		}
	}
	return plan
}

// validate asks the bridge to judge a change that it does not make. What is not
// known yet is not judged, nor what depends on other resources: they may be
// changed in the same run.
func (m *managed) validate(ctx context.Context, req resource.ModifyPlanRequest, diags *diag.Diagnostics) {
	err := m.ask(ctx, req)
	answer, answered := errors.AsType[*adminapi.Error](err)
	switch {
	case err == nil, errors.Is(err, shape.ErrUnknown), ctx.Err() != nil:
	case !answered:
		diags.AddWarning("Plan not validated", fmt.Sprintf("The bridge did not answer: %v", err))
	case answer.Code == adminapi.CodeInvalid:
		m.problems(diags, req.Config.Raw, slices.DeleteFunc(answer.Problems, m.depends))
	case slices.Contains([]adminapi.Code{adminapi.CodeForbidden, adminapi.CodeUnavailable, adminapi.CodeRateLimited, adminapi.CodeNotServed, adminapi.CodeInternal}, answer.Code):
		diags.AddWarning("Plan not validated", "The bridge was asked what it thinks of the plan, and did not say: "+answer.Error())
	case answer.Code == adminapi.CodeDraining || answer.Code == adminapi.CodeNotFound:
		// Creating waits; what is gone is found by the next refresh.
	default:
		m.report(diags, "plan", req.Config.Raw, err)
	}
}

func (m *managed) ask(ctx context.Context, req resource.ModifyPlanRequest) error {
	name, only := textAt(req.Plan.Raw, attrName), adminapi.WriteOptions{ValidateOnly: true}
	if req.State.Raw.IsNull() {
		doc, err := m.wanted(req.Plan.Raw, req.Config.Raw)
		if err != nil {
			return err
		}
		_, err = m.api.once.Put(ctx, m.kind, name, encoded(doc), only)
		return err
	}
	patch, err := m.patch(req.State.Raw, req.Plan.Raw, req.Config.Raw)
	if err != nil || patch.Kind == bridge.NodeAbsent {
		return err
	}
	_, err = m.api.once.Patch(ctx, m.kind, name, encoded(patch), only)
	return err
}

// depends says that a problem may be gone once the other resources of the run
// are made: a target that is not there yet, a group that another route still
// has, another resource that would no longer be right.
func (m *managed) depends(p adminapi.Problem) bool {
	return ofAnother(p.Path) || m.kind == bridge.KindRoute && (p.Path == "target" || p.Path == "group")
}

// ValidateConfig refuses what no bridge takes: fields that exclude each other.
func (m *managed) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	config := req.Config.Raw
	for _, secret := range m.secrets {
		m.validateSecret(config, secret, &resp.Diagnostics)
	}
	switch m.kind {
	case bridge.KindTarget:
		http, lambda := isSet(config, "http"), isSet(config, "lambda")
		if !http && !lambda {
			m.refuse(&resp.Diagnostics, "http", "a target needs exactly one of http and lambda")
		}
		if isKnown(config, "http") && isKnown(config, "lambda") {
			m.refuse(&resp.Diagnostics, "lambda", "excludes http: a target needs exactly one of the two")
		}
	case bridge.KindRoute:
		if isKnown(config, "filter") && isKnown(config, "pattern") {
			m.refuse(&resp.Diagnostics, "pattern", "excludes filter")
		}
	}
}

func (m *managed) validateSecret(config tftypes.Value, secret string, diags *diag.Diagnostics) {
	given, version := isKnown(config, secret+writeOnly), isKnown(config, secret+writeOnlyVersion)
	switch {
	case given && isKnown(config, secret):
		m.refuse(diags, secret+writeOnly, "excludes "+secret)
	case given && !isSet(config, secret+writeOnlyVersion):
		m.refuse(diags, secret+writeOnly, "needs "+secret+writeOnlyVersion+", a number: another one writes the secret again")
	case version && !isSet(config, secret+writeOnly):
		m.refuse(diags, secret+writeOnlyVersion, "has no effect without "+secret+writeOnly)
	}
}

func (m *managed) refuse(diags *diag.Diagnostics, field, text string) {
	p := descend(path.Empty(), m.fields, strings.TrimSuffix(field, "_version"))
	diags.AddAttributeError(p, "Invalid "+m.word(), field+": "+text)
}

// isKnown says that there is a value, and that it is known.
func isKnown(v tftypes.Value, path string) bool {
	value, ok := at(v, path)
	return ok && !value.IsNull() && value.IsKnown()
}
