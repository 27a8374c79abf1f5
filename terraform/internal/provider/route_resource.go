package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/queenbridge/queenbridge/bridge"
)

type routeResource struct{ managed }

func newRouteResource() resource.Resource {
	return &routeResource{newManaged(bridge.KindRoute, nil)}
}

// Metadata names the resource.
func (r *routeResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_route"
}

// Schema are the resource's arguments.
func (r *routeResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = resourceSchema("Sends the events of one queue to one target. A deleted route drains: it takes no new events, and goes once its retries and dead letters are done, which takes ten seconds at least; Terraform waits for that.", r.fields, r.computed)
}
