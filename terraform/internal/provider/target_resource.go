package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/queenbridge/queenbridge/bridge"
)

type targetResource struct{ managed }

func newTargetResource() resource.Resource {
	return &targetResource{newManaged(bridge.KindTarget, nil)}
}

// Metadata names the resource.
func (r *targetResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_target"
}

// Schema are the resource's arguments.
func (r *targetResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = resourceSchema("A function: an HTTP endpoint or an AWS Lambda function. Exactly one of `http` and `lambda` is set.", r.fields, r.computed)
}
