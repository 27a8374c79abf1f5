package provider

import (
	"context"

	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// The attributes beside a resource's own fields.
const (
	attrName       = "name"
	attrVersion    = "version"
	attrProtection = "deletion_protection"
	attrTimeouts   = "timeouts"
	attrIngressURL = "ingress_url"
	attrSetupHint  = "setup_hint"
	attrManagedBy  = "managed_by"
	attrState      = "state"

	// writeOnly and writeOnlyVersion end the names of the arguments for a
	// secret that no state holds.
	writeOnly        = "_wo"
	writeOnlyVersion = "_wo_version"
)

// resourceAttributes are the arguments of a resource: its fields, all optional
// but the name, and nothing computed among them: a field that is not set has the
// bridge's default, also a newer bridge's.
func resourceAttributes(fields []shape.Field) map[string]schema.Attribute {
	all := map[string]schema.Attribute{}
	for _, f := range fields {
		all[f.Name] = argument(f)
		if f.IsSecret() {
			all[f.Name+writeOnly] = writeOnlyArgument(f)
			all[f.Name+writeOnlyVersion] = schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "Any number; another one makes `" + f.Name + writeOnly + "` be written again. " +
					"It reads as null after the secret was changed by somebody else.",
			}
		}
	}
	return all
}

func argument(f shape.Field) schema.Attribute {
	if f.IsSecret() {
		return secretArgument(f)
	}
	switch f.Form {
	case shape.Object:
		return schema.SingleNestedAttribute{Optional: true, Attributes: resourceAttributes(f.Fields), MarkdownDescription: f.Description}
	case shape.List:
		return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: f.Description,
			Validators: []validator.List{textsValidator{*f.Elem}}}
	case shape.Map:
		return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: f.Description}
	case shape.Bool:
		return schema.BoolAttribute{Optional: true, MarkdownDescription: f.Description}
	case shape.Integer:
		return schema.Int64Attribute{Optional: true, MarkdownDescription: f.Description}
	case shape.Number:
		return schema.Float64Attribute{Optional: true, MarkdownDescription: f.Description}
	case shape.Free:
		return schema.DynamicAttribute{Optional: true, MarkdownDescription: f.Description}
	}
	return schema.StringAttribute{Optional: !f.Required, Required: f.Required, MarkdownDescription: f.Description, Validators: []validator.String{textsValidator{f}}}
}

func secretArgument(f shape.Field) schema.Attribute {
	text := f.Description + " A literal is sealed by the bridge and kept in Terraform's state; `${env:NAME}` and the other references " +
		"(written `$${env:NAME}` here) are resolved by the bridge. Conflicts with `" + f.Name + writeOnly + "`."
	if f.Form == shape.List {
		return schema.ListAttribute{Optional: true, Sensitive: true, ElementType: types.StringType, MarkdownDescription: text}
	}
	return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: text}
}

func writeOnlyArgument(f shape.Field) schema.Attribute {
	text := "Like `" + f.Name + "`, but in no plan and no state (Terraform 1.11, OpenTofu 1.11). Needs `" + f.Name + writeOnlyVersion +
		"`, which says when it is written."
	if f.Form == shape.List {
		return schema.ListAttribute{Optional: true, WriteOnly: true, Sensitive: true, ElementType: types.StringType, MarkdownDescription: text}
	}
	return schema.StringAttribute{Optional: true, WriteOnly: true, Sensitive: true, MarkdownDescription: text}
}

// resourceSchema is a resource's fields and what stands beside them.
func resourceSchema(text string, fields []shape.Field, computed []string) schema.Schema {
	all := resourceAttributes(fields)
	name, _ := all[attrName].(schema.StringAttribute)
	name.Required, name.Optional = true, false
	name.MarkdownDescription += " Another name is another resource: it is replaced."
	name.PlanModifiers = []planmodifier.String{stringplanmodifier.RequiresReplace()}
	all[attrName] = name
	all[attrVersion] = schema.StringAttribute{Computed: true,
		MarkdownDescription: "Changes with each change of the resource in the bridge. Compare for equality only."}
	all[attrProtection] = schema.BoolAttribute{Optional: true,
		MarkdownDescription: "While true, the resource is neither destroyed nor replaced: set it to false and apply first. Known to Terraform only. Defaults to false."}
	all[attrTimeouts] = timeoutsAttribute()
	for _, c := range computed {
		all[c] = schema.StringAttribute{Computed: true, MarkdownDescription: computedText[c]}
	}
	return schema.Schema{MarkdownDescription: text, Attributes: all}
}

