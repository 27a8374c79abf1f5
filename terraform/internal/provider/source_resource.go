package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/queenbridge/queenbridge/bridge"
)

type sourceResource struct{ managed }

func newSourceResource() resource.Resource {
	return &sourceResource{newManaged(bridge.KindSource, []string{attrIngressURL, attrSetupHint})}
}

// Metadata names the resource.
func (r *sourceResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_source"
}

// Schema are the resource's arguments.
func (r *sourceResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = resourceSchema("A sender of webhooks, served at `POST /in/<name>`.", r.fields, r.computed)
}
