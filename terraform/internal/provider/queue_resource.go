package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/queenbridge/queenbridge/bridge"
)

type queueResource struct{ managed }

func newQueueResource() resource.Resource {
	return &queueResource{newManaged(bridge.KindQueue, nil)}
}

// Metadata names the resource.
func (r *queueResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_queue"
}

// Schema are the resource's arguments.
func (r *queueResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = resourceSchema("Options of a queue that differ from the bridge's own defaults. Deleting them leaves the queue and its events as they are.", r.fields, r.computed)
}