// computedText describes what is computed beside the version.
var computedText = map[string]string{
	attrIngressURL: "Where the provider sends its webhooks: `public_url` where that is set, else the path `/in/<name>` behind the provider's argument " +
		"`ingress_base_url`. Without either it is only that path.",
	attrSetupHint: "What to paste where at the provider.",
	attrManagedBy: "`file`: the bridge's configuration file owns it; `api`: it may be changed over the admin API, and with Terraform.",
	attrState:     "`active`, `draining` (a deleted route whose retries and dead letters run on), or `invalid` (stored and not in use).",
}

func timeoutsAttribute() schema.Attribute {
	text := func(of, standard string) schema.Attribute {
		return schema.StringAttribute{Optional: true, Validators: []validator.String{durationValidator{}},
			MarkdownDescription: "Bounds " + of + ", such as `90s`. Defaults to " + standard + "."}
	}
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "How long an operation may take, waits included.",
		Attributes: map[string]schema.Attribute{
			"create": text("creating", "2m; 10m for routes, which wait for a deleted one of the same name"),
			"update": text("changing", "2m"),
			"delete": text("deleting", "2m; 10m for routes, which drain first, and for what they use"),
		}}
}

// dataAttributes are fields as they are read.
func dataAttributes(fields []shape.Field) map[string]dataschema.Attribute {
	all := map[string]dataschema.Attribute{}
	for _, f := range fields {
		all[f.Name] = dataAttribute(f)
	}
	return all
}

func dataAttribute(f shape.Field) dataschema.Attribute {
	switch f.Form {
	case shape.Object:
		return dataschema.SingleNestedAttribute{Computed: true, Attributes: dataAttributes(f.Fields), MarkdownDescription: f.Description}
	case shape.List:
		if f.Elem.Form == shape.Object {
			return dataschema.ListNestedAttribute{Computed: true, MarkdownDescription: f.Description,
				NestedObject: dataschema.NestedAttributeObject{Attributes: dataAttributes(f.Elem.Fields)}}
		}
		return dataschema.ListAttribute{Computed: true, Sensitive: f.IsSecret(), ElementType: types.StringType, MarkdownDescription: f.Description}
	case shape.Map:
		element := types.StringType
		if f.Elem.Form == shape.Integer {
			return dataschema.MapAttribute{Computed: true, ElementType: types.Int64Type, MarkdownDescription: f.Description}
		}
		return dataschema.MapAttribute{Computed: true, ElementType: element, MarkdownDescription: f.Description}
	case shape.Bool:
		return dataschema.BoolAttribute{Computed: true, MarkdownDescription: f.Description}
	case shape.Integer:
		return dataschema.Int64Attribute{Computed: true, MarkdownDescription: f.Description}
	case shape.Number:
		return dataschema.Float64Attribute{Computed: true, MarkdownDescription: f.Description}
	case shape.Free:
		return dataschema.DynamicAttribute{Computed: true, MarkdownDescription: f.Description}
	}
	return dataschema.StringAttribute{Computed: true, Sensitive: f.IsSecret(), MarkdownDescription: f.Description}
}

// dataSchema is a resource as it is read by its name.
func dataSchema(text string, fields []shape.Field, computed []string) dataschema.Schema {
	all := dataAttributes(fields)
	all[attrName] = dataschema.StringAttribute{Required: true, MarkdownDescription: "The name to look up."}
	all[attrVersion] = dataschema.StringAttribute{Computed: true,
		MarkdownDescription: "Changes with each change of the resource in the bridge. Compare for equality only."}
	for _, c := range append([]string{attrManagedBy, attrState}, computed...) {
		all[c] = dataschema.StringAttribute{Computed: true, MarkdownDescription: computedText[c]}
	}
	return dataschema.Schema{MarkdownDescription: text, Attributes: all}
}

// textsValidator refuses what the bridge would refuse, too, before anything is
// planned.
type textsValidator struct{ field shape.Field }

var (
	_ validator.String = textsValidator{}
	_ validator.List   = textsValidator{}
)

func (v textsValidator) Description(context.Context) string { return "is what the bridge accepts" }
func (v textsValidator) MarkdownDescription(context.Context) string {
	return "is what the bridge accepts"
}

func (v textsValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if wrong := v.field.Accepts(req.ConfigValue.ValueString()); wrong != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value", req.Path.String()+": "+wrong)
	}
}

func (v textsValidator) ValidateList(_ context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	for i, e := range req.ConfigValue.Elements() {
		text, ok := e.(types.String)
		if !ok || text.IsNull() || text.IsUnknown() {
			continue
		}
		if wrong := v.field.Accepts(text.ValueString()); wrong != "" {
			at := req.Path.AtListIndex(i)
			resp.Diagnostics.AddAttributeError(at, "Invalid value", at.String()+": "+wrong)
		}
	}
}
