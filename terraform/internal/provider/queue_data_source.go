package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/queenbridge/queenbridge/bridge"
)

type queueDataSource struct{ readable }

func newQueueDataSource() datasource.DataSource {
	return &queueDataSource{newReadable(bridge.KindQueue, nil)}
}

// Metadata names the data source.
func (d *queueDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_queue"
}

// Schema are the data source's attributes.
func (d *queueDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataSchema("A queue as it is, also one of the bridge's configuration file.", d.fields, d.computed)
}
